/* SPDX-License-Identifier: Apache-2.0 */
/* Users of a GPU whose processes a container does not show. */
#include "knob_support.h"

#include "base/pid_namespace.h"
#include "knob/turnable.h"

static struct knob_machine machine;

/* A driver that lists no process. */
static int list_none(const struct device *device, unsigned kinds, struct device_process *processes,
                     size_t maximum, size_t *out_count)
{
    (void)device;
    (void)kinds;
    (void)processes;
    (void)maximum;
    *out_count = 0;
    return 0;
}

static void wait_for_work(const struct device *device)
{
    struct device_reading reading;
    const struct reading *work = &reading.values[QUANTITY_UTILIZATION];

    do
        device_read(device, &clock_real, QUANTITY_BIT(QUANTITY_UTILIZATION), &reading);
    while (work->state == READING_OK && work->value == 0);
}

/* Where processes outside of a container are not listed, what they do to the GPU speaks for them. */
static void test_unseen(void **state)
{
    enum { MIB_BITS = 20 };
    static const char no_v2[] = "call nvmlDeviceGetMemoryInfo_v2 return FUNCTION_NOT_FOUND";
    static const char no_figures[] = "call nvmlDeviceGetMemoryInfo_v2 return NOT_SUPPORTED\n"
                                     "call nvmlDeviceGetMemoryInfo return NOT_SUPPORTED\n"
                                     "call nvmlDeviceGetUtilizationRates return NOT_SUPPORTED\n";
    static const struct {
        const char *name;
        uint64_t memory_mib;
        double utilization;
        bool listed, real, goes_on, contained, outside;
        const char *script;
        int code;
        const char *text;
    } rows[] = {
        {"an idle GPU", 0, 0.0, false, true, false, false, false, NULL, 0, ""},
        {"an idle GPU of an old driver", 0, 0.0, false, true, false, false, false, no_v2, 0, ""},
        {"memory in use", 8192, 0.0, false, false, false, false, false, NULL, FLY_ESTATE, "8.0 GiB"},
        {"a context alone", 400, 0.0, false, false, false, false, false, NULL, FLY_ESTATE, "0.4 GiB"},
        {"memory and an old driver", 8192, 0.0, false, false, false, false, false, no_v2, FLY_ESTATE, "GiB"},
        {"what a display has", 60, 0.0, false, true, false, false, false, NULL, 0, ""},
        {"memory of our own", 8192, 1.0, true, true, false, false, false, NULL, 0, ""},
        {"work on a GPU", 0, 1.0, false, true, false, false, false, NULL, FLY_ESTATE, "it is busy for"},
        {"a script's load", 0, 1.0, false, false, false, false, false, NULL, 0, ""},
        {"nothing is known", 0, 0.0, false, true, false, false, false, no_figures, FLY_EREAD,
         "nor what is done"},
        {"our work goes on", 8192, 1.0, false, true, true, false, false, NULL, 0, ""},
        {"the operator says so", 8192, 1.0, false, true, false, true, false, NULL, 0, ""},
        {"outside of a container", 8192, 1.0, false, true, false, false, true, NULL, 0, ""},
    };
    char proc[KNOB_PATH_MAX + 8];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct emulator_load load = {.wanted_w = 300.0,
                                           .utilization = rows[i].utilization,
                                           .memory_bytes = rows[i].memory_mib << MIB_BITS};
        struct turnable_options options = {.readonly_path = machine.readonly,
                                           .proc_root = rows[i].outside ? "/proc" : proc,
                                           .mps_pipe_directory = machine.readonly,
                                           .begins = !rows[i].goes_on,
                                           .contained = rows[i].contained};
        struct fly_error error = {.text = ""};
        struct device_backend blind;
        struct device device;
        int slot, code;

        if (rows[i].outside && !pid_namespace_is_first("/proc"))
            continue;
        knob_machine_start(&machine, "gpus=1,model=a100", NULL);
        snprintf(proc, sizeof proc, "%s/proc", machine.directory);
        assert_int_equal(mkdir(proc, 0755), 0);
        device = *machine.devices[0];
        blind = *machine.devices[0]->backend;
        blind.processes = rows[i].listed ? blind.processes : list_none;
        device.backend = &blind;
        device.info.emulated = !rows[i].real;
        if (load.memory_bytes > 0 || load.utilization > 0.0)
            assert_int_equal(emulator_work_begin(machine.emulator, 0, &load, &slot, NULL), 0);
        if (load.utilization > 0.0)
            wait_for_work(&device);
        if (rows[i].script != NULL)
            knob_machine_fault(&machine, rows[i].script);
        code = turnable_check(&options, &device, &error);
        if (code != rows[i].code || strstr(error.text, rows[i].text) == NULL)
            fail_msg("%s: %d %s", rows[i].name, code, error.text);
        knob_machine_stop(&machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unseen)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
