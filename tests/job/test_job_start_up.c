/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a trial takes before its first step, or in its first epoch beyond the others, ends no exploration; and
 * a program that fails before its first step changes no choice.
 */
#include "job_fixture.h"

#include <stdio.h>

enum { RECURRENCES = 24, TRIES = 3, START_UP_S = 4, LOADING_W = 100, TRAINING_W = 150 };

static const double epoch_s = 0.8;

static struct job_fixture fixture;

/* Epochs to the target: 64 is the best batch size of the fixture's, and 32 the default. */
static const struct {
    uint32_t batch_size, epochs;
} needs[] = {{8, 12}, {16, 8}, {32, 5}, {64, 3}, {128, 6}};

/* A program as its reports tell of it. */
struct world {
    const char *name, *policy;
    bool tells;     /* when its first step began */
    double slow_s;  /* what its first epoch takes beyond the others */
    uint32_t every; /* epochs between two reports */
};

static uint32_t epochs_of(uint32_t batch_size)
{
    for (size_t i = 0; i < COUNT(needs); i++) {
        if (needs[i].batch_size == batch_size)
            return needs[i].epochs;
    }
    fail();
    return 0;
}

static struct job_question ask(uint64_t recurrence, char submission[32])
{
    struct job_question question = job_fixture_question("job");

    snprintf(submission, 32, "night-%d", (int)recurrence);
    question.submission = submission;
    question.tries = TRIES;
    question.hardware.limit_count = 0; /* no profiles: epochs are known by what they took alone */
    question.hardware.max_power_w = 200.0;
    return question;
}

/* Trains until the answer ends it; returns how many epochs that were. */
static uint32_t train(const struct world *world, const struct job_proposal *proposal,
                      struct job_answered *out_answered)
{
    uint32_t needed = epochs_of(proposal->batch_size), epoch = 0;

    do {
        double training_s;

        epoch += world->every;
        training_s = epoch * epoch_s + world->slow_s;
        fixture.now_us += 10 * 1000000;
        *out_answered = job_fixture_report(
            &fixture, &(struct job_epoch){.job = "job",
                                          .trial = proposal->trial,
                                          .attempt = proposal->attempt,
                                          .epoch = epoch,
                                          .metric = epoch >= needed ? 0.95 : 0.5,
                                          .energy_j = START_UP_S * LOADING_W + training_s * TRAINING_W,
                                          .time_s = START_UP_S + training_s,
                                          .reference_per_kwh = NAN,
                                          .startup_energy_j = world->tells ? START_UP_S * LOADING_W : NAN,
                                          .startup_time_s = world->tells ? START_UP_S : NAN});
    } while (out_answered->answer == JOB_GO_ON);
    return epoch;
}

/*
 * An exploration ends where its epochs cost too much, never with its first report; the best batch size is
 * found, and stays.
 */
