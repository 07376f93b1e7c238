/* SPDX-License-Identifier: Apache-2.0 */
/* Several windows of one limit: their means, and what they say of each other. */
#include "test.h"

#include "train/tuner/tuner_visits.h"

static struct tuner_visit visit_of(double step_s, double power_w, double half, double error)
{
    double time_s = 40.0 * step_s;

    return (struct tuner_visit){.steps = 40.0,
                                .time_s = time_s,
                                .energy_j = power_w * time_s,
                                .half_j = half * power_w * time_s,
                                .time_error = error};
}

/* What differs by no more than each by itself explains is no noise of whole windows. */
static void test_noise(void **state)
{
    static const struct {
        double step_s[3], error;
        size_t count;
        unsigned degrees;
        double noise; /* standard deviation; 0: none to be seen */
    } rows[] = {
        {{0.1}, 0.0, 1, 0, 0.0},
        {{0.1, 0.1, 0.1}, 0.0, 3, 2, 0.0},
        {{0.1, 0.1, 0.1}, 0.003, 3, 2, 0.0},
        {{0.0996, 0.1004}, 0.003, 2, 1, 0.0},
        {{0.098, 0.102}, 0.0, 2, 1, 0.02828},
        {{0.098, 0.102}, 0.003, 2, 1, 0.02812},
        {{0.098, 0.1, 0.102}, 0.0, 3, 2, 0.02},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (double unit = 1.0; unit < 1e7; unit *= 1e3) {
            struct tuner_visits visits[2] = {{0}};
            struct tuner_noise noise;

            for (size_t k = 0; k < rows[i].count; k++) {
                struct tuner_visit visit = visit_of(unit * rows[i].step_s[k], 200.0, 0.0, rows[i].error);

                tuner_visits_add(&visits[1], &visit);
            }
            noise = tuner_visits_noise(visits, COUNT(visits));
            assert_int_equal(noise.degrees, rows[i].degrees);
            if (fabs(noise.time - rows[i].noise) > 1e-4)
                fail_msg("row %zu: %g, expected %g", i, noise.time, rows[i].noise);
        }
    }
}

/* Of two limits, what each deviates from its own mean counts. */
static void test_limits_are_apart(void **state)
{
    struct tuner_visits visits[2] = {{0}};
    struct tuner_noise noise;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct tuner_visit visit = visit_of(i < 2 ? 0.1 : 0.3, i < 2 ? 300.0 : 100.0, 0.01, 0.001);

        tuner_visits_add(&visits[i / 2], &visit);
    }
    noise = tuner_visits_noise(visits, COUNT(visits));
    assert_int_equal(noise.degrees, 2);
    check_double(noise.time, 0.0);
    check_double(noise.power, 0.0);
    check_double(tuner_noise_factor(&noise), 5.0);
    noise.degrees = 1000;
    check_double(tuner_noise_factor(&noise), 2.76);
    noise.degrees = 0;
    check_double(tuner_noise_factor(&noise), 0.0);
}

/* No further visit makes the energy less certain. */
static void test_coarse_energy(void **state)
{
    const struct tuner_visit fine = visit_of(0.1, 200.0, 0.04, 0.0), coarse = visit_of(0.1, 230.0, 0.20, 0.0);
    struct tuner_visits visits = {0};

    (void)state;
    tuner_visits_add(&visits, &fine);
    tuner_visits_add(&visits, &coarse);
    check_double(visits.energy_j / visits.energy_s, 200.0);
    check_double(visits.time_s, 8.0);
    tuner_visits_add(&visits, &fine);
    check_close(sqrt(visits.half_j2) / visits.energy_j, 0.04 / sqrt(2.0), 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_limits_are_apart),
        cmocka_unit_test(test_coarse_energy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
