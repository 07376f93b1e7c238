/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU packages and memory by perf events, over made-up trees and a made-up
 * kernel: machines that run tests rarely have the events. Beside powercap too,
 * since each domain counts once whichever way it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "device/cpu/perf_text.h"
#include "device/cpu/rapl_perf.h"
#include "device/open/backends.h"
#include "fake_tree.h"
#include "test.h"

#define POWER "sys/bus/event_source/devices/power"
#define SCALE "2.3283064365386962890625e-10" /* 2^-32, as the kernel spells it */

enum { EVENTS_MAX = 32, TYPE = 9, PKG = 2, RAM = 3 };

static struct device_list list;

/* The made-up kernel: what was opened, and how it answers. */
static struct {
    struct {
        int file;
        uint64_t config;
        unsigned cpu;
    } events[EVENTS_MAX];
    size_t count;
    int open_error, read_error;
    uint64_t fixed; /* what reads return instead, if not 0 */
} kernel;

static int fake_open(uint32_t type, uint64_t config, unsigned cpu)
{
    int file;

    assert_int_equal(type, TYPE);
    if (kernel.open_error != 0)
        return -kernel.open_error;
    file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && kernel.count < EVENTS_MAX);
    kernel.events[kernel.count].file = file;
    kernel.events[kernel.count].config = config;
    kernel.events[kernel.count++].cpu = cpu;
    return file;
}

/* Joules that tell the event and the processor apart: 2000 + cpu for a package, 3000 + cpu for memory. */
static int fake_read(int file, uint64_t *out_count)
{
    if (kernel.read_error != 0)
        return -kernel.read_error;
    for (size_t i = kernel.count; i-- > 0;) {
        if (kernel.events[i].file == file) {
            *out_count = kernel.fixed != 0 ? kernel.fixed
                                           : (kernel.events[i].config * 1000 + kernel.events[i].cpu) << 32;
            return 0;
        }
    }
    return -EBADF;
}

static int set_up(void **state)
{
    static const struct perf_calls calls = {fake_open, fake_read};

    (void)state;
    fake_tree_make();
    memset(&kernel, 0, sizeof kernel);
    rapl_perf_set_calls(&calls);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rapl_perf_set_calls(NULL);
    fake_tree_be_myself_again();
    fake_tree_remove();
    return 0;
}

static void put_event(const char *name, const char *event, const char *scale, const char *unit)
{
    char file[64];

    fake_tree_put_in(POWER "/events", name, event);
    snprintf(file, sizeof file, "%s.scale", name);
    fake_tree_put_in(POWER "/events", file, scale);
    snprintf(file, sizeof file, "%s.unit", name);
    fake_tree_put_in(POWER "/events", file, unit);
}

static void put_topology(unsigned cpu, unsigned package, unsigned die)
{
    char path[128];

    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    fake_tree_put_u64(path, package);
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/topology/die_id", cpu);
    fake_tree_put_u64(path, die);
}

/* Two sockets of 28 processors with all events that there are. */
static void put_server(void)
{
    fake_tree_put(POWER "/type", "9\n");
    fake_tree_put(POWER "/cpumask", "0,28\n");
    put_event("energy-pkg", "event=0x02\n", SCALE "\n", "Joules\n");
    put_event("energy-ram", "event=0x03\n", SCALE "\n", "Joules\n");
    put_event("energy-cores", "event=0x01\n", SCALE "\n", "Joules\n");
    put_event("energy-psys", "event=0x05\n", SCALE "\n", "Joules\n");
    put_topology(0, 0, 0);
    put_topology(28, 1, 0);
}

static void put_zone(const char *zone, const char *name, const char *energy)
{
    char directory[128];

    snprintf(directory, sizeof directory, "sys/class/powercap/%s", zone);
    fake_tree_put_in(directory, "name", name);
    fake_tree_put_in(directory, "max_energy_range_uj", "262143328850\n");
    fake_tree_put_in(directory, "energy_uj", energy);
}

static void deny_zone(const char *zone)
{
    char path[128];

    snprintf(path, sizeof path, "sys/class/powercap/%s/energy_uj", zone);
    fake_tree_mode(path, 0);
}

/* All back ends over the made-up tree, without the GPUs of this machine. */
static void open_all(double cpu_tdp_w)
{
    struct device_options options = {.sysfs_root = fake_tree_root(),
                                     .nvml_path = "/nonexistent/libnvidia-ml.so.1",
                                     .amdsmi_path = "/nonexistent/libamd_smi.so",
                                     .cpu_tdp_w = cpu_tdp_w};

    assert_int_equal(device_list_open(&options, &list, NULL), 0);
}