static void test_explorations_are_not_cut(void **state)
{
    static const struct world worlds[] = {
        {"known", "bayes", true, 0.0, 1},        {"not told", "bayes", false, 0.0, 1},
        {"slow epoch", "bayes", true, 4.0, 1},   {"both, not told", "bayes", false, 4.0, 1},
        {"every second", "bayes", true, 0.0, 2}, {"second, not told", "bayes", false, 0.0, 2},
        {"known", "zeus", true, 0.0, 1},         {"not told", "zeus", false, 0.0, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(worlds); i++) {
        const struct world *world = &worlds[i];
        struct job_history history;
        uint32_t last = 0, best = 0;

        job_fixture_open(&fixture);
        job_fixture_begin(&fixture, world->policy);
        for (uint64_t r = 0; r < RECURRENCES; r++) {
            struct job_answered answered = {.answer = JOB_STOP};
            char submission[32];

            for (int attempt = 0; attempt < TRIES && answered.answer != JOB_REACHED; attempt++) {
                const struct job_question question = ask(r, submission);
                const struct job_proposal proposal = job_fixture_propose(&fixture, &question);
                uint32_t ran = train(world, &proposal, &answered);

                if (answered.stop == JOB_STOP_COST && ran <= world->every)
                    fail_msg("%s, %s: trial %d with batch size %u was stopped with its first report",
                             world->policy, world->name, (int)proposal.trial, proposal.batch_size);
                last = proposal.batch_size;
            }
            assert_int_equal(answered.answer, JOB_REACHED);
            best += r >= RECURRENCES / 2 && last == 64;
        }
        if (best < RECURRENCES / 2 - 4)
            fail_msg("%s, %s: the best batch size ran in %u of the last %d recurrences", world->policy,
                     world->name, best, RECURRENCES / 2);
        history = job_fixture_history(&fixture, &fixture.arena);
        for (size_t row = 0; row < history.count; row++) {
            if (world->tells) {
                check_double(history.rows[row].startup_time_s, START_UP_S);
                check_double(history.rows[row].startup_energy_j, START_UP_S * LOADING_W);
            } else {
                assert_true(isnan(history.rows[row].startup_time_s));
            }
        }
        job_fixture_close(&fixture);
    }
}

/* Start-ups of several attempts add up, and one that is not known leaves the sum unknown. */
static void test_attempts(void **state)
{
    const struct world world = {"", "", true, 0.0, 1};
    struct job_history history;
    struct job_answered answered;

    (void)state;
    job_fixture_begin(&fixture, "default");
    for (int unknown = 0; unknown <= 1; unknown++) {
        char submission[32];
        struct job_question question = ask(unknown, submission);
        struct job_proposal proposal;

        question.run = submission;
        proposal = job_fixture_propose(&fixture, &question);
        if (!unknown) {
            (void)job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                                   .trial = proposal.trial,
                                                                   .attempt = 1,
                                                                   .epoch = 1,
                                                                   .metric = 0.5,
                                                                   .energy_j = 800.0,
                                                                   .time_s = 8.0,
                                                                   .startup_energy_j = 300.0,
                                                                   .startup_time_s = 3.0});
        }
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(proposal.attempt, 2);
        (void)train(&world, &proposal, &answered);
    }
    history = job_fixture_history(&fixture, &fixture.arena);
    check_double(history.rows[0].startup_time_s, 3.0 + START_UP_S);
    check_double(history.rows[0].startup_energy_j, 300.0 + START_UP_S * LOADING_W);
    assert_true(isnan(history.rows[1].startup_time_s));
}

/* ---- a program that fails before its first step ---- */

static void leave(const struct job_proposal *proposal)
{
    const struct job_ended ended =
        job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                    .trial = proposal->trial,
                                                    .attempt = proposal->attempt,
                                                    .outcome = TRIAL_CRASHED,
                                                    .energy_j = 5.0,
                                                    .time_s = 0.1,
                                                    .text = JOB_END_WITHOUT_STEP ": exit status 2",
                                                    .nothing_learnt = true});

    assert_true(ended.ends);
}

struct chosen {
    uint32_t batch_size, epochs, try_number;
    uint64_t recurrence;
    enum reason reason;
};

/* Lives through a job; with `typos`, three submissions before the first and some between fail to start. */
static size_t live(const char *policy, bool typos, struct chosen *out_chosen)
{
    const struct world world = {"", policy, true, 0.0, 1};
    size_t count = 0;

    job_fixture_open(&fixture);
    job_fixture_begin(&fixture, policy);
    for (uint64_t r = 0; r < RECURRENCES; r++) {
        int fail_first = !typos ? 0 : r == 0 ? 3 : r % 5 == 0;
        struct job_answered answered = {.answer = JOB_STOP};
        char submission[32];

        for (int i = 0; i < fail_first; i++) {
            const struct job_question question = ask(1000 * (r + 1) + (uint64_t)i, submission);
            const struct job_proposal proposal = job_fixture_propose(&fixture, &question);

            leave(&proposal);
        }
        job_fixture_reopen(&fixture); /* from a snapshot too */
        for (int attempt = 0; attempt < TRIES && answered.answer != JOB_REACHED; attempt++) {
            const struct job_question question = ask(r, submission);
            const struct job_proposal proposal = job_fixture_propose(&fixture, &question);

            out_chosen[count++] = (struct chosen){proposal.batch_size, proposal.epochs, proposal.try_number,
                                                  proposal.recurrence, proposal.reason};
            (void)train(&world, &proposal, &answered);
        }
    }
    return count;
}

