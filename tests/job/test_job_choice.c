/* SPDX-License-Identifier: Apache-2.0 */
/* What is run next, and what is not: tries, memory, crashes, deadlines, bounds, and what a user set. */
#include "job_fixture.h"

#include <stdio.h>

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static void pass(double seconds)
{
    fixture.now_us += (int64_t)(1e6 * seconds);
}

/* Tries of one submission belong together; the last is safe. */
static void test_tries(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    question.tries = 3;
    question.submission = "tonight";
    for (uint32_t i = 0; i < 3; i++) {
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(proposal.recurrence, 0);
        assert_int_equal(proposal.try_number, i);
        assert_int_equal(proposal.last_try, i == 2);
        assert_int_equal(proposal.reason, i == 2 ? REASON_LAST_TRY : REASON_EXPLORE);
        if (i < 2)
            job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    }
    assert_int_equal(proposal.epochs, 20);
    question.submission = "";
    question.tries = 1;
    proposal = job_fixture_propose(&fixture, &question);
    assert_true(proposal.last_try);
    assert_int_equal(proposal.batch_size, 32);
    assert_int_equal(proposal.recurrence, 1);
}

/* What ran out of memory is not run again where memory is no larger, and larger ones neither. */
static void test_out_of_memory(void **state)
{
    struct job_question question = job_fixture_question("job"), roomier = question, smaller = question;
    struct job_proposal proposal;
    uint32_t smallest_failed = 129;
    unsigned tried_on_roomier = 0;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    for (int i = 0; i < 60; i++) {
        proposal = job_fixture_propose(&fixture, &question);
        assert_true(proposal.batch_size < smallest_failed);
        if (proposal.wants_profile)
            job_fixture_profile(&fixture, "job", proposal.trial);
        if (proposal.batch_size >= 16) {
            smallest_failed = proposal.batch_size;
            job_fixture_over(&fixture, proposal.trial, 1, TRIAL_OUT_OF_MEMORY);
        } else {
            assert_int_equal(job_fixture_epoch(&fixture, proposal.trial, 1, 1, 1000, 10, 0.95).answer,
                             JOB_REACHED);
        }
        if (i % 10 == 0)
            job_fixture_reopen(&fixture);
    }
    assert_int_equal(smallest_failed, 16);
    smaller.hardware.gpu_memory_bytes = (uint64_t)8 << 30;
    smaller.hardware.gpu_model = "Smaller GPU";
    proposal = job_fixture_propose(&fixture, &smaller);
    assert_int_equal(proposal.batch_size, 8);
    /* Two ranks share: 16 of 8 each fit where 8 did. */
    smaller.hardware.gpu_model = "Test GPU";
    smaller.hardware.gpu_memory_bytes = question.hardware.gpu_memory_bytes;
    smaller.hardware.world_size = smaller.hardware.gpu_count = 2;
    proposal = job_fixture_propose(&fixture, &smaller);
    assert_int_equal(proposal.batch_size, 16);
    roomier.hardware.gpu_memory_bytes = (uint64_t)32 << 30;
    for (int i = 0; i < 30; i++) {
        job_fixture_train(&fixture, &roomier, 1, 1000, 10, 0.95, &proposal);
        tried_on_roomier |= proposal.batch_size;
    }
    assert_int_equal(tried_on_roomier, 8 | 16 | 32 | 64 | 128);
}

static struct job_ended crash(uint64_t trial, const char *text)
{
    return job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                       .trial = trial,
                                                       .attempt = 1,
                                                       .outcome = TRIAL_CRASHED,
                                                       .energy_j = NAN,
                                                       .time_s = NAN,
                                                       .text = text});
}

/* A batch size that crashes again and again while others train is given up, with the reason, for good. */
static void test_given_up(void **state)
{
    static const char text[] =
        "exit status 139, and \xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC"
        "\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC"
        "\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC"
        "\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC";
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    unsigned crashes = 0, tried = 0;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    question.tries = 3;
    for (int night = 0; night < 40; night++) {
        char submission[16];
        bool trained = false;

        snprintf(submission, sizeof submission, "night %d", night);
        question.submission = submission;
        for (uint32_t i = 0; i < 3 && !trained; i++) {
            proposal = job_fixture_propose(&fixture, &question);
            if (proposal.wants_profile)
                job_fixture_profile(&fixture, "job", proposal.trial);
            if (crashes == 1 && proposal.batch_size == 16)
                check_contains(proposal.why, "1 of its trials crashed, the newest by: exit status 139");
            if (proposal.batch_size == 16) {
                crashes++;
                crash(proposal.trial, text);
            } else {
                trained =
                    job_fixture_epoch(&fixture, proposal.trial, 1, 1, 1000, 10, 0.95).answer == JOB_REACHED;
                tried |= proposal.batch_size;
            }
        }
        assert_true(trained);
        if (night % 5 == 0)
            job_fixture_reopen(&fixture);
    }
    assert_int_equal(crashes, CRASH_STREAK_LEAST);
    assert_int_equal(tried, 8 | 32 | 64 | 128);
    check_contains(proposal.why,
                   "; batch size 16 is given up: its trials crashed again and again (exit status "
                   "139, and ");
    check_contains(proposal.why, "), while others trained");
}

