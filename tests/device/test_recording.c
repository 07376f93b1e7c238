/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what was said is what is played, and a broken file says where it is broken. */
#include "test.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/open/backends.h"
#include "device/recording/recording.h"
#include "meter/meter.h"

enum { ROUNDS = 200, INTERVAL_NS = 100000000 };

/* A clock that stands where it is put. */
static struct mono_time virtual_now(void *state)
{
    return *(struct mono_time *)state;
}

static struct wall_time virtual_date(void *state)
{
    (void)state;
    return (struct wall_time){1795278000LL * 1000000000};
}

static void virtual_sleep(void *state, struct mono_time when)
{
    *(struct mono_time *)state = when;
}

static struct mono_time virtual_time;
static const struct clock virtual_clock = {"virtual", virtual_now, virtual_date, virtual_sleep,
                                           &virtual_time};

/* Devices that say what the round and their place make them say. */
static struct reading said(size_t device, int quantity, int round)
{
    if (quantity == QUANTITY_ENERGY && device < 2)
        return (struct reading){.state = READING_OK,
                                .value = (int64_t)round * 31000000 * (int64_t)(device + 1)};
    if (quantity == QUANTITY_POWER_INSTANT)
        return round % 50 == 49 ? (struct reading){.state = READING_LOST, .code = 15}
                                : (struct reading){.state = READING_OK, .value = 300000 + round % 7};
    if (quantity == QUANTITY_POWER_LIMIT)
        return (struct reading){.state = READING_DENIED, .code = 4};
    if (quantity == QUANTITY_TEMPERATURE)
        return (struct reading){.state = READING_OK, .value = -3 + round / 40};
    return (struct reading){.state = READING_UNSUPPORTED, .code = 3};
}

static const struct device_backend fake = {.name = "fake", .title = "devices of a test"};
static struct device_list devices;

static int make_devices(void **state)
{
    static const struct device_info infos[] = {
        {.kind = DEVICE_GPU,
         .name = "NVIDIA \"X\" \\ \xff",
         .uuid = "GPU-1",
         .pci = "00000000:07:00.0",
         .driver = "550.54.14",
         .minor = 0,
         .emulated = true,
         .sensor = {0.02, 0.1, 0.025, true, 0.05, "a paper"},
         .note = "a note"},
        {.kind = DEVICE_CPU,
         .name = "package-0",
         .uuid = "cpu-0",
         .minor = -1,
         .energy_modulus_uj = 262143328850},
        {.kind = DEVICE_DRAM, .uuid = "dram-0", .minor = -1},
    };
    struct fly_error error;

    (void)state;
    memset(&devices, 0, sizeof devices);
    for (size_t i = 0; i < COUNT(infos); i++)
        assert_int_equal(device_list_add(&devices, &fake, &infos[i], NULL, &error), 0);
    return 0;
}

static void add_round(struct recording_writer *writer, int round)
{
    for (size_t d = 0; d < devices.count; d++) {
        struct device_reading reading = {
            .before = {virtual_time.ns + (int64_t)d * 1000},
            .after = {virtual_time.ns + (int64_t)d * 1000 + 500},
        };

        for (int q = 0; q < QUANTITY_COUNT; q++)
            reading.values[q] = said(d, q, round);
        recording_writer_add(writer, d, QUANTITY_ALL & ~QUANTITY_BIT(QUANTITY_MIG), &reading);
    }
}

/* A recording of ROUNDS rounds, as text that the caller frees. */
static char *make_recording(bool ended)
{
    struct recording_writer *writer = malloc(sizeof *writer);
    struct fly_error error;
    char *text;

    assert_non_null(writer);
    virtual_time.ns = 5000000000;
    assert_int_equal(recording_writer_init(writer, &devices, &virtual_clock, 0.1, &error), 0);
    for (int round = 0; round < ROUNDS; round++) {
        add_round(writer, round);
        virtual_time.ns += INTERVAL_NS;
    }
    if (ended)
        recording_writer_end(writer, virtual_time);
    assert_int_equal(writer->lines.error, 0);
    text = strdup(writer->lines.data);
    recording_writer_deinit(writer);
    free(writer);
    return text;
}