/* The choices are those of a job whose program always started. */
static void test_typos_change_no_choice(void **state)
{
    static const char *const policies[] = {"bayes", "zeus", "grid", "default"};
    static struct chosen plain[RECURRENCES * TRIES], with_typos[RECURRENCES * TRIES];

    (void)state;
    for (size_t p = 0; p < COUNT(policies); p++) {
        struct job_history history;
        size_t count = live(policies[p], false, plain), failed = 0;

        job_fixture_close(&fixture);
        assert_int_equal(live(policies[p], true, with_typos), count);
        for (size_t i = 0; i < count; i++) {
            if (plain[i].batch_size != with_typos[i].batch_size || plain[i].reason != with_typos[i].reason ||
                plain[i].epochs != with_typos[i].epochs || plain[i].try_number != with_typos[i].try_number)
                fail_msg("%s, choice %zu: batch size %u in recurrence %d, and %u in %d with typos",
                         policies[p], i, plain[i].batch_size, (int)plain[i].recurrence,
                         with_typos[i].batch_size, (int)with_typos[i].recurrence);
        }
        assert_int_equal(with_typos[0].recurrence, 0);
        history = job_fixture_history(&fixture, &fixture.arena);
        for (size_t i = 0; i < history.count; i++)
            failed += strcmp(job_row_outcome(&history.rows[i]), "nothing_learnt") == 0;
        assert_int_equal(failed, 3 + (RECURRENCES - 1) / 5);
        job_fixture_close(&fixture);
    }
}

/*
 * A program that rejects one batch size: the same submission goes on with another one, and after three such
 * failures the batch size is given up.
 */
static void test_rejected_batch_size(void **state)
{
    const struct world world = {"", "bayes", true, 0.0, 1};
    uint32_t rejected = 0, failures = 0;

    (void)state;
    job_fixture_begin(&fixture, "bayes");
    for (uint64_t r = 0; r < RECURRENCES; r++) {
        struct job_answered answered = {.answer = JOB_STOP};
        char submission[32];

        for (int attempt = 0; attempt < TRIES && answered.answer != JOB_REACHED; attempt++) {
            const struct job_question question = ask(r, submission);
            const struct job_proposal proposal = job_fixture_propose(&fixture, &question);

            assert_int_equal(proposal.try_number, attempt);
            if (rejected == 0 && proposal.untried)
                rejected = proposal.batch_size;
            if (proposal.batch_size == rejected) {
                assert_true(proposal.untried);
                failures++;
                leave(&proposal);
            } else {
                (void)train(&world, &proposal, &answered);
            }
        }
        assert_int_equal(answered.answer, JOB_REACHED);
    }
    assert_true(rejected != 0);
    assert_int_equal(failures, 3);
}

/* Nothing is learnt of a trial that has reported an epoch only where it crashed: then it is a crash. */
static void test_trial_with_an_epoch(void **state)
{
    struct job_history history;
    struct job_proposal proposal;
    char submission[32];
    struct job_question question = ask(0, submission);

    (void)state;
    job_fixture_begin(&fixture, "default");
    proposal = job_fixture_propose(&fixture, &question);
    job_fixture_epoch(&fixture, proposal.trial, 1, 1, 100.0, 1.0, 0.5);
    leave(&proposal);
    history = job_fixture_history(&fixture, &fixture.arena);
    assert_string_equal(job_row_outcome(&history.rows[0]), "crashed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explorations_are_not_cut),
        job_test(test_attempts),
        cmocka_unit_test(test_typos_change_no_choice),
        job_test(test_rejected_batch_size),
        job_test(test_trial_with_an_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