static const struct backend_report *report_of(const struct device_backend *backend)
{
    for (size_t i = 0; i < list.report_count; i++) {
        if (list.reports[i].backend == backend)
            return &list.reports[i];
    }
    return NULL;
}

static const char *report_text(const struct device_backend *backend)
{
    const struct backend_report *report = report_of(backend);

    return report != NULL ? report->error.text : "not opened";
}

/* "cpu-0 by rapl-perf: 2000000000; ..." */
static const char *readings(void)
{
    static char text[1024];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list.count; i++) {
        struct device_reading reading;
        const struct reading *energy = &reading.values[QUANTITY_ENERGY];
        char value[32];

        device_read(&list.devices[i], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY), &reading);
        snprintf(value, sizeof value, "%lld", (long long)energy->value);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s by %s: %s", i > 0 ? "; " : "",
                                   list.devices[i].info.uuid, list.devices[i].backend->name,
                                   energy->state == READING_OK ? value : reading_state_word(energy->state));
    }
    return text;
}

static void test_server(void **state)
{
    int files = fake_tree_open_files();

    (void)state;
    put_server();
    open_all(0.0);
    assert_string_equal(readings(), "cpu-0 by rapl-perf: 2000000000; cpu-1 by rapl-perf: 2028000000; "
                                    "dram-0 by rapl-perf: 3000000000; dram-1 by rapl-perf: 3028000000");
    assert_int_equal(list.devices[0].info.energy_modulus_uj, UINT64_C(4294967296000000));
    assert_int_equal(report_of(&device_backend_rapl_perf)->found, 4);
    assert_int_equal(report_of(&device_backend_rapl_perf)->error.code, 0);
    assert_null(report_of(&device_backend_cpu_estimate));
    device_list_close(&list);
    assert_int_equal(fake_tree_open_files(), files);
}

/* Dies, and AMD's packages, which some kernels show once for each die. */
static void test_dies(void **state)
{
    (void)state;
    put_server();
    put_topology(28, 0, 1);
    open_all(0.0);
    assert_string_equal(readings(),
                        "cpu-0-die-0 by rapl-perf: 2000000000; cpu-0-die-1 by rapl-perf: 2028000000; "
                        "dram-0-die-0 by rapl-perf: 3000000000; dram-0-die-1 by rapl-perf: 3028000000");
    device_list_close(&list);
    fake_tree_put("proc/cpuinfo", "processor : 0\nvendor_id : AuthenticAMD\n");
    fake_tree_delete(POWER "/events/energy-ram");
    open_all(0.0);
    assert_string_equal(readings(), "cpu-0 by rapl-perf: 2000000000");
    device_list_close(&list);
}

/* Each domain is read one way only: by powercap where that is allowed, by perf events elsewhere. */
static void test_beside_powercap(void **state)
{
    (void)state;
    put_server();
    put_zone("intel-rapl:0", "package-0\n", "11\n");
    put_zone("intel-rapl:0:0", "dram\n", "12\n");
    put_zone("intel-rapl:1", "package-1\n", "13\n");
    open_all(0.0);
    assert_string_equal(readings(), "cpu-0 by rapl-powercap: 11; cpu-1 by rapl-powercap: 13; "
                                    "dram-0 by rapl-powercap: 12; dram-1 by rapl-perf: 3028000000");
    device_list_close(&list);

    deny_zone("intel-rapl:0");
    fake_tree_be_nobody();
    open_all(0.0);
    assert_string_equal(readings(), "cpu-1 by rapl-powercap: 13; cpu-0 by rapl-perf: 2000000000; "
                                    "dram-0 by rapl-powercap: 12; dram-1 by rapl-perf: 3028000000");
    assert_int_equal(list.devices[0].info.index, 0);
    assert_int_equal(list.devices[1].info.index, 1);
    assert_int_equal(report_of(&device_backend_rapl_powercap)->found, 2);
    assert_int_equal(report_of(&device_backend_rapl_perf)->found, 2);
    check_contains(report_text(&device_backend_rapl_powercap), "nothing is missing");
    device_list_close(&list);
}