static int load(const char *text, size_t length, struct recording **out, struct fly_error *out_error)
{
    char *copy = malloc(length + 1);
    FILE *stream;
    int code;

    assert_non_null(copy);
    memcpy(copy, text, length);
    stream = fmemopen(copy, length, "r");
    assert_non_null(stream);
    code = recording_load_stream("f.jsonl", stream, out, out_error);
    fclose(stream);
    free(copy);
    return code;
}

static void check_value(struct reading got, struct reading expected)
{
    assert_int_equal(got.state, expected.state);
    if (expected.state == READING_OK)
        assert_int_equal(got.value, expected.value);
    else
        assert_int_equal(got.code, expected.code);
}

static void check_rounds(const struct recording *recording, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        int64_t at_ns = (int64_t)round * INTERVAL_NS + 3000;

        if (at_ns > recording_end_ns(recording))
            break;
        for (size_t d = 0; d < devices.count; d++) {
            for (int q = 0; q < QUANTITY_MIG; q++)
                check_value(recording_at(recording, d, (enum quantity)q, at_ns), said(d, q, round));
            assert_int_equal(recording_at(recording, d, QUANTITY_MIG, at_ns).state, READING_NOT_READ);
        }
    }
}

static void test_what_was_said_is_kept(void **state)
{
    char *text = make_recording(true);
    struct recording *recording;
    struct fly_error error;

    (void)state;
    assert_int_equal(load(text, strlen(text), &recording, &error), 0);
    assert_int_equal(recording_device_count(recording), devices.count);
    assert_true(recording_ended(recording));
    assert_int_equal(recording_end_ns(recording), (int64_t)ROUNDS * INTERVAL_NS);
    assert_int_equal(recording_date(recording).ns, virtual_date(NULL).ns);
    check_double(recording_interval_s(recording), 0.1);
    check_close(recording_gap_s(recording, 2), 0.1, 1e-9);
    check_rounds(recording, ROUNDS);
    /* Before the first word the first; one past the end nothing. */
    check_value(recording_at(recording, 1, QUANTITY_ENERGY, 0), said(1, QUANTITY_ENERGY, 0));
    assert_int_equal(recording_at(recording, 0, QUANTITY_ENERGY, recording_end_ns(recording)).state,
                     READING_OK);
    assert_int_equal(recording_at(recording, 0, QUANTITY_ENERGY, recording_end_ns(recording) + 1).state,
                     READING_ENDED);
    recording_free(recording);
    free(text);
}

static void test_facts_are_kept(void **state)
{
    char *text = make_recording(true);
    struct recording *recording;
    struct fly_error error;
    const struct device_info *info;

    (void)state;
    assert_int_equal(load(text, strlen(text), &recording, &error), 0);
    info = recording_device(recording, 0);
    assert_string_equal(info->name, "NVIDIA \"X\" \\ ?");
    assert_string_equal(info->pci, devices.devices[0].info.pci);
    assert_string_equal(info->driver, devices.devices[0].info.driver);
    assert_string_equal(info->note, "a note");
    assert_true(info->emulated && !info->mig && info->minor == 0);
    check_double(info->sensor.counter_period_s, 0.02);
    check_double(info->sensor.power_window_s, 0.025);
    check_double(info->sensor.gain_error, 0.05);
    assert_true(info->sensor.counter_from_power);
    assert_string_equal(info->sensor.source, "a paper");
    info = recording_device(recording, 1);
    assert_int_equal(info->kind, DEVICE_CPU);
    assert_int_equal(info->energy_modulus_uj, 262143328850);
    assert_int_equal(info->minor, -1);
    check_double(info->sensor.counter_period_s, 0.0);
    assert_null(info->sensor.source);
    recording_free(recording);
    free(text);
}

/* Unchanged values cost nothing, and no line is long. */
static void test_compact(void **state)
{
    char *text = make_recording(true);

    (void)state;
    assert_true(strlen(text) < 3000 + ROUNDS * (size_t)180);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        assert_true(strchr(line, '\n') - line <= RECORDING_LINE_MAX);
    free(text);
}

