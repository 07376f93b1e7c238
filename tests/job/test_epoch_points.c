/* SPDX-License-Identifier: Apache-2.0 */
/* Which trials an operating point is made from: none that ran under several limits, and no default that was
 * stopped. */
#include "test.h"

#include "job/past/job_frontier.h"

enum { ROWS_MAX = 32, DEFAULT = 32, OTHER = 128 };

static const struct fly_power_point profiled[] = {{100, 90, 2.0}, {200, 180, 1.0}};

static struct job_row rows[ROWS_MAX];
static struct fly_job_hardware machine = {
    .highest_limit_w = 200, .max_power_w = 200, .gpu_count = 1, .world_size = 1};
static struct job_history history;
static struct job_batch_profile profile = {
    .batch_size = DEFAULT, .points = profiled, .count = COUNT(profiled), .units_per_epoch = 1.0};
static const struct job_profiles profiles = {&profile, 1};

static void begin(void)
{
    history =
        (struct job_history){.definition = {.default_batch_size = DEFAULT, .target = FLY_TARGET_AT_LEAST},
                             .objective = {FLY_OBJECTIVE_ENERGY, 1.0, INFINITY},
                             .machines = &machine,
                             .machine_count = 1,
                             .rows = rows};
}

static struct job_row *add(uint32_t batch_size, enum reason reason, enum trial_outcome outcome,
                           uint32_t epochs, double limit_w, double epoch_j)
{
    struct job_row *row = &rows[history.count];

    assert_true(history.count < ROWS_MAX);
    *row = (struct job_row){.trial.trial = ++history.count,
                            .trial.recurrence = history.count,
                            .reason = reason,
                            .trial.batch_size = batch_size,
                            .trial.limit_w = limit_w,
                            .outcome = outcome,
                            .trial.epochs = epochs,
                            .trial.energy_j = epochs * epoch_j,
                            .trial.time_s = epochs};
    return row;
}

static struct epoch_points points_of(uint32_t batch_size)
{
    struct epoch_points points;

    assert_int_equal(epoch_points_of(&history, &profiles, 0, batch_size, &points, NULL), 0);
    return points;
}

/* Too short for a whole profile, each under several limits: what one of them takes is not known from these.
 */
static void test_several_limits(void **state)
{
    struct epoch_points points;

    (void)state;
    begin();
    for (int i = 0; i < 3; i++)
        add(OTHER, REASON_EXPLORE, TRIAL_REACHED, 10, 150, 335.4)->trial.profiled = true;
    points = points_of(OTHER);
    assert_int_equal(points.reached, 3);
    assert_int_equal(points.count, 0);
    add(OTHER, REASON_SAMPLED, TRIAL_REACHED, 10, 150, 390.4);
    add(OTHER, REASON_SAMPLED, TRIAL_REACHED, 10, NAN, 100.0); /* its limit is not known */
    points = points_of(OTHER);
    assert_int_equal(points.count, 1);
    check_double(points.points[0].limit_w, 150);
    check_close(points.points[0].power_w * points.points[0].time_s, 390.4, 1e-12);
    /* Where limits cannot be set each trial ran under the GPU's own. */
    machine.highest_limit_w = NAN;
    points = points_of(OTHER);
    assert_int_equal(points.count, 2);
    check_double(points.points[1].limit_w, 200);
    machine.highest_limit_w = 200;
}

/* The default's point is that of its controls, which took what they take. */
static void test_stopped_default(void **state)
{
    struct epoch_points points;

    (void)state;
    begin();
    add(DEFAULT, REASON_SAMPLED, TRIAL_STOPPED, 30, 200, 180);
    add(DEFAULT, REASON_SAMPLED, TRIAL_REACHED, 8, 200, 170);
    points = points_of(DEFAULT); /* there is no control yet */
    assert_int_equal(points.trials, 1);
    assert_int_equal(points.epochs, 8);
    add(DEFAULT, REASON_CONTROL, TRIAL_REACHED, 10, 200, 190);
    add(DEFAULT, REASON_CONTROL, TRIAL_NOT_REACHED, 20, 200, 190);
    add(DEFAULT, REASON_PINNED, TRIAL_REACHED, 12, 200, 190);
    points = points_of(DEFAULT);
    assert_int_equal(points.trials, 3);
    assert_int_equal(points.reached, 2);
    assert_int_equal(points.epochs, 42);
    check_double(points.points[1].limit_w, 200);
    check_close(points.points[1].power_w * points.points[1].time_s, 190, 1e-12);
    /* An epoch under another limit takes what trials there took. */
    for (int i = 0; i < 9; i++)
        add(DEFAULT, REASON_NO_TARGET, TRIAL_REACHED, 10, 100, 186)->trial.time_s = 20;
    points = points_of(DEFAULT);
    assert_int_equal(points.epochs, 42);
    check_close(points.points[0].power_w * points.points[0].time_s, 186, 0.02);
    check_close(points.points[1].power_w * points.points[1].time_s, 190, 1e-12);
    /* Of another batch size a stopped trial tells what its tries cost. */
    add(OTHER, REASON_SAMPLED, TRIAL_STOPPED, 30, 150, 100);
    add(OTHER, REASON_SAMPLED, TRIAL_REACHED, 10, 150, 100);
    assert_int_equal(points_of(OTHER).epochs, 40);
    /* A bound is on the time of a run that reaches its target; runs in vain make another necessary. */
    history.objective.max_slowdown = 1.03;
    assert_int_equal(points_of(OTHER).epochs, 10);
    add(OTHER, REASON_SAMPLED, TRIAL_NOT_REACHED, 20, 150, 100);
    assert_int_equal(points_of(OTHER).epochs, 30);
}

/* From four trials on; wider for fewer, and for those that fail; none of nothing. */
static void test_bounds(void **state)
{
    struct epoch_points few, more, failing;

    (void)state;
    begin();
    for (int i = 0; i < 3; i++)
        add(OTHER, REASON_SAMPLED, TRIAL_REACHED, 20, 150, 100);
    few = points_of(OTHER);
    assert_true(isnan(few.energy.below) && isnan(few.time.above));
    add(OTHER, REASON_SAMPLED, TRIAL_REACHED, 22, 150, 100);
    few = points_of(OTHER);
    assert_true(few.energy.below > 0.02 && few.energy.below < 0.2 && few.energy.above > few.energy.below);
    for (int i = 0; i < 12; i++)
        add(OTHER, REASON_SAMPLED, TRIAL_REACHED, i % 4 == 3 ? 22 : 20, 150, 100);
    more = points_of(OTHER);
    assert_true(more.energy.above < few.energy.above / 2.0);
    add(OTHER, REASON_SAMPLED, TRIAL_NOT_REACHED, 30, 150, 100);
    failing = points_of(OTHER);
    assert_true(failing.energy.above > 2.0 * more.energy.above);
    assert_true(isnan(points_of(64).energy.below));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_limits),
        cmocka_unit_test(test_stopped_default),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
