/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings as the world makes them: programs that end early, noisy metrics, data that grows. */
#include <math.h>

#include "test.h"

#include "job_fixture.h"

static struct job_fixture fixture;

/* ---- what a policy is told ---- */

/* A policy that runs the default and remembers what it was told last. */
static struct {
    struct trial_ended ended;
    size_t ends;
} seen;

static int watch_create(const struct batch_policy *self, const struct job_spec *spec,
                        const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                        struct fly_error *out_error)
{
    (void)self;
    (void)parameters;
    (void)out_error;
    *out_state = arena_alloc(arena, 1, sizeof(size_t));
    *(size_t *)*out_state = spec->default_batch;
    return 0;
}

static void watch_fold(void *state, const struct event *event)
{
    (void)state;
    if (event->kind != EVENT_TRIAL_ENDED)
        return;
    seen.ended = *event->ended;
    seen.ends++;
}

static int watch_propose(const void *state, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    (void)question;
    (void)out_error;
    *out_proposal = (struct proposal){.batch = *(const size_t *)state, .reason = REASON_FIXED};
    return 0;
}

static const struct batch_policy watch = {.name = "watch",
                                          .summary = "for tests",
                                          .version = 1,
                                          .create = watch_create,
                                          .fold = watch_fold,
                                          .propose = watch_propose};
static const struct batch_policy *const watches[] = {&watch, NULL};

static void begin_watch(void)
{
    memset(&seen, 0, sizeof seen);
    fixture.options.plugins = watches;
    job_fixture_reopen(&fixture);
    job_fixture_begin(&fixture, "watch");
}

/*
 * A program that ends by itself has neither failed nor crashed, whatever its client calls it; the same words
 * after all epochs are a failure.
 */
static void test_early_end(void **state)
{
    static const struct {
        const char *name;
        uint32_t epochs;
        enum trial_outcome said, told;
        bool by_itself;
    } rows[] = {
        {"early", 7, TRIAL_NOT_REACHED, TRIAL_STOPPED, true},
        {"all epochs", 20, TRIAL_NOT_REACHED, TRIAL_NOT_REACHED, false},
        {"stopped", 7, TRIAL_STOPPED, TRIAL_STOPPED, false},
        {"crashed", 7, TRIAL_CRASHED, TRIAL_CRASHED, false},
    };
    struct job_question question = job_fixture_question("job");

    (void)state;
    begin_watch();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_proposal proposal;

        print_message("# %s\n", rows[i].name);
        job_fixture_train(&fixture, &question, rows[i].epochs, 1000, 10, 0.1, &proposal);
        job_fixture_over(&fixture, proposal.trial, 1, rows[i].said);
        assert_int_equal(seen.ends, i + 1);
        assert_int_equal(seen.ended.outcome, rows[i].told);
        assert_int_equal(seen.ended.by_itself, rows[i].by_itself);
        assert_int_equal(seen.ended.crashed, rows[i].said == TRIAL_CRASHED);
        check_double(seen.ended.epochs, rows[i].epochs);
        check_double(seen.ended.energy_j, 1000.0 * rows[i].epochs);
    }
    assert_int_equal(job_fixture_outcome(&fixture, "job", 1), TRIAL_NOT_REACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_early_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
