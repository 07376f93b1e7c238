/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, epochs and their time, over courses of a training. */
#include "test.h"

#include "train/program/step_count.h"

static int64_t now_s;

static struct mono_time now(void *state)
{
    (void)state;
    return (struct mono_time){now_s * 1000000000};
}

static const struct clock clock = {.name = "virtual", .now = now};

/* Each letter is a second: b begins an epoch, s a step, e ends the epoch, and . is nothing. */
static struct step_count play(const char *course)
{
    struct step_count count = {0};

    for (now_s = 1000; *course != '\0'; course++, now_s++) {
        if (*course == 'b')
            step_count_epoch_begin(&count, &clock);
        else if (*course == 's')
            step_count_step(&count);
        else if (*course == 'e')
            step_count_epoch_end(&count, &clock);
    }
    return count;
}

static void test_courses(void **state)
{
    static const struct {
        const char *course;
        uint64_t begun, done, in_epoch, longest;
        double time_s;
    } rows[] = {
        {"", 0, 0, 0, 0, 0.0},
        {"ss", 2, 2, 2, 0, 0.0},             /* outside of an epoch */
        {"b", 0, 0, 0, 0, 1.0},              /* no step yet */
        {"bsss", 3, 2, 3, 0, 4.0},           /* the third is under way */
        {"bssse", 3, 3, 3, 3, 4.0},          /* all are done */
        {"bsssee..e", 3, 3, 3, 3, 4.0},      /* ended again */
        {"bsse..bs", 3, 2, 1, 2, 3.0 + 2.0}, /* evaluation is no time in steps */
        {"bsse..bsssse", 6, 6, 4, 4, 3.0 + 5.0},
        {"bssse..bse", 4, 4, 1, 3, 4.0 + 2.0}, /* the longest stays */
        {"bssbs", 1, 0, 1, 0, 2.0},            /* the first did not end */
        {"bsebssbse", 2, 2, 1, 1, 2.0 + 2.0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct step_count count = play(rows[i].course);

        assert_int_equal(count.begun, rows[i].begun);
        assert_int_equal(step_count_done(&count), rows[i].done);
        assert_int_equal(step_count_in_epoch(&count), rows[i].in_epoch);
        assert_int_equal(count.longest, rows[i].longest);
        check_close(step_count_time_s(&count, &clock), rows[i].time_s, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_courses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
