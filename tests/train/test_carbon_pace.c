/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is left and time that a bound leaves, from steps as they were measured. */
#include "test.h"

#include "train/carbon/carbon_pace.h"

static const struct fly_power_point points[] = {{100.0, 90.0, 1.25}, {200.0, 180.0, 1.0}};
static const struct fly_power_point steeper[] = {{100.0, 90.0, 2.0}, {200.0, 180.0, 1.0}};
static const struct fly_power_point slower[] = {{100.0, 90.0, 1.5}, {200.0, 180.0, 1.2}};

static struct carbon_profile profile_of(const struct fly_power_point *of)
{
    const struct carbon_surroundings alone = {0.0, 1.0};
    struct carbon_profile profile;

    assert_int_equal(carbon_profile_init(&profile, of, 2, &alone, NULL), 0);
    return profile;
}

/* Steps under a limit, told every ten; evaluation takes its time after each ten. */
struct course {
    struct carbon_pace pace;
    struct carbon_progress at;
    double total, now_s;
};

static void start(struct course *course, double total)
{
    struct carbon_profile profile = profile_of(points);

    *course = (struct course){.total = total};
    carbon_pace_init(&course->pace);
    carbon_pace_profile(&course->pace, &profile, 1.0);
}

static void tell(struct course *course)
{
    course->at.steps_left = course->total - course->at.steps_done;
    carbon_pace_progress(&course->pace, &course->at, course->now_s);
}

static void run(struct course *course, double limit_w, int steps, double step_s, double other_s)
{
    carbon_pace_stands(&course->pace, limit_w, true);
    for (int i = 0; i < steps; i += 10) {
        course->at.steps_done += 10.0;
        course->at.step_time_s += 10.0 * step_s;
        course->now_s += 10.0 * step_s + other_s;
        tell(course);
    }
}

static void check_within(double a, double b, double most)
{
    check_close((a - b) / most + 2.0, 2.0, 0.5);
}

/* As the profile says, both figures are plain arithmetic. */
static void test_as_told(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    tell(&course);
    check_close(carbon_pace_work_s(&course.pace), 1000.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0, 1e-9);
    run(&course, 100.0, 200, 1.25, 0.0);
    check_close(carbon_pace_work_s(&course.pace), 800.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 250.0, 1e-9);
    run(&course, 200.0, 300, 1.0, 0.0);
    check_close(carbon_pace_work_s(&course.pace), 500.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 550.0, 1e-9);
    assert_true(carbon_pace_other_s(&course.pace) < 1e-9);
}

/* A search of 100 steps at 1.7 s comes off the bound. */
static void test_search_counts(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    course.at = (struct carbon_progress){.steps_done = 100.0, .steps_left = 900.0, .step_time_s = 170.0};
    check_close(carbon_pace_spare_s(&course.pace, 1.1, &course.at, 1.0), 1100.0 - 170.0 - 900.0, 1e-9);
    tell(&course);
    check_close(carbon_pace_spare_s(&course.pace, 1.1, &course.at, 1.0), 1100.0 - 170.0 - 900.0, 1e-9);
    check_close(carbon_pace_work_s(&course.pace), 900.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 170.0, 1e-9);
}

/* Longer steps leave less time, shorter ones do not leave more than at the fastest limit would be due. */
static void test_another_pace(void **state)
{
    static const double times[] = {0.8, 0.9, 1.1, 1.2, 1.5};

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++) {
        struct course course;
        double fastest = fmin(times[i], 1.0);

        start(&course, 10000.0);
        run(&course, 100.0, 5000, 1.25 * times[i], 0.0);
        check_close(carbon_pace_work_s(&course.pace), 5000.0 * times[i], 1e-3);
        /* But for the first minute, in which nobody can know. */
        check_within(carbon_pace_allowed_s(&course.pace, 1.1),
                     1.1 * 10000.0 * fastest - 5000.0 * 1.25 * times[i], 60.0);
        check_within(carbon_pace_spare_s(&course.pace, 1.1, &course.at, times[i]),
                     1.1 * 10000.0 * times[i] - 5000.0 * (1.25 + 1.0) * times[i], 5.0);
    }
}

