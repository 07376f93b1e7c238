/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU that the program computes: its energy and its time are those of the work, and of all who measure it.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include <flyball/flyball.h>

#include "own_directory.h"

static const struct fly_virtual_work work = {.time_s = 7.5, .power_w = 180.0, .busy = true, .capped = true};

static void test_windows_hold_the_work(void **state)
{
    struct fly_device_energy device;
    struct fly_measurement measured = {.size = sizeof measured, .devices = &device, .device_capacity = 1};
    struct fly_meter *meter;
    fly_window window;

    (void)state;
    assert_int_equal(fly_meter_open_virtual("Pretended", 40.0, &meter, NULL), 0);
    assert_string_equal(fly_meter_device_name(meter, 0), "Pretended");
    assert_int_equal(fly_meter_begin(meter, "work", &window, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fly_meter_pass(meter, &work, NULL), 0);
    assert_int_equal(fly_meter_end(meter, window, &measured, NULL), 0);
    assert_int_equal(measured.device_count, 1);
    check_close(measured.time_s, 30.0, 1e-9);
    check_close(device.energy_j, 5400.0, 1e-6);
    check_close(device.capped_share, 1.0, 0.05);
    check_close(device.idle_share, 0.0, 0.0);
    fly_meter_close(meter);
}

static void test_refusals(void **state)
{
    static const struct fly_virtual_work wrong[] = {
        {.time_s = -1.0}, {.time_s = NAN}, {.power_w = -1.0}, {.power_w = NAN}, {.time_s = 1e10}};
    struct fly_meter_options options = {.size = sizeof options};
    struct fly_error error;
    struct fly_meter *meter;

    (void)state;
    assert_int_equal(fly_meter_open_virtual("Pretended", NAN, &meter, &error), FLY_EUSAGE);
    assert_int_equal(fly_meter_open_virtual("Pretended", 40.0, &meter, NULL), 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(fly_meter_pass(meter, &wrong[i], &error), FLY_EUSAGE);
        check_contains(error.text, "give 0 to");
    }
    fly_meter_close(meter);
    assert_int_equal(fly_meter_open(&options, &meter, NULL), 0);
    assert_int_equal(fly_meter_pass(meter, &work, &error), FLY_ESTATE);
    check_contains(error.text, "fly_meter_open_virtual");
    fly_meter_close(meter);
}

/* A session over it counts the time that passed on the GPU, not that of the processor. */
static void test_session_takes_its_time(void **state)
{
    static const uint32_t batch_sizes[] = {16, 32};
    char directory[OWN_DIRECTORY_MAX], store[OWN_DIRECTORY_MAX + 16];
    struct fly_session_options options = {.size = sizeof options,
                                          .job_name = "virtual",
                                          .batch_sizes = batch_sizes,
                                          .batch_count = 2,
                                          .default_batch_size = 16,
                                          .target = FLY_TARGET_AT_LEAST,
                                          .target_metric = 0.9,
                                          .max_epochs = 3,
                                          .run = "",
                                          .store = store,
                                          .leave_limits = true};
    struct fly_session_status status = {.size = sizeof status};
    struct fly_session *session;
    struct fly_error error;

    (void)state;
    assert_true(own_directory_make("virtual", directory));
    snprintf(store, sizeof store, "%s/store.sqlite", directory);
    setenv("FLYBALL_SPOOL", directory, 1);
    assert_int_equal(fly_meter_open_virtual("Pretended", 40.0, &options.meter, NULL), 0);
    if (fly_session_open(&options, &session, &error) < 0)
        fail_msg("%s", error.text);
    fly_session_epoch_begin(session);
    (void)fly_session_step_begin(session);
    (void)fly_meter_pass(options.meter, &work, NULL);
    assert_int_equal(fly_session_report(session, 0.95), FLY_REACHED);
    assert_int_equal(fly_session_status(session, &status), 0);
    check_close(status.time_s, 7.5, 1e-9);
    check_close(status.energy_j, 1350.0, 1e-6);
    fly_session_close(session, FLY_SESSION_FINISHED);
    fly_meter_close(options.meter);
    assert_true(own_directory_remove(directory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_hold_the_work),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_session_takes_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