/* Bytes before the first reading: behind the header and the lines of the devices. */
static size_t head_length(const char *text)
{
    const char *at = text;

    for (size_t i = 0; i < devices.count + 1; i++)
        at = strchr(at, '\n') + 1;
    return (size_t)(at - text);
}

static void test_torn_off_anywhere(void **state)
{
    char *text = make_recording(true);
    size_t head = head_length(text), length = strlen(text);

    (void)state;
    for (size_t cut = head; cut < length; cut += 1 + (cut - head) / 40) {
        struct recording *recording;
        struct fly_error error;

        assert_int_equal(load(text, cut, &recording, &error), 0);
        assert_true(!recording_ended(recording) || cut == length - 1);
        check_rounds(recording, ROUNDS);
        recording_free(recording);
    }
    for (size_t cut = 1; cut < head - 1; cut += 7) {
        struct recording *recording;
        struct fly_error error;

        assert_int_equal(load(text, cut, &recording, &error), FLY_EDATA);
        check_contains(error.text, "f.jsonl:");
    }
    free(text);
}

/* What a file system may leave after a power cut: the right length, and zeros. */
static void test_end_of_zeros(void **state)
{
    char *text = make_recording(false);
    size_t length = strlen(text), keep = length - 500;
    struct recording *recording;
    struct fly_error error;

    (void)state;
    memset(text + keep, 0, length - keep);
    assert_int_equal(load(text, length, &recording, &error), 0);
    assert_false(recording_ended(recording));
    check_rounds(recording, ROUNDS);
    recording_free(recording);
    free(text);
}

#define HEAD                           \
    "{\"schema\":\"flyball.recording/" \
    "1\",\"date\":\"2026-11-21T16:20:00Z\",\"interval_s\":0.1,\"devices\":1}\n"
#define DEVICE "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"GPU-1\",\"sensor\":{}}\n"

