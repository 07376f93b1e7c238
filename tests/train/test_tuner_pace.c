/* SPDX-License-Identifier: Apache-2.0 */
/* What sets the pace of the steps, judged from figures. */
#include "test.h"

#include "train/tuner/tuner_pace.h"

static void test_judge(void **state)
{
    static const struct {
        const char *name;
        struct pace_facts facts;
        enum fly_tuner_pace pace;
    } rows[] = {
        {"as promised", {0.02, 0.0201, 0.01, 0.0, 0.0, 1.5, 0.4}, FLY_TUNER_PACE_GPU},
        {"nothing known", {NAN, NAN, 0.0, NAN, NAN, NAN, NAN}, FLY_TUNER_PACE_GPU},
        {"131 % more, and nothing says why",
         {0.02, 0.0462, 0.01, 0.0, 0.0, 1.5, 0.4},
         FLY_TUNER_PACE_UNSTEADY},
        {"40 % less", {0.02, 0.012, 0.01, NAN, NAN, NAN, NAN}, FLY_TUNER_PACE_UNSTEADY},
        {"within the errors", {0.02, 0.024, 0.16, 0.0, 0.0, 1.5, 0.4}, FLY_TUNER_PACE_SCATTER},
        {"a little, within the errors", {0.02, 0.0208, 0.16, 0.0, 0.0, 1.5, 0.4}, FLY_TUNER_PACE_GPU},
        {"limits change nothing", {0.02, 0.0462, 0.01, 0.0, 0.05, 1.005, 0.6}, FLY_TUNER_PACE_FLAT},
        {"limits take no power away", {0.02, 0.0462, 0.01, 0.0, 0.0, 1.005, 0.97}, FLY_TUNER_PACE_UNSTEADY},
        {"flat, and as promised", {0.02, 0.02, 0.01, 0.0, 0.0, 1.0, 0.6}, FLY_TUNER_PACE_GPU},
        {"waits, and differs", {0.02, 0.0462, 0.01, 0.0, 0.15, 1.005, 0.6}, FLY_TUNER_PACE_WAITS},
        {"waits a little", {0.02, 0.02, 0.01, 0.0, 0.15, 1.5, 0.4}, FLY_TUNER_PACE_GPU},
        {"waits half of the time", {0.02, 0.02, 0.01, 0.0, 0.5, 1.5, 0.4}, FLY_TUNER_PACE_WAITS},
        {"pauses half of the time", {0.02, 0.02, 0.01, 0.5, 0.1, 1.5, 0.4}, FLY_TUNER_PACE_PAUSES},
        {"pauses, use not known", {0.02, 0.03, 0.01, 0.2, NAN, 1.5, 0.4}, FLY_TUNER_PACE_PAUSES},
        {"waits more than it pauses", {0.02, 0.03, 0.01, 0.2, 0.4, 1.5, 0.4}, FLY_TUNER_PACE_WAITS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum fly_tuner_pace pace = pace_judge(&rows[i].facts);

        if (pace != rows[i].pace)
            fail_msg("%s: %s, expected %s", rows[i].name, fly_tuner_pace_name(pace),
                     fly_tuner_pace_name(rows[i].pace));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_judge)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
