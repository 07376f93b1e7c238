/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a window in each form: exact bytes, what is unknown, and texts that need quoting. */
#include <flyball/record.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "meter/meter.h"
#include "test.h"

/* Two GPUs and a CPU that say nothing: the figures are made up below. */
static void close_nothing(struct device *device)
{
    (void)device;
}

static void read_nothing(const struct device *device, quantity_set wanted, struct reading *values)
{
    (void)device;
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
}

static const struct device_backend backend = {
    .name = "made-up", .title = "made up", .close = close_nothing, .read = read_nothing};

static struct device_list list;
static struct fly_meter *meter;

static void add(enum device_kind kind, const char *name, const char *uuid)
{
    struct device_info info = {.kind = kind};

    snprintf(info.name, sizeof info.name, "%s", name);
    snprintf(info.uuid, sizeof info.uuid, "%s", uuid);
    assert_int_equal(device_list_add(&list, &backend, &info, NULL, NULL), 0);
}

static int make_meter(void **state)
{
    const struct meter_parts parts = {.devices = &list, .threadless = true};

    (void)state;
    add(DEVICE_GPU, "A \"big\" GPU, new", "GPU-a");
    add(DEVICE_GPU, "GPU\x01\xff", "GPU-b");
    add(DEVICE_CPU, "package-0", "cpu-0");
    return meter_new(&parts, &meter, NULL);
}

static int free_meter(void **state)
{
    (void)state;
    fly_meter_close(meter);
    return 0;
}

static struct fly_device_energy devices[3];

static struct fly_measurement make_measurement(const char *name)
{
    const double unknown = NAN;
    struct fly_measurement measured = {.size = sizeof measured,
                                       .devices = devices,
                                       .device_capacity = 3,
                                       .device_count = 3,
                                       .start_unix_s = 1700000000.25,
                                       .time_s = 2.5};

    snprintf(measured.name, sizeof measured.name, "%s", name);
    devices[0] = (struct fly_device_energy){FLY_ENERGY_COUNTER,
                                            100.5,
                                            0.25,
                                            0.05,
                                            2.5,
                                            40.2,
                                            101,
                                            0.5,
                                            0.25,
                                            1,
                                            0,
                                            unknown,
                                            0,
                                            1410,
                                            60,
                                            400,
                                            25,
                                            "",
                                            100.25,
                                            unknown,
                                            unknown,
                                            false};
    devices[1] = (struct fly_device_energy){FLY_ENERGY_UNAVAILABLE,
                                            unknown,
                                            unknown,
                                            unknown,
                                            2.5,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            unknown,
                                            0,
                                            "it is \"lost\", gone",
                                            unknown,
                                            60.5,
                                            1.5,
                                            false};
    devices[2] = devices[0];
    devices[2].source = FLY_ENERGY_ESTIMATED;
    return measured;
}

static const struct {
    enum fly_record_form form;
    const char *name;
    const char *header;
    const char *lines; /* as far as they are stated */
} cases[] = {
    {FLY_RECORD_CSV_GPUS, "epoch", "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n",
     "1700000000.25,epoch,2.5,100.5,\n"},
    {FLY_RECORD_CSV_GPUS, "a,\"b\"", "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n",
     "1700000000.25,\"a,\"\"b\"\"\",2.5,100.5,\n"},
    {FLY_RECORD_CSV, "epoch",
     "schema,start_unix_s,window_name,elapsed_s,kind,index,name,uuid,counted_by,source,energy_j,uncertainty_"
     "j,gain_"
     "error,"
     "time_s,mean_power_w,integral_j,counter_j,idle_share,idle_energy_share,capped_share,heat_share,brake_"
     "share,"
     "temperature_max_c,limit_w,least_energy_j,least_time_s,samples,note\n",
     "flyball.window.csv/2,1700000000.25,epoch,2.5,GPU,0,\"A \"\"big\"\" GPU, "
     "new\",GPU-a,,counter,100.5,0.25,"
     "0.05,2.5,40.2,101,100.25,0.5,0.25,1,0,,60,400,,,25,\n"
     "flyball.window.csv/"
     "2,1700000000.25,epoch,2.5,GPU,1,GPU??,GPU-b,,unavailable,,,,2.5,,,,,,,,,,,60.5,1.5,0,"
     "\"it is \"\"lost\"\", gone\"\n"
     "flyball.window.csv/2,1700000000.25,epoch,2.5,CPU,0,package-0,cpu-0,,estimated,"},
    {FLY_RECORD_JSON, "a\tb", "",
     "{\"schema\":\"flyball.window/2\",\"start_unix_s\":1700000000.25,\"window_name\":\"a\\u0009b\","
     "\"elapsed_s\":2.5,\"devices\":[{\"kind\":\"GPU\",\"index\":0,\"name\":\"A \\\"big\\\" GPU, new\","
     "\"uuid\":\"GPU-a\",\"counted\":true,\"source\":\"counter\",\"energy_j\":100.5,\"uncertainty_j\":0.25,"},
};

