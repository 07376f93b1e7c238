/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU hangs in the driver: the others are opened, found alone, and turned. */
#include "knob_support.h"

#include "base/thread/thread_group.h"

static struct knob_machine machine;

static void open_list(const struct device_options *options, struct device_list *out_list)
{
    struct fly_error error;

    memset(out_list, 0, sizeof *out_list);
    if (device_backend_nvml.open(options, out_list, &error) < 0)
        fail_msg("%s", error.text);
}

static bool answers(const struct device *device)
{
    struct device_reading reading;

    device_read(device, &clock_real, QUANTITY_BIT(QUANTITY_POWER_LIMIT), &reading);
    return reading.values[QUANTITY_POWER_LIMIT].state == READING_OK;
}

/* A GPU that does not answer keeps its number, and is opened again once the driver lets go of it. */
static void test_opened_apart(void **state)
{
    static struct device_list list;
    struct device_options options = {.patience_s = 2.0};

    (void)state;
    knob_machine_start(&machine, "gpus=3,model=a100", NULL);
    options.nvml_path = machine.library;
    knob_machine_fault(&machine, "gpu 1 slow 10s\n");
    for (int round = 0; round < 2; round++) {
        open_list(&options, &list);
        assert_int_equal(list.count, 3);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(list.devices[i].info.index, i);
            assert_int_equal(list.devices[i].info.silent, i == 1);
        }
        check_contains(list.devices[1].info.note, "did not answer in time");
        assert_string_equal(list.devices[2].info.uuid, machine.devices[2]->info.uuid);
        assert_true(answers(&list.devices[0]) && !answers(&list.devices[1]) && answers(&list.devices[2]));
        device_list_close(&list);
        assert_true(left_threads_any());
    }
    knob_machine_fault(&machine, "");
    while (left_threads_any())
        usleep(2000);
    options.patience_s = 60;
    open_list(&options, &list);
    assert_int_equal(list.count, 3);
    assert_false(list.devices[1].info.silent);
    assert_string_equal(list.devices[1].info.uuid, machine.devices[1]->info.uuid);
    device_list_close(&list);
    knob_machine_stop(&machine);
}

/* By its address alone, a GPU is found without a word to the others. */
static void test_opened_alone(void **state)
{
    static struct device_list list;
    struct device_options options = {.only_pci = NULL};

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    knob_machine_fault(&machine, "gpu 0 slow 600s\n");
    options.nvml_path = machine.library;
    options.only_pci = machine.devices[1]->info.pci;
    open_list(&options, &list);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.devices[0].info.uuid, machine.devices[1]->info.uuid);
    assert_true(answers(&list.devices[0]));
    device_list_close(&list);
    options.only_pci = "0000FFFF:00:00.0"; /* no GPU of this driver */
    open_list(&options, &list);
    assert_int_equal(list.count, 0);
    knob_machine_stop(&machine);
}

/* Session and guard, from the beginning to the end. */
static void test_turned(void **state)
{
    const struct device *devices[1];
    int64_t limit_mw = 250000;
    struct knob_report report;
    struct knob *knob = NULL;
    struct fly_error error;

    (void)state;
    knob_machine_start(&machine, "gpus=2,model=a100", NULL);
    knob_machine_fault(&machine, "gpu 0 slow 600s\n");
    devices[0] = machine.devices[1];
    if (knob_open(&machine.options, devices, 1, &knob, &error) < 0)
        fail_msg("%s", error.text);
    assert_true(knob_guard_pid(knob) > 0);
    assert_int_equal(knob_set(knob, &limit_mw, NULL), 0);
    check_double(emulator_limit_w(machine.emulator, 1), 250.0);
    assert_int_equal(knob_check(knob, NULL), 0);
    knob_close(knob, &report);
    assert_int_equal(report.state, KNOB_UNTURNED);
    check_double(emulator_limit_w(machine.emulator, 1), 400.0);
    assert_int_equal(knob_machine_entries(&machine), 0);
    knob_machine_stop(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_apart),
        cmocka_unit_test(test_opened_alone),
        cmocka_unit_test(test_turned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
