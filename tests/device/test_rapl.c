/* SPDX-License-Identifier: Apache-2.0 */
/* CPU packages and memory by powercap, over made-up trees. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "device/cpu/rapl_domain.h"
#include "device/open/backends.h"
#include "device/sysfs.h"
#include "fake_tree.h"
#include "test.h"

#define POWERCAP "sys/class/powercap/"
#define RANGE_UJ "262143328850\n" /* of a 32-bit register in units of 61035 nJ, as many servers have it */

static struct device_list list;

static int set_up(void **state)
{
    (void)state;
    fake_tree_make();
    list.count = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_tree_be_myself_again();
    fake_tree_remove();
    return 0;
}

/* A zone as the kernel shows it; `energy` is text, so that it can be garbage. */
static void put_zone(const char *zone, const char *name, const char *energy)
{
    fake_tree_put_in(zone, "name", name);
    fake_tree_put_in(zone, "max_energy_range_uj", RANGE_UJ);
    fake_tree_put_in(zone, "energy_uj", energy);
}

/* Opens powercap alone, as the list would; its code. */
static int open_powercap(struct fly_error *out_error)
{
    struct device_options options = {.sysfs_root = fake_tree_root()};

    memset(&list, 0, sizeof list);
    return device_backend_rapl_powercap.open(&options, &list, out_error);
}

static struct reading read_one(size_t place, enum quantity quantity)
{
    struct device_reading reading;

    device_read(&list.devices[place], &clock_real, QUANTITY_BIT(quantity), &reading);
    return reading.values[quantity];
}

static void check_energy(size_t place, int64_t expected_uj)
{
    struct reading energy = read_one(place, QUANTITY_ENERGY);

    assert_int_equal(energy.state, READING_OK);
    assert_int_equal(energy.value, expected_uj);
}

static void check_failed(size_t place, enum reading_state expected)
{
    assert_string_equal(reading_state_word(read_one(place, QUANTITY_ENERGY).state),
                        reading_state_word(expected));
}

/* The devices' uuids in order, as one text. */
static const char *uuids(void)
{
    static char text[512];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list.count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "",
                                   list.devices[i].info.uuid);
    return text;
}

/* Two sockets as on real machines: zones in the virtual device's directory, links in the class. */
static void put_server(void)
{
    static const struct {
        const char *path, *name, *energy;
    } zones[] = {
        {"intel-rapl:0", "package-0\n", "1000\n"},
        {"intel-rapl:0/intel-rapl:0:0", "dram\n", "200\n"},
        {"intel-rapl:0/intel-rapl:0:1", "core\n", "30\n"},
        {"intel-rapl:0/intel-rapl:0:2", "uncore\n", "40\n"},
        {"intel-rapl:1", "package-1\n", "1001\n"},
        {"intel-rapl:1/intel-rapl:1:0", "dram\n", "201\n"},
        {"intel-rapl:2", "psys\n", "5000\n"},
    };

    for (size_t i = 0; i < COUNT(zones); i++) {
        char path[256], link[256], target[256];

        snprintf(path, sizeof path, "sys/devices/virtual/powercap/intel-rapl/%s", zones[i].path);
        put_zone(path, zones[i].name, zones[i].energy);
        snprintf(link, sizeof link, POWERCAP "%s",
                 strrchr(zones[i].path, '/') != NULL ? strrchr(zones[i].path, '/') + 1 : zones[i].path);
        snprintf(target, sizeof target, "../../devices/virtual/powercap/intel-rapl/%s", zones[i].path);
        fake_tree_link(link, target);
    }
    fake_tree_link(POWERCAP "intel-rapl", "../../devices/virtual/powercap/intel-rapl");
    put_zone(POWERCAP "intel-rapl-mmio:0", "package-0\n", "77\n");
    put_zone(POWERCAP "intel-rapl-mmio/intel-rapl-mmio:0", "package-0\n", "77\n");
}