/* Dies that powercap may not read, and an event for their whole package. */
static void test_package_in_place_of_dies(void **state)
{
    (void)state;
    put_server();
    put_zone("intel-rapl:0", "package-0-die-0\n", "11\n");
    put_zone("intel-rapl:1", "package-0-die-1\n", "12\n");
    deny_zone("intel-rapl:0");
    deny_zone("intel-rapl:1");
    fake_tree_be_nobody();
    open_all(0.0);
    assert_string_equal(readings(), "cpu-0 by rapl-perf: 2000000000; cpu-1 by rapl-perf: 2028000000; "
                                    "dram-0 by rapl-perf: 3000000000; dram-1 by rapl-perf: 3028000000");
    device_list_close(&list);
}

static void test_denied_both_ways(void **state)
{
    (void)state;
    put_server();
    kernel.open_error = EACCES;
    open_all(0.0);
    assert_string_equal(readings(), "cpu-0 by rapl-perf: no_permission; cpu-1 by rapl-perf: no_permission; "
                                    "dram-0 by rapl-perf: no_permission; dram-1 by rapl-perf: no_permission");
    assert_int_equal(report_of(&device_backend_rapl_perf)->error.code, FLY_EPERM);
    check_contains(report_text(&device_backend_rapl_perf), "sudo sysctl kernel.perf_event_paranoid=0");
    check_contains(report_text(&device_backend_cpu_estimate), "cpu_tdp_w");
    device_list_close(&list);

    put_zone("intel-rapl:0", "package-0\n", "11\n");
    deny_zone("intel-rapl:0");
    fake_tree_be_nobody();
    open_all(0.0);
    assert_string_equal(readings(),
                        "cpu-0 by rapl-powercap: no_permission; cpu-1 by rapl-perf: no_permission; "
                        "dram-0 by rapl-perf: no_permission; dram-1 by rapl-perf: no_permission");
    check_contains(report_text(&device_backend_rapl_powercap), "sudo chmod");
    device_list_close(&list);
}

/* A stated power stands in for CPUs that are there but may not be read. */
static void test_estimate_in_place_of_denied(void **state)
{
    (void)state;
    put_server();
    fake_tree_put("proc/stat", "cpu  0 0 0 0\ncpu0 0 0 0 0\n");
    kernel.open_error = EPERM;
    open_all(120.0);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.devices[0].info.uuid, "cpu-estimate");
    assert_true(list.devices[0].info.estimated);
    assert_int_equal(list.devices[1].info.kind, DEVICE_DRAM);
    check_contains(report_text(&device_backend_rapl_perf), "sudo sysctl");
    device_list_close(&list);
    kernel.open_error = 0;
    open_all(120.0);
    assert_int_equal(list.count, 4);
    assert_false(list.devices[0].info.estimated);
    device_list_close(&list);
}

static void test_failures_of_reading(void **state)
{
    (void)state;
    put_server();
    fake_tree_put(POWER "/cpumask", "0\n");
    open_all(0.0);
    kernel.read_error = ENODEV;
    assert_string_equal(readings(), "cpu-0 by rapl-perf: device_lost; dram-0 by rapl-perf: device_lost");
    kernel.read_error = EIO;
    assert_string_equal(readings(), "cpu-0 by rapl-perf: failed; dram-0 by rapl-perf: failed");
    kernel.read_error = 0;
    kernel.fixed = UINT64_MAX;
    assert_string_equal(readings(),
                        "cpu-0 by rapl-perf: 4294967296000000; dram-0 by rapl-perf: 4294967296000000");
    device_list_close(&list);
}