static void test_forms(void **state)
{
    char text[8192];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fly_measurement measured = make_measurement(cases[i].name);
        int length = fly_record_header(meter, cases[i].form, text, sizeof text);

        assert_string_equal(text, cases[i].header);
        assert_int_equal(length, strlen(text));
        length = fly_record_window(meter, &measured, cases[i].form, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(text[length - 1], '\n');
        text[strlen(cases[i].lines)] = '\0';
        assert_string_equal(text, cases[i].lines);
    }
}

/* What is written as JSON is JSON, on one line, and null has its reason. */
static void test_json_is_read_back(void **state)
{
    struct fly_measurement measured = make_measurement("\x01\xff\"\\");
    char text[8192];
    json_t *document;
    const json_t *lost;

    (void)state;
    fly_record_window(meter, &measured, FLY_RECORD_JSON, text, sizeof text);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    document = json_loads(text, 0, NULL);
    assert_non_null(document);
    assert_int_equal(json_array_size(json_object_get(document, "devices")), 3);
    lost = json_array_get(json_object_get(document, "devices"), 1);
    assert_true(json_is_null(json_object_get(lost, "energy_j")));
    assert_string_equal(json_string_value(json_object_get(lost, "energy_j_unavailable")),
                        "it is \"lost\", gone");
    json_decref(document);
}

/* Names of windows keep what is UTF-8, and nothing else. */
static void test_utf8(void **state)
{
    static const struct {
        const char *name, *written;
    } names[] = {
        {"\xc3\xa9poque", "\xc3\xa9poque"},
        {"\xe2\x82\xac \xf0\x9f\x8d\x83", "\xe2\x82\xac \xf0\x9f\x8d\x83"},
        {"\xc0\xaf", "??"},           /* too long a form */
        {"\xed\xa0\x80", "???"},      /* half a surrogate pair */
        {"\xf4\x90\x80\x80", "????"}, /* beyond the last character */
        {"\xe2\x82", "??"},           /* cut */
        {"a\xf0\x9f\x8d", "a???"},
    };
    char text[8192];
    char expected[128];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct fly_measurement measured = make_measurement(names[i].name);
        json_t *document;

        measured.devices = NULL;
        fly_record_window(meter, &measured, FLY_RECORD_JSON, text, sizeof text);
        snprintf(expected, sizeof expected, "\"window_name\":\"%s\",", names[i].written);
        check_contains(text, expected);
        document = json_loads(text, 0, NULL);
        assert_non_null(document);
        json_decref(document);
    }
}

static void test_short_buffers(void **state)
{
    struct fly_measurement measured = make_measurement("epoch");
    char whole[8192];
    char part[16];
    int length;

    (void)state;
    length = fly_record_window(meter, &measured, FLY_RECORD_CSV, whole, sizeof whole);
    assert_int_equal(fly_record_window(meter, &measured, FLY_RECORD_CSV, NULL, 0), length);
    assert_int_equal(fly_record_window(meter, &measured, FLY_RECORD_CSV, part, sizeof part), length);
    assert_memory_equal(part, whole, sizeof part - 1);
    assert_int_equal(part[sizeof part - 1], '\0');
    assert_int_equal(fly_record_window(meter, &measured, (enum fly_record_form)77, part, sizeof part),
                     FLY_EUSAGE);
    assert_int_equal(fly_record_header(meter, (enum fly_record_form) - 1, part, sizeof part), FLY_EUSAGE);
    measured.device_capacity = 1;
    fly_record_window(meter, &measured, FLY_RECORD_CSV_GPUS, whole, sizeof whole);
    assert_string_equal(whole, "1700000000.25,epoch,2.5,100.5,\n");
    measured.devices = NULL;
    fly_record_window(meter, &measured, FLY_RECORD_CSV_GPUS, whole, sizeof whole);
    assert_string_equal(whole, "1700000000.25,epoch,2.5,,\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_json_is_read_back),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_short_buffers),
    };

    return cmocka_run_group_tests_name("record", tests, make_meter, free_meter);
}