static void test_broken_files_say_where(void **state)
{
    static const struct {
        const char *text, *says;
        const char *also;
    } cases[] = {
        {"x\n", "f.jsonl:1:1: expected one JSON object in the line", "'flyball record'"},
        {"[]\n", "f.jsonl:1:1: expected one JSON object", ""},
        {"{}\n", "f.jsonl:1: field 'schema': expected \"flyball.recording/1\", found nothing", ""},
        {"{\"schema\":\"flyball.recording/2\"}\n", "found \"flyball.recording/2\"", ""},
        {"{\"schema\":\"flyball.recording/"
         "1\",\"date\":\"2026-11-21T16:20:00Z\",\"interval_s\":1,\"devices\":129}\n",
         "field 'devices': expected a number", "129"},
        {"{\"schema\":\"flyball.recording/"
         "1\",\"date\":\"2026-11-21T16:20:00Z\",\"devices\":1,\"interval_s\":-1}\n",
         "field 'interval_s'", "-1"},
        {"{\"schema\":\"flyball.recording/1\",\"devices\":1,\"interval_s\":1,\"date\":\"today\"}\n",
         "field 'date'", "\"today\""},
        {HEAD, "f.jsonl:2: the recording ends before the lines of its devices", "record again"},
        {HEAD "{\"device\":1,\"kind\":\"GPU\",\"sensor\":{}}\n", "f.jsonl:2: field 'device'",
         "counted from 0"},
        {HEAD "{\"device\":0,\"kind\":\"TPU\"}\n", "f.jsonl:2: field 'kind'", "\"TPU\""},
        {HEAD "{\"device\":0,\"kind\":\"GPU\",\"sensor\":{}}\n", "f.jsonl:2: field 'uuid'", "found nothing"},
        {HEAD "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"u\",\"minor\":-2,\"sensor\":{}}\n", "field 'minor'",
         "-2"},
        {HEAD "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"u\",\"mig\":1,\"sensor\":{}}\n", "field 'mig'",
         "true or"},
        {HEAD "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"u\",\"energy_modulus_uj\":0,\"sensor\":{}}\n",
         "field 'energy_modulus_uj'", "or null"},
        {HEAD "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"u\",\"sensor\":7}\n", "field 'sensor'", "7"},
        {HEAD "{\"device\":0,\"kind\":\"GPU\",\"uuid\":\"u\",\"sensor\":{\"gain_error\":0}}\n",
         "field 'sensor.gain_error'", "or null"},
        {HEAD DEVICE "{\"t\":-1,\"d\":0}\n", "f.jsonl:3: field 't': expected nanoseconds", "head -n 2"},
        {HEAD DEVICE "{\"t\":1.5,\"d\":0}\n", "f.jsonl:3: field 't'", "1.5"},
        {HEAD DEVICE "{\"t\":1,\"d\":1}\n", "f.jsonl:3: field 'd'", "one of the devices"},
        {HEAD DEVICE "{\"t\":5,\"d\":0}\n{\"t\":4,\"d\":0}\n", "f.jsonl:4: field 't'", "not before"},
        {HEAD DEVICE "{\"t\":5,\"end\":true,\"later\":1}\n{\"t\":6,\"d\":0}\n", "f.jsonl:4: field 't'",
         "behind the end"},
        {HEAD DEVICE "{\"t\":5,\"end\":false,\"later\":1}\n", "f.jsonl:3: field 'later'", "found 1"},
        {HEAD DEVICE "{\"t\":5,\"d\":0}\n{\"t\":4,\"end\":true}\n", "f.jsonl:4: field 't'", "an end"},
        {HEAD DEVICE "{\"t\":5,\"end\":true}\n{\"t\":6,\"d\":0}\n", "f.jsonl:4: field 't'", "behind the end"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"joules\":1}\n", "f.jsonl:3: field 'joules'", "this version knows"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"power_mw\":1.5}\n", "f.jsonl:3: field 'power_mw'", "a whole number"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"power_mw\":null}\n", "field 'power_mw'", "null"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"power_mw\":[\"ok\",0]}\n", "field 'power_mw[0]'", "\"ok\""},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"power_mw\":[\"lost\",0]}\n", "field 'power_mw[0]'",
         "a state of a reading"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"power_mw\":[\"failed\"]}\n", "field 'power_mw'", "[\"failed\"]"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"power_mw\":1,\"power_mw\":2}\n", "f.jsonl:3:", "duplicate"},
        {HEAD DEVICE "{\"t\":1,\"d\":0,\"energy_uj\":9223372036854775808}\n", "f.jsonl:3:", "big"},
        {HEAD DEVICE "{\"t\":1,\"d\"\n{\"t\":2,\"d\":0}\n", "f.jsonl:3:", "expected one JSON object"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recording *recording;
        struct fly_error error = {0};

        assert_int_equal(load(cases[i].text, strlen(cases[i].text), &recording, &error), FLY_EDATA);
        check_contains(error.text, cases[i].says);
        check_contains(error.text, cases[i].also);
    }
}

static void test_long_lines_are_refused(void **state)
{
    static char text[2 * RECORDING_LINE_MAX];
    struct recording *recording;
    struct fly_error error;

    (void)state;
    memset(text, ' ', sizeof text);
    assert_int_equal(load(text, sizeof text, &recording, &error), FLY_EDATA);
    check_contains(error.text, "f.jsonl:1: the line is longer than 8192 bytes");
}

/* A file with the text; the caller removes it. */
static void write_file(char *path, const char *text)
{
    int descriptor = mkstemp(path);

    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    close(descriptor);
}