/* Runs a night in which all batch sizes of the mask crash; which one trained, or 0. */
static uint32_t crash_night(int night, uint32_t tries, uint32_t crashing, unsigned crashes[],
                            struct job_proposal *out_proposal)
{
    struct job_question question = job_fixture_question("job");
    char submission[24];

    snprintf(submission, sizeof submission, "night %d", night);
    question.submission = submission;
    question.tries = tries;
    for (uint32_t i = 0; i < tries; i++) {
        *out_proposal = job_fixture_propose(&fixture, &question);
        if (out_proposal->wants_profile)
            job_fixture_profile(&fixture, "job", out_proposal->trial);
        if ((out_proposal->batch_size & crashing) == 0) {
            job_fixture_epoch(&fixture, out_proposal->trial, 1, 1, 1000, 10, 0.95);
            return out_proposal->batch_size;
        }
        crashes[out_proposal->batch_size]++;
        crash(out_proposal->trial, "exit status 1");
    }
    return 0;
}

/* A default that always crashes makes room for others, nearest smaller first; then it is given up. */
static void test_default_crashes(void **state)
{
    static const struct {
        const char *policy;
        uint32_t tries, crashing, first; /* that trains, or 0 */
        unsigned most;                   /* crashes of the default */
    } rows[] = {
        {"zeus", 3, 32, 16, 4},
        {"zeus", 1, 32, 16, 3},
        {"zeus", 3, 32 | 16, 8, 9},
        {"zeus", 3, 32 | 16 | 8, 64, 15},
        {"zeus", 3, 8 | 16 | 32 | 64 | 128, 0, 90},
        {"default", 3, 32, 0, 90},
    };

    for (size_t row = 0; row < COUNT(rows); row++) {
        unsigned crashes[129] = {0};
        struct job_proposal proposal;
        uint32_t first = 0;

        job_fixture_begin(&fixture, rows[row].policy);
        for (int night = 0; night < 30; night++) {
            uint32_t trained = crash_night(night, rows[row].tries, rows[row].crashing, crashes, &proposal);

            if (first == 0 && trained != 0)
                check_contains(
                    proposal.why,
                    "in the place of 32, whose last 3 trials crashed, to see if others do: it was");
            first = first == 0 ? trained : first;
            if (night % 7 == 0)
                job_fixture_reopen(&fixture);
        }
        if (first != rows[row].first || crashes[32] > rows[row].most)
            fail_msg("row %zu: %u trained first, 32 crashed %u times", row, first, crashes[32]);
        if (rows[row].first == 0 && rows[row].policy[0] == 'z')
            assert_true(crashes[8] == 3 && crashes[16] == 3 && crashes[64] == 3 && crashes[128] == 3);
        if (rows[row].policy[0] == 'd')
            assert_int_equal(crashes[32], 90);
        job_fixture_teardown(state);
        job_fixture_setup(state);
    }
}

/* With one try nothing is explored, and the reason says what to change. */
static void test_one_try(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    question.tries = 1;
    proposal = job_fixture_propose(&fixture, &question);
    check_contains(proposal.why, "with one try no other batch size is ever explored: allow more (--tries 3)");
    question.tries = 2;
    proposal = job_fixture_propose(&fixture, &question);
    assert_null(strstr(proposal.why, "--tries"));
}

/* Nothing is explored that could miss the time by which a model has to stand. */
static void test_finish_by(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct job_answered answered;
    uint32_t epoch = 0;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    question.finish_by_us = fixture.now_us + 1000000;
    proposal =
        job_fixture_propose(&fixture, &question); /* nothing is known: the default, whatever the policy */
    assert_int_equal(proposal.batch_size, 32);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    question.finish_by_us = 0;
    job_fixture_train(&fixture, &question, 10, 1365, 100, 0.95, NULL); /* the default takes 1000 s */
    question.finish_by_us = fixture.now_us + (int64_t)1500e6;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_DEADLINE);
    assert_int_equal(proposal.batch_size, 32);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    question.finish_by_us = fixture.now_us + (int64_t)3000e6;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    assert_int_equal(proposal.batch_size, 16);
    do {
        pass(100);
        epoch++;
        answered = job_fixture_epoch(&fixture, proposal.trial, 1, epoch, 100.0 * epoch, 100.0 * epoch, 0.1);
    } while (answered.answer == JOB_GO_ON);
    assert_int_equal(answered.stop, JOB_STOP_DEADLINE);
    assert_int_equal(epoch, 19); /* 1100 s are left for the default, and another epoch would take them */
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_DEADLINE);
    assert_int_equal(proposal.batch_size, 32);
}