/* A tree that lacks something or holds garbage gives no device, and never an event of another meaning. */
static void test_odd_trees(void **state)
{
    static const struct {
        const char *path, *text;
    } cases[] = {
        {POWER "/type", "power\n"},
        {POWER "/type", ""},
        {POWER "/cpumask", "\n"},
        {POWER "/cpumask", "all\n"},
        {POWER "/cpumask", "0-\n"},
        {POWER "/events/energy-pkg", "event=0x02,umask=0x1\n"},
        {POWER "/events/energy-pkg", "config=2\n"},
        {POWER "/events/energy-pkg.scale", "much\n"},
        {POWER "/events/energy-pkg.scale", "0\n"},
        {POWER "/events/energy-pkg.scale", "-1\n"},
        {POWER "/events/energy-pkg.unit", "Watts\n"},
        {"sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_server();
        fake_tree_put(POWER "/cpumask", "0\n");
        fake_tree_delete(POWER "/events/energy-ram");
        fake_tree_put(cases[i].path, cases[i].text);
        open_all(0.0);
        assert_string_equal(readings(), "");
        assert_int_equal(report_of(&device_backend_rapl_perf)->error.code, FLY_EUNSUPPORTED);
        device_list_close(&list);
    }
}

/* The description of a source as virtual machines show it: there, and empty. */
static void test_virtual_machine(void **state)
{
    (void)state;
    fake_tree_put(POWER "/type", "9\n");
    fake_tree_put(POWER "/cpumask", "0\n");
    open_all(0.0);
    assert_int_equal(list.count, 0);
    check_contains(report_text(&device_backend_rapl_perf), "virtual machine");
    device_list_close(&list);
}

static void test_texts(void **state)
{
    static const struct {
        const char *text;
        int count; /* -1: refused */
        unsigned last;
    } lists[] = {
        {"", 0, 0},       {"0", 1, 0},    {"0,18", 2, 18},
        {"0-3,8", 5, 8},  {"3-3", 1, 3},  {"3-2", -1, 0},
        {",", -1, 0},     {"0,", -1, 0},  {",0", -1, 0},
        {"0--1", -1, 0},  {"0-7", 8, 7},  {"0-8", -1, 0},
        {"65536", -1, 0}, {"0 1", -1, 0}, {"00000000000000000000000000000000001", -1, 0},
    };
    static const struct {
        const char *text;
        int config; /* -1: refused */
    } events[] = {
        {"event=0x02", 2}, {"event=3", 3},   {"event=0xff", 255}, {"event=0x100", -1}, {"event=256", -1},
        {"event=", -1},    {"event=0x", -1}, {"event=2,", -1},    {"umask=2", -1},     {"event=0xFG", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lists); i++) {
        unsigned cpus[8];
        size_t count = 0;
        bool good = perf_cpus_parse(lists[i].text, cpus, COUNT(cpus), &count);

        assert_int_equal(good ? (int)count : -1, lists[i].count);
        if (good && count > 0)
            assert_int_equal(cpus[count - 1], lists[i].last);
    }
    for (size_t i = 0; i < COUNT(events); i++) {
        uint64_t config = 0;
        bool good = perf_event_parse(events[i].text, &config);

        assert_int_equal(good ? (int)config : -1, events[i].config);
    }
}

/* The real call, refused by whatever kernel runs the tests: there is no event of that type. */
static void test_the_kernel_is_asked(void **state)
{
    (void)state;
    put_server();
    fake_tree_put(POWER "/type", "4294967295\n");
    rapl_perf_set_calls(NULL);
    open_all(0.0);
    assert_int_equal(list.count, 4);
    for (size_t i = 0; i < list.count; i++)
        assert_false(device_answers(&list.devices[i], &clock_real));
    device_list_close(&list);
}

/*
 * The real calls, on an event that every kernel has: the processor's clock in
 * nanoseconds, here given out as energy.
 */
static void test_the_kernel_answers(void **state)
{
    struct device_reading first, second;
    const struct reading *before = &first.values[QUANTITY_ENERGY], *after = &second.values[QUANTITY_ENERGY];

    (void)state;
    put_server();
    fake_tree_put(POWER "/type", "1\n");
    fake_tree_put(POWER "/cpumask", "0\n");
    put_event("energy-pkg", "event=0x00\n", "1e-6\n", "Joules\n");
    fake_tree_delete(POWER "/events/energy-ram");
    rapl_perf_set_calls(NULL);
    open_all(0.0);
    assert_int_equal(list.count, 1);
    device_read(&list.devices[0], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY), &first);
    if (before->state != READING_OK) {
        device_list_close(&list);
        skip(); /* events of a processor may not be opened here */
    }
    usleep(20000);
    device_read(&list.devices[0], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY), &second);
    assert_int_equal(after->state, READING_OK);
    assert_in_range(after->value - before->value, 15000000, 2000000000);
    device_list_close(&list);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_server),
        TREE_TEST(test_dies),
        TREE_TEST(test_beside_powercap),
        TREE_TEST(test_package_in_place_of_dies),
        TREE_TEST(test_denied_both_ways),
        TREE_TEST(test_estimate_in_place_of_denied),
        TREE_TEST(test_failures_of_reading),
        TREE_TEST(test_odd_trees),
        TREE_TEST(test_virtual_machine),
        cmocka_unit_test(test_texts),
        TREE_TEST(test_the_kernel_is_asked),
        TREE_TEST(test_the_kernel_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
