/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrences (FLYBALL_TEST_RECURRENCES of them) with batch sizes that overflow, crashes,
 * stops, preemptions and silence: each ends with a model, and the state kept is the
 * one that the whole log comes to.
 */
#include "job/decide/state_fold.h"
#include "job/decide/state_snapshot.h"
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECURRENCES = 100, TRIES = 4, STATE_BYTES = 32 << 20 };

/* What goes wrong, as shares of tries (crash, silence) or epochs (preemption). */
struct weather {
    const char *policy;
    double crash, silence, preemption;
    uint32_t fits; /* the largest batch size that does */
    uint32_t converges_from, converges_to;
    bool trains_on;
};

static const struct weather rows[] = {
    {"zeus", 0.1, 0.05, 0.05, 128, 8, 128, false},    {"zeus", 0.3, 0.1, 0.1, 64, 16, 64, true},
    {"grid", 0.1, 0.05, 0.05, 64, 8, 128, false},     {"zeus-server", 0.2, 0.1, 0.05, 32, 32, 128, false},
    {"default", 0.3, 0.05, 0.05, 128, 8, 128, false},
};

/* One run of CMD; whether it left a model. */
struct course {
    struct job_fixture *fixture;
    const struct weather *weather;
    uint64_t random;
    struct job_question question;
};

static bool happens(struct course *course, double share)
{
    return test_uniform(&course->random) < share;
}

static void finish(struct course *course, const struct job_proposal *proposal, enum trial_outcome outcome)
{
    job_fixture_end(course->fixture, &(struct job_end){.job = "job",
                                                       .trial = proposal->trial,
                                                       .attempt = proposal->attempt,
                                                       .outcome = outcome,
                                                       .energy_j = NAN,
                                                       .time_s = NAN});
}

/* Trains until it is told to stop, reaches its target or is preempted; -1 for the latter. */
static int train(struct course *course, const struct job_proposal *proposal)
{
    const struct weather *weather = course->weather;
    bool converges =
        proposal->batch_size >= weather->converges_from && proposal->batch_size <= weather->converges_to;
    uint32_t needed = 4 + proposal->batch_size / 32 + test_below(&course->random, 3);
    bool reached = false;

    for (uint32_t epoch = proposal->epochs_done + 1;; epoch++) {
        uint32_t here = epoch - proposal->epochs_done;
        struct job_answered answered;

        course->fixture->now_us += 10000000;
        answered = job_fixture_report(course->fixture,
                                      &(struct job_epoch){.job = "job",
                                                          .trial = proposal->trial,
                                                          .attempt = proposal->attempt,
                                                          .epoch = epoch,
                                                          .metric = converges && epoch >= needed ? 0.95 : 0.5,
                                                          .energy_j = 1000.0 * here,
                                                          .time_s = 10.0 * here});
        reached |= answered.answer == JOB_REACHED;
        if (answered.answer == JOB_STOP || (reached && proposal->stops_at_target))
            return reached;
        if (!reached && happens(course, weather->preemption))
            return -1;
    }
}

static bool run(struct course *course)
{
    const struct weather *weather = course->weather;
    struct job_proposal proposal = job_fixture_propose(course->fixture, &course->question);
    int result;

    if (proposal.batch_size > weather->fits) {
        assert_false(proposal.last_try);
        finish(course, &proposal, TRIAL_OUT_OF_MEMORY);
        return false;
    }
    if (proposal.wants_profile)
        job_fixture_profile(course->fixture, "job", proposal.trial);
    if (!proposal.last_try && happens(course, weather->crash)) {
        finish(course, &proposal, TRIAL_CRASHED);
        return false;
    }
    if (!proposal.last_try && happens(course, weather->silence)) {
        course->fixture->now_us += (int64_t)90000e6; /* killed, and nobody said so; its run is lost */
        course->question.run = "";
        return false;
    }
    while ((result = train(course, &proposal)) < 0) {
        if (happens(course, 0.3))
            course->fixture->now_us += (int64_t)90000e6; /* long enough in the queue to expire */
        proposal = job_fixture_propose(course->fixture, &course->question);
        assert_true(proposal.attempt > 1);
    }
    if (happens(course, 0.5))
        finish(course, &proposal, TRIAL_CRASHED); /* after its end was known: changes nothing */
    return result > 0;
}

static void check_refold(struct job_fixture *fixture);

static int recurrences(void)
{
    const char *asked = getenv("FLYBALL_TEST_RECURRENCES");

    return asked != NULL ? (int)strtol(asked, NULL, 10) : RECURRENCES;
}

static void check_weather(const struct weather *weather, uint64_t seed)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_fixture fixture;
    struct course course = {.fixture = &fixture, .weather = weather, .random = seed};

    definition.policy = weather->policy;
    definition.trains_on = weather->trains_on;
    definition.control_every = 7;
    job_fixture_open(&fixture);
    job_fixture_define(&fixture, &definition);
    for (int recurrence = 0; recurrence < recurrences(); recurrence++) {
        char submission[32], name[32];
        bool model = false;

        snprintf(submission, sizeof submission, "night-%d", recurrence);
        course.question = job_fixture_question("job");
        course.question.submission = submission;
        course.question.tries = TRIES;
        for (int i = 0; i < TRIES && !model; i++) {
            snprintf(name, sizeof name, "%d/%d", recurrence, i);
            course.question.run = name;
            model = run(&course);
        }
        if (!model)
            fail_msg("%s: recurrence %d ended without a model", weather->policy, recurrence);
        if (recurrence % 50 == 0)
            job_fixture_reopen(&fixture);
    }
    check_refold(&fixture);
    job_fixture_close(&fixture);
}

static int fold_one(void *context, const struct store_event *event, struct fly_error *out_error)
{
    return job_state_fold(context, event, NULL, out_error);
}

/* The state behind the handle, and the one that the whole log comes to, are equal to the last bit. */
static void check_refold(struct job_fixture *fixture)
{
    static const struct store_query everything = {0};
    struct buffer kept_bytes, folded_bytes;
    struct job_state folded, *kept;
    struct fly_error error;

    job_fixture_reopen(fixture);
    check_fine(local_look(fixture->jobs.self, "job", &kept, &error), error);
    job_state_init(&folded);
    check_fine(fixture->jobs.backend->read(fixture->jobs.self, "job", &everything, fold_one, &folded, &error),
               error);
    buffer_init(&kept_bytes, STATE_BYTES);
    buffer_init(&folded_bytes, STATE_BYTES);
    job_state_save(kept, &kept_bytes);
    job_state_save(&folded, &folded_bytes);
    assert_int_equal(kept_bytes.error | folded_bytes.error, 0);
    assert_int_equal(kept_bytes.length, folded_bytes.length);
    assert_memory_equal(kept_bytes.data, folded_bytes.data, folded_bytes.length);
    buffer_deinit(&kept_bytes);
    buffer_deinit(&folded_bytes);
    job_state_deinit(&folded);
}

static void test_every_recurrence_ends_with_a_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_weather(&rows[i], i + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_recurrence_ends_with_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