/* A new profile tells whose doing it was: the machine's, */
static void test_slower_machine(void **state)
{
    struct carbon_profile profile = profile_of(slower);
    struct course course;

    (void)state;
    start(&course, 2000.0);
    run(&course, 100.0, 1000, 1.5, 0.0);
    carbon_pace_profile(&course.pace, &profile, 1.2);
    tell(&course);
    check_close(carbon_pace_work_s(&course.pace), 1200.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1.1 * 2400.0 - 1500.0, 1e-9);
}

/* or the limit's. */
static void test_steeper_profile(void **state)
{
    struct carbon_profile profile = profile_of(steeper);
    struct course course;

    (void)state;
    start(&course, 2000.0);
    run(&course, 100.0, 1000, 2.0, 0.0);
    carbon_pace_profile(&course.pace, &profile, 1.0);
    tell(&course);
    check_close(carbon_pace_work_s(&course.pace), 1000.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1.1 * 2000.0 - 2000.0, 1e-9);
}

/* A stretch with a change of the limit in it says nothing of either. */
static void test_mixed(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    run(&course, 200.0, 100, 1.0, 0.0);
    carbon_pace_stands(&course.pace, 100.0, false);
    carbon_pace_stands(&course.pace, 200.0, false);
    course.at.steps_done += 100.0;
    course.at.step_time_s += 300.0;
    tell(&course);
    check_close(course.pace.factor, 1.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 400.0, 1e-9);
    carbon_pace_stands(&course.pace, NAN, true);
    course.at.steps_done += 10.0;
    course.at.step_time_s += 30.0;
    tell(&course);
    check_close(course.pace.factor, 1.0, 1e-9);
}

static void test_other(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    course.now_s = 77.0;
    tell(&course);
    run(&course, 100.0, 100, 1.25, 5.0);
    check_close(carbon_pace_other_s(&course.pace), 0.5, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 125.0, 1e-9);
}

/* The evaluation after the last epoch is left over up to the end; a single one-off is not expected for ever.
 */
static void test_other_in_pieces(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    for (int epoch = 0; epoch < 4; epoch++) {
        run(&course, 100.0, 240, 1.25, 0.0);
        if (epoch > 0)
            assert_true(carbon_pace_other_left_s(&course.pace) >= 60.0 - 1e-6);
        run(&course, 100.0, 10, 1.25, 0.0);
        course.now_s += 60.0;
    }
    start(&course, 1000.0);
    run(&course, 100.0, 10, 1.25, 60.0);
    run(&course, 100.0, 980, 1.25, 0.0);
    assert_true(carbon_pace_other_left_s(&course.pace) < 2.0);
}

/* Time of long ago that is told late is spent, and no pace of the newest steps. */
static void test_told_late(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    run(&course, 100.0, 100, 1.25, 0.0);
    course.at.step_time_s += 100.0;
    run(&course, 100.0, 10, 1.25, 0.0);
    check_close(course.pace.factor, 1.0, 1e-9);
    check_close(carbon_pace_work_s(&course.pace), 890.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 237.5, 1e-9);
}

/* A checkpoint within a step is no step; steps that take three times as long from then on are. */
static void test_held_up(void **state)
{
    struct course course;

    (void)state;
    start(&course, 1000.0);
    run(&course, 100.0, 100, 1.25, 0.0);
    run(&course, 100.0, 10, 9.0, 0.0);
    run(&course, 100.0, 90, 1.25, 0.0);
    check_close(course.pace.factor, 1.0, 1e-9);
    check_close(carbon_pace_work_s(&course.pace), 800.0, 1e-9);
    check_close(carbon_pace_allowed_s(&course.pace, 1.1), 1100.0 - 250.0, 1e-9);
    check_close(carbon_pace_other_s(&course.pace), 77.5 / 190.0, 1e-9);
    run(&course, 100.0, 500, 3.75, 0.0);
    check_close(course.pace.factor, 3.0, 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_in_pieces), cmocka_unit_test(test_as_told),
        cmocka_unit_test(test_search_counts),   cmocka_unit_test(test_another_pace),
        cmocka_unit_test(test_slower_machine),  cmocka_unit_test(test_steeper_profile),
        cmocka_unit_test(test_mixed),           cmocka_unit_test(test_other),
        cmocka_unit_test(test_held_up),         cmocka_unit_test(test_told_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