static void test_replay_plays_by_the_clock(void **state)
{
    char path[] = "/tmp/flyball-recording-XXXXXX", *text = make_recording(true);
    struct device_options options = {.replay_path = path, .clock = &virtual_clock};
    static struct device_list list;
    struct mallinfo2 before, after;
    struct device_reading reading;
    struct fly_error error;

    (void)state;
    write_file(path, text);
    free(text);
    virtual_time.ns = 77;
    assert_int_equal(device_list_open(&options, &list, &error), 0);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.reports[0].found, 3);
    check_contains(list.devices[0].info.note, "a recording of 2026-11-21 16:20 UTC; a note");
    check_close(list.devices[0].info.sensor.counter_period_s, 0.12, 1e-9);
    check_close(list.devices[0].info.sensor.power_period_s, 0.1, 1e-9);
    for (int round = 0; round < ROUNDS; round += 17) {
        virtual_time.ns = 77 + (int64_t)round * INTERVAL_NS + 5000;
        device_read(&list.devices[1], &virtual_clock, QUANTITY_BIT(QUANTITY_ENERGY), &reading);
        check_value(reading.values[QUANTITY_ENERGY], said(1, QUANTITY_ENERGY, round));
        assert_int_equal(reading.values[QUANTITY_POWER_INSTANT].state, READING_NOT_READ);
    }
    before = mallinfo2();
    for (int i = 0; i < 1000; i++)
        device_read(&list.devices[0], &virtual_clock, QUANTITY_ALL, &reading);
    after = mallinfo2();
    assert_int_equal(after.uordblks, before.uordblks);
    virtual_time.ns = 78 + (int64_t)ROUNDS * INTERVAL_NS;
    device_read(&list.devices[1], &virtual_clock, QUANTITY_ALL, &reading);
    assert_int_equal(reading.values[QUANTITY_ENERGY].state, READING_ENDED);
    assert_int_equal(reading.values[QUANTITY_MIG].state, READING_NOT_READ);
    device_list_close(&list);
    unlink(path);
    assert_int_equal(device_list_open(&options, &list, &error), FLY_ENOTFOUND);
    check_contains(error.text, path);
}

/* What a meter makes of the played devices is what their recorded counters say. */
static void test_meter_over_a_replay(void **state)
{
    char path[] = "/tmp/flyball-recording-XXXXXX", *text = make_recording(true);
    struct device_options options = {.replay_path = path, .clock = &virtual_clock};
    static struct device_list list;
    struct meter_parts parts = {.devices = &list, .clock = &virtual_clock, .threadless = true};
    struct fly_device_energy energies[3];
    struct fly_measurement measured = {.size = sizeof measured, .devices = energies, .device_capacity = 3};
    int64_t end_ns = 155 * (int64_t)INTERVAL_NS;
    struct fly_error error = {0};
    struct fly_meter *meter;
    fly_window window;

    (void)state;
    write_file(path, text);
    free(text);
    virtual_time.ns = 0;
    assert_int_equal(device_list_open(&options, &list, &error), 0);
    assert_int_equal(meter_new(&parts, &meter, &error), 0);
    virtual_time.ns = 30 * (int64_t)INTERVAL_NS + 5000;
    assert_int_equal(fly_meter_begin(meter, "replayed", &window, &error), 0);
    for (struct mono_time next = meter_next_sample(meter); next.ns < end_ns;
         next = meter_next_sample(meter)) {
        virtual_time.ns = next.ns > virtual_time.ns ? next.ns : virtual_time.ns;
        meter_sample(meter);
    }
    virtual_time.ns = end_ns + 5000;
    assert_int_equal(fly_meter_end(meter, window, &measured, &error), 0);
    for (size_t d = 0; d < 2; d++) {
        assert_int_equal(energies[d].source, FLY_ENERGY_COUNTER);
        /* 310 W and 620 W by the counters. */
        check_close(energies[d].energy_j, 31.0 * (double)(d + 1) * 125, 1e-9);
        assert_true(energies[d].uncertainty_j > 0);
    }
    assert_int_equal(energies[2].source, FLY_ENERGY_INTEGRATED);
    check_close(energies[2].energy_j, 300.003 * 12.5, 0.02);
    fly_meter_close(meter);
    device_list_close(&list);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_said_is_kept),
        cmocka_unit_test(test_facts_are_kept),
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_torn_off_anywhere),
        cmocka_unit_test(test_end_of_zeros),
        cmocka_unit_test(test_broken_files_say_where),
        cmocka_unit_test(test_long_lines_are_refused),
        cmocka_unit_test(test_replay_plays_by_the_clock),
        cmocka_unit_test(test_meter_over_a_replay),
    };

    return cmocka_run_group_tests(tests, make_devices, NULL);
}