/* A batch size that is known to break the bound is not run, whatever the policy says. */
static void test_bound(void **state)
{
    struct fly_job_definition definition = job_fixture_definition("job");
    struct job_question question = job_fixture_question("job");
    unsigned slow = 0;

    (void)state;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_ENERGY, 0.5, 1.05};
    definition.beta = INFINITY;
    job_fixture_define(&fixture, &definition);
    for (int i = 0; i < 60; i++) {
        struct job_proposal proposal = job_fixture_propose(&fixture, &question);
        bool is_slow = proposal.batch_size < 32;

        if (proposal.wants_profile)
            check_double(job_fixture_profile(&fixture, "job", proposal.trial).limit_w, 150);
        /* Smaller ones need less energy and more time. */
        job_fixture_epoch(&fixture, proposal.trial, 1, 1, is_slow ? 500 + i : 1000 + i, is_slow ? 20 : 10,
                          0.95);
        slow += is_slow;
    }
    assert_int_equal(slow, 4); /* two rounds of 16 and 8 */
}

static void set(struct job_setting setting)
{
    struct fly_error error;

    setting.job = "job";
    check_fine(at()->set(fixture.jobs.self, &setting, &error), error);
}

/* A pin holds until it is taken back; controls come every so often; the objective holds for the past too. */
static void test_settings(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;
    struct job_shown shown;
    struct fly_error error;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
    job_fixture_train(&fixture, &question, 1, 1000, 10, 0.95, &proposal);
    set((struct job_setting){.set_pin = true, .pin_batch_size = 64, .pin_limit_w = 100});
    job_fixture_train(&fixture, &question, 1, 1000, 10, 0.95, &proposal);
    assert_int_equal(proposal.reason, REASON_PINNED);
    assert_int_equal(proposal.batch_size, 64);
    check_double(proposal.limit_w, 100);
    set((struct job_setting){.set_pin = true,
                             .pin_batch_size = 0,
                             .pin_limit_w = NAN,
                             .set_control_every = true,
                             .control_every = 2});
    job_fixture_train(&fixture, &question, 1, 1000, 10, 0.95, &proposal);
    assert_int_equal(proposal.reason, REASON_CONTROL);
    assert_int_equal(proposal.recurrence, 2);
    assert_int_equal(proposal.batch_size, 32);
    check_double(proposal.limit_w, 200);
    job_fixture_train(&fixture, &question, 1, 1000, 10, 0.95, &proposal);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    set((struct job_setting){.set_objective = true,
                             .objective = {FLY_OBJECTIVE_TIME, 0.5, INFINITY},
                             .set_control_every = true,
                             .control_every = 0});
    set((struct job_setting){.set_pin = true, .pin_batch_size = 32, .pin_limit_w = NAN});
    job_fixture_reopen(&fixture);
    proposal = job_fixture_propose(&fixture, &question); /* its profile was measured for another objective */
    assert_false(proposal.wants_profile);
    check_double(proposal.limit_w, 200);
    job_fixture_over(&fixture, proposal.trial, 1, TRIAL_CRASHED);
    check_fine(at()->show(fixture.jobs.self, "job", &fixture.arena, &shown, &error), error);
    assert_int_equal(shown.objective.kind, FLY_OBJECTIVE_TIME);
    assert_int_equal(shown.definition.objective.kind, FLY_OBJECTIVE_COST);
    assert_int_equal(shown.trials, 5);
    assert_int_equal(shown.running, 0);
    assert_int_equal(shown.control_every, 0);
    check_fails(at()->set(fixture.jobs.self,
                          &(struct job_setting){
                              .job = "job", .set_pin = true, .pin_batch_size = 5, .pin_limit_w = NAN},
                          &error),
                FLY_EUSAGE, error, "batch size 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_tries),           job_test(test_out_of_memory), job_test(test_given_up),
        job_test(test_default_crashes), job_test(test_one_try),       job_test(test_finish_by),
        job_test(test_bound),           job_test(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
