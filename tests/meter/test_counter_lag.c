/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that show energy at once, late, or a mean of the last second, beside the same sampled power. */
#include "test.h"

#include "meter/counter_lag.h"

enum { SECONDS = 120, PER_S = 1000 };

/* The power of every millisecond, and the energy up to there. */
struct course {
    double power_w[SECONDS * PER_S], energy_j[SECONDS * PER_S + 1];
};

static struct course course;

/* Levels of 100 to 300 W, each for up to twice `mean_s`; 0: one level for ever. */
static void draw_course(double mean_s, uint64_t seed)
{
    double level_w = 200.0, left_s = 0.0;

    for (int i = 0; i < SECONDS * PER_S; i++) {
        if (mean_s > 0.0 && left_s <= 0.0) {
            level_w = 100.0 + 200.0 * test_uniform(&seed);
            left_s = 2.0 * mean_s * test_uniform(&seed);
        }
        left_s -= 1.0 / PER_S;
        course.power_w[i] = level_w;
        course.energy_j[i + 1] = course.energy_j[i] + level_w / PER_S;
    }
}

static double mean_of_second_j(int i)
{
    double sum_j = 0.0;

    for (int back = 0; back < PER_S; back++)
        sum_j += course.energy_j[i - back] / PER_S;
    return sum_j;
}

enum kind { PROMPT, LATE };

/* Ten samples a second of a counter that is updated as often, beside an integral of all power. */
static bool is_found_late(enum kind kind, double noise_j, int from_s, int to_s, bool breaks)
{
    struct counter_lag lag = {.count = 0};
    uint64_t random = 7;

    for (int i = from_s * PER_S; i < to_s * PER_S; i += PER_S / 10) {
        int updated = i - 37;
        double counter_j = kind == LATE ? mean_of_second_j(updated) : course.energy_j[updated];

        counter_j += noise_j * (2.0 * test_uniform(&random) - 1.0);
        counter_lag_take(&lag, (struct mono_time){(int64_t)i * 1000000}, counter_j + 4711.0,
                         course.energy_j[i], !breaks || i % PER_S != 0);
    }
    return counter_lag_is_late(&lag);
}

static void test_changing_loads(void **state)
{
    static const double means_s[] = {0.1, 0.3, 1.0, 5.0, 20.0};

    (void)state;
    for (size_t i = 0; i < COUNT(means_s); i++) {
        draw_course(means_s[i], i + 1);
        assert_false(is_found_late(PROMPT, 0.0, 2, SECONDS, false));
        assert_true(is_found_late(LATE, 0.0, 2, SECONDS, false));
        assert_false(is_found_late(PROMPT, 2.0, 2, SECONDS, false));
        assert_true(is_found_late(LATE, 2.0, 2, SECONDS, false));
    }
}

/* A load that stays tells nothing, and neither do seconds in which energy was lost. */
static void test_nothing_to_tell(void **state)
{
    (void)state;
    draw_course(0.0, 1);
    assert_false(is_found_late(PROMPT, 1.0, 2, SECONDS, false));
    assert_false(is_found_late(LATE, 1.0, 2, SECONDS, false));
    draw_course(0.3, 1);
    assert_false(is_found_late(LATE, 0.0, 2, 4, false));
    assert_false(is_found_late(LATE, 0.0, 2, SECONDS, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changing_loads),
        cmocka_unit_test(test_nothing_to_tell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