static void test_server(void **state)
{
    int files = fake_tree_open_files();
    struct fly_error error;

    (void)state;
    put_server();
    assert_int_equal(open_powercap(&error), 0);
    assert_string_equal(uuids(), "cpu-0 cpu-1 dram-0 dram-1");
    assert_string_equal(list.devices[0].info.name, "package-0");
    assert_string_equal(list.devices[3].info.name, "package-1 dram");
    assert_int_equal(list.devices[3].info.index, 1);
    assert_false(list.devices[0].info.estimated);
    check_double(list.devices[0].info.sensor.counter_period_s, 0.001);
    check_energy(0, 1000);
    check_energy(1, 1001);
    check_energy(2, 200);
    check_energy(3, 201);
    assert_int_equal(read_one(0, QUANTITY_POWER_INSTANT).state, READING_UNSUPPORTED);
    device_list_close(&list);
    assert_int_equal(fake_tree_open_files(), files);
}

/* Every layout in which the same zones are found, and what each of them gives. */
static void test_layouts(void **state)
{
    static const struct {
        const char *zones[6][2]; /* path below the class, name */
        const char *cpu;         /* of /proc/cpuinfo, or NULL */
        const char *uuids;
    } cases[] = {
        {{{"intel-rapl:0", "package-0"}}, NULL, "cpu-0"},
        {{{"intel-rapl/intel-rapl:0", "package-0"}, {"intel-rapl/intel-rapl:0/intel-rapl:0:2", "dram"}},
         NULL,
         "cpu-0 dram-0"},
        {{{"intel-rapl:0", "package-0"}, {"intel-rapl:0:1", "dram"}}, NULL, "cpu-0 dram-0"},
        {{{"intel-rapl:10", "package-10"}, {"intel-rapl:9", "package-9"}}, NULL, "cpu-9 cpu-10"},
        {{{"intel-rapl:0", "package-0-die-0"},
          {"intel-rapl:1", "package-0-die-1"},
          {"intel-rapl:0:0", "dram"},
          {"intel-rapl:1:0", "dram"}},
         NULL,
         "cpu-0-die-0 cpu-0-die-1 dram-0-die-0 dram-0-die-1"},
        {{{"intel-rapl:0", "package-0"}, {"intel-rapl:0:0", "core"}},
         "processor\t: 0\nvendor_id\t: AuthenticAMD\n",
         "cpu-0"},
        {{{"intel-rapl:0", "package-0-die-0"},
          {"intel-rapl:1", "package-0-die-1"},
          {"intel-rapl:2", "package-1-die-0"}},
         "vendor_id\t: AuthenticAMD\n",
         "cpu-0 cpu-1"},
        {{{"intel-rapl:0", "package-0"}, {"intel-rapl:1", "package-0"}, {"intel-rapl:2", "psys"}},
         NULL,
         "cpu-0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (i > 0)
            fake_tree_make();
        for (size_t j = 0; j < COUNT(cases[i].zones) && cases[i].zones[j][0] != NULL; j++) {
            char path[256];

            snprintf(path, sizeof path, POWERCAP "%s", cases[i].zones[j][0]);
            put_zone(path, cases[i].zones[j][1], "5\n");
        }
        if (cases[i].cpu != NULL)
            fake_tree_put("proc/cpuinfo", cases[i].cpu);
        assert_int_equal(open_powercap(NULL), 0);
        assert_string_equal(uuids(), cases[i].uuids);
        device_list_close(&list);
        if (i + 1 < COUNT(cases))
            fake_tree_remove();
    }
}

static void test_nothing_there(void **state)
{
    static const char *const names[] = {"psys\n",
                                        "package-\n",
                                        "package-x\n",
                                        "package-0-die-\n",
                                        "package--1\n",
                                        "\n",
                                        "package-99999999999999999999\n"};
    struct fly_error error = {0};

    (void)state;
    assert_int_equal(open_powercap(&error), FLY_EUNSUPPORTED);
    check_contains(error.text, "modprobe intel_rapl_msr");
    for (size_t i = 0; i < COUNT(names); i++) {
        put_zone(POWERCAP "intel-rapl:0", names[i], "5\n");
        assert_int_equal(open_powercap(&error), FLY_EUNSUPPORTED);
        assert_int_equal(list.count, 0);
    }
}

/* The whole counter in units: its modulus is 2^32 of them, rounded to the microjoule. */
static void test_modulus(void **state)
{
    static const struct {
        uint64_t range_uj, modulus_uj;
    } cases[] = {
        {262143328850, 262143328911}, /* 61035 nJ */
        {65532610987, 65532611002},   /* 15258 nJ */
        {65712999613, 65712999629},   /* 15300 nJ: memory of Haswell servers */
        {1000, 1001},                 /* no register: the last microjoule and one more */
        {262143328851, 262143328852},
        {UINT64_MAX - 1, UINT64_MAX},
        {0, 0},
        {UINT64_MAX, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(rapl_modulus_uj(cases[i].range_uj), cases[i].modulus_uj);
    /* Any unit, not only those that are known. */
    for (uint64_t unit_nj = 1; unit_nj < 2000000; unit_nj += 997) {
        uint64_t modulus_nj = (UINT64_C(1) << 32) * unit_nj;
        uint64_t got = rapl_modulus_uj((modulus_nj - unit_nj) / 1000);

        assert_in_range(got, modulus_nj / 1000, modulus_nj / 1000 + 1);
    }
}

/* A register that runs through its wrap, read as the kernel shows it: no joule is lost or made up. */
static void test_wrap(void **state)
{
    const uint64_t unit_nj = 61035, start = UINT32_MAX - 5;
    uint64_t first_uj = 0;

    (void)state;
    for (uint64_t step = 0; step < 12; step++) {
        uint64_t raw = (start + step) & UINT32_MAX, delta_uj;
        struct reading energy;

        put_zone(POWERCAP "intel-rapl:0", "package-0", "");
        fake_tree_put_u64(POWERCAP "intel-rapl:0/energy_uj", raw * unit_nj / 1000);
        assert_int_equal(open_powercap(NULL), 0);
        energy = read_one(0, QUANTITY_ENERGY);
        assert_int_equal(energy.state, READING_OK);
        if (step == 0)
            first_uj = (uint64_t)energy.value;
        assert_true(counter_delta_uj(list.devices[0].info.energy_modulus_uj, first_uj, (uint64_t)energy.value,
                                     &delta_uj));
        assert_in_range(delta_uj + 1, step * unit_nj / 1000, step * unit_nj / 1000 + 2);
        device_list_close(&list);
    }
}

static void test_unknown_range(void **state)
{
    static const char *const ranges[] = {"", "many\n", "-5\n", "0\n"};

    (void)state;
    put_zone(POWERCAP "intel-rapl:0", "package-0", "12\n");
    for (size_t i = 0; i <= COUNT(ranges); i++) {
        if (i < COUNT(ranges))
            fake_tree_put(POWERCAP "intel-rapl:0/max_energy_range_uj", ranges[i]);
        else
            fake_tree_delete(POWERCAP "intel-rapl:0/max_energy_range_uj");
        assert_int_equal(open_powercap(NULL), 0);
        check_energy(0, 12);
        assert_int_equal(list.devices[0].info.energy_modulus_uj, 0);
        check_contains(list.devices[0].info.note, "range is unknown");
        device_list_close(&list);
    }
}

static void test_denied(void **state)
{
    struct fly_error error = {0};

    (void)state;
    put_server();
    fake_tree_mode("sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj", 0);
    fake_tree_be_nobody();
    assert_int_equal(open_powercap(&error), FLY_EPERM);
    check_contains(error.text, "1 of 4");
    check_contains(error.text, "sudo chmod -R a+r /tmp/flyball-tree-");
    assert_string_equal(uuids(), "cpu-0 cpu-1 dram-0 dram-1");
    check_failed(0, READING_DENIED);
    check_energy(1, 1001);
    device_list_close(&list);
}

/* The permission is that of the moment of opening, as in the kernel. */
static void test_privileges_may_be_dropped(void **state)
{
    (void)state;
    put_server();
    assert_int_equal(open_powercap(NULL), 0);
    fake_tree_mode("sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj", 0);
    fake_tree_be_nobody();
    check_energy(0, 1000);
    device_list_close(&list);
}

/* What the counter's file may hold while it is open, and a tree that goes away. */
static void test_odd_contents(void **state)
{
    static const char *const contents[] = {
        "",
        "\n",
        "garbage\n",
        "-1\n",
        "1.5\n",
        "0x5",
        " 5\n",
        "5 uJ\n",
        "18446744073709551616\n",
        "9223372036854775808\n",
        "100000000000000000000000000000000000000000000000000000000000000000000\n"};
    const char *file = POWERCAP "intel-rapl:0/energy_uj";

    (void)state;
    put_zone(POWERCAP "intel-rapl:0", "package-0", "7");
    assert_int_equal(open_powercap(NULL), 0);
    check_energy(0, 7);
    for (size_t i = 0; i < COUNT(contents); i++) {
        fake_tree_put(file, contents[i]);
        check_failed(0, READING_FAILED);
    }
    fake_tree_put(file, "9223372036854775807\n");
    check_energy(0, INT64_MAX);
    fake_tree_delete(file);
    check_energy(0, INT64_MAX);
    device_list_close(&list);
}

/* A line fits with its NUL or is refused whole. */
static void test_lines_fit(void **state)
{
    static const struct {
        const char *content;
        int result;
        const char *text;
    } cases[] = {
        {"", 0, ""},
        {"\n", 0, ""},
        {"123", 3, "123"},
        {"123\n", 3, "123"},
        {"123\n456", 3, "123"},
        {"1234", -EMSGSIZE, NULL},
        {"1234\n", -EMSGSIZE, NULL},
    };
    char path[128], text[5];

    (void)state;
    snprintf(path, sizeof path, "%s/line", fake_tree_root());
    for (size_t i = 0; i < COUNT(cases); i++) {
        fake_tree_put("line", cases[i].content);
        memset(text, '#', sizeof text);
        assert_int_equal(sysfs_read_text(path, text, 4), cases[i].result);
        if (cases[i].text != NULL)
            assert_string_equal(text, cases[i].text);
        assert_int_equal(text[4], '#');
    }
    assert_int_equal(sysfs_read_text("/nonexistent", text, 4), -ENOENT);
}

static void test_errors_have_states(void **state)
{
    static const struct {
        int error;
        enum reading_state state;
    } cases[] = {
        {EACCES, READING_DENIED}, {EPERM, READING_DENIED}, {ENODEV, READING_LOST}, {ENXIO, READING_LOST},
        {EIO, READING_FAILED},    {EBADF, READING_FAILED}, {0, READING_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reading reading = sysfs_failed_reading(cases[i].error);

        assert_int_equal(reading.state, cases[i].state);
        assert_int_equal(reading.code, cases[i].error);
    }
}

/* A zone without a counter is there and says that it has none. */
static void test_no_counter(void **state)
{
    (void)state;
    put_zone(POWERCAP "intel-rapl:0", "package-0", "7");
    fake_tree_delete(POWERCAP "intel-rapl:0/energy_uj");
    assert_int_equal(open_powercap(NULL), 0);
    check_failed(0, READING_UNSUPPORTED);
    device_list_close(&list);
}

/* More than a list holds: an error, and no descriptor is left behind. */
static void test_too_many(void **state)
{
    struct device_options options = {.sysfs_root = fake_tree_root(),
                                     .nvml_path = "/nonexistent/libnvidia-ml.so.1",
                                     .amdsmi_path = "/nonexistent/libamd_smi.so"};
    int files = fake_tree_open_files();
    struct fly_error error = {0};

    (void)state;
    for (int i = 0; i <= DEVICES_MAX; i++) {
        char zone[64], name[32];

        snprintf(zone, sizeof zone, POWERCAP "intel-rapl:%d", i);
        snprintf(name, sizeof name, "package-%d\n", i);
        put_zone(zone, name, "5\n");
    }
    assert_int_equal(device_list_open(&options, &list, &error), FLY_ELIMIT);
    assert_int_equal(error.code, FLY_ELIMIT);
    assert_int_equal(fake_tree_open_files(), files);
}

static void *read_often(void *data)
{
    (void)data;
    for (int i = 0; i < 2000; i++)
        check_energy(0, 1000);
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];

    (void)state;
    put_server();
    assert_int_equal(open_powercap(NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    device_list_close(&list);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_server),        TREE_TEST(test_layouts),
        TREE_TEST(test_nothing_there), cmocka_unit_test(test_modulus),
        TREE_TEST(test_wrap),          TREE_TEST(test_unknown_range),
        TREE_TEST(test_denied),        TREE_TEST(test_privileges_may_be_dropped),
        TREE_TEST(test_lines_fit),     cmocka_unit_test(test_errors_have_states),
        TREE_TEST(test_odd_contents),  TREE_TEST(test_no_counter),
        TREE_TEST(test_too_many),      TREE_TEST(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
