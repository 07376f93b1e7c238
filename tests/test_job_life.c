/* SPDX-License-Identifier: Apache-2.0 */
/* A job's life: silence, requeues, late reports, memory, deadlines, tries, settings, and what decisions cost.
 */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static void define(const char *policy)
{
    struct job_definition definition = job_fixture_definition("job");

    definition.policy = policy;
    job_fixture_define(&fixture, &definition);
}

static uint64_t expire(void)
{
    struct fly_error error;
    uint64_t expired = 0;

    check_fine(at()->expire(fixture.jobs.self, "job", &expired, &error), error);
    return expired;
}

static void pass(double seconds)
{
    fixture.now_us += (int64_t)(1e6 * seconds);
}

static struct job_answered report(uint64_t trial, uint32_t attempt, uint32_t epoch, double epoch_j,
                                  double epoch_s, double metric)
{
    return job_fixture_report(&fixture, &(struct job_epoch){.job = "job",
                                                            .trial = trial,
                                                            .attempt = attempt,
                                                            .epoch = epoch,
                                                            .metric = metric,
                                                            .energy_j = epoch_j,
                                                            .time_s = epoch_s});
}

static struct job_ended end(uint64_t trial, uint32_t attempt, enum trial_outcome outcome)
{
    return job_fixture_end(&fixture, &(struct job_end){.job = "job",
                                                       .trial = trial,
                                                       .attempt = attempt,
                                                       .outcome = outcome,
                                                       .energy_j = NAN,
                                                       .time_s = NAN});
}

/* Silence is measured by the trial's own epochs, by heartbeats before them, else by a day. */
static void test_expiry(void **state)
{
    static const struct {
        double heartbeat_s;
        double epoch_s; /* 0: no epoch was reported */
        double allowed_s;
    } rows[] = {{0, 0, 86400}, {60, 0, 600}, {400, 0, 1200}, {60, 10, 600}, {60, 1000, 3000}};

    (void)state;
    define("default");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_question question = job_fixture_question("job");
        struct job_proposal proposal;

        question.heartbeat_s = rows[i].heartbeat_s;
        proposal = job_fixture_propose(&fixture, &question);
        if (rows[i].epoch_s > 0.0) {
            /* A heartbeat in between keeps it alive as long as the epoch takes. */
            pass(rows[i].epoch_s / 2);
            assert_int_equal(
                at()->heartbeat(
                    fixture.jobs.self,
                    &(struct job_beat){
                        .job = "job", .trial = proposal.trial, .attempt = 1, .energy_j = NAN, .time_s = NAN},
                    NULL),
                0);
            pass(rows[i].epoch_s / 2);
            report(proposal.trial, 1, 1, 1000, rows[i].epoch_s, 0.1);
        }
        pass(rows[i].allowed_s - 1);
        assert_int_equal(expire(), 0);
        pass(2);
        assert_int_equal(expire(), 1);
        assert_int_equal(expire(), 0);
    }
}

/* Whoever holds the lock next writes an expiry down; then the policy explores again. */
static void test_expired_explorations(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    define("zeus");
    question.heartbeat_s = 60;
    for (int i = 0; i < 3; i++) {
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(proposal.reason, REASON_EXPLORE);
        assert_int_equal(proposal.batch_size, 32);
        pass(601);
    }
    assert_int_equal(job_fixture_count(&fixture, "job", "ended", 0), 2);
}

/* A report that comes after the expiry is kept, and the trial counts after all. */
static void test_late_reports(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal lost, other;
    struct job_answered answered;

    (void)state;
    define("zeus");
    lost = job_fixture_propose(&fixture, &question);
    report(lost.trial, 1, 1, 1000, 10, 0.1);
    pass(601);
    assert_int_equal(expire(), 1);
    job_fixture_reopen(&fixture);
    answered = report(lost.trial, 1, 2, 2000, 20, 0.2);
    assert_true(answered.late);
    assert_int_equal(answered.answer, JOB_GO_ON);
    pass(2000);
    assert_int_equal(expire(), 1); /* silent again, for three times its longest interval */
    answered = report(lost.trial, 1, 3, 3000, 30, 0.95);
    assert_int_equal(answered.answer, JOB_REACHED);
    assert_true(answered.late);
    assert_int_equal(end(lost.trial, 1, TRIAL_CRASHED).outcome, TRIAL_REACHED);
    other = job_fixture_propose(&fixture, &question);
    assert_int_equal(other.recurrence, 1);
    check_contains(other.why, "1 of its 1 trials reached the target");
}

/* A requeued run goes on with its trial: batch size fixed, energy added, the gap not counted. */
static void test_requeue(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal first, second, third;
    struct job_answered answered;
    struct job_answered in_vain;
    struct fly_error error;

    (void)state;
    define("zeus");
    question.run = "slurm-17";
    first = job_fixture_propose(&fixture, &question);
    job_fixture_profile(&fixture, "job", first.trial);
    report(first.trial, 1, 1, 1000, 10, 0.1);
    report(first.trial, 1, 2, 2000, 20, 0.2);
    pass(86400 * 3); /* in the queue */
    second = job_fixture_propose(&fixture, &question);
    assert_int_equal(second.trial, first.trial);
    assert_int_equal(second.attempt, 2);
    assert_int_equal(second.batch_size, first.batch_size);
    assert_int_equal(second.epochs_done, 2);
    assert_false(second.wants_profile);
    check_double(second.limit_w, 150);
    check_double(second.energy_j, 2000);
    check_double(second.time_s, 20);
    /* From the checkpoint, an epoch back. */
    answered = report(first.trial, 2, 2, 900, 9, 0.2);
    check_double(answered.energy_j, 2900);
    check_double(answered.time_s, 29);
    /* The old process is given up, and what it says is kept. */
    in_vain = report(first.trial, 1, 3, 3000, 30, 0.3);
    assert_int_equal(in_vain.stop, JOB_STOP_ENDED);
    check_fails(at()->end(fixture.jobs.self,
                          &(struct job_end){.job = "job",
                                            .trial = first.trial,
                                            .attempt = 1,
                                            .outcome = TRIAL_CRASHED,
                                            .energy_j = NAN,
                                            .time_s = NAN},
                          &(struct job_ended){0}, &error),
                FLY_ESTATE, error, "attempt 2, not 1");
    answered = report(first.trial, 2, 3, 1800, 18, 0.95);
    assert_int_equal(answered.answer, JOB_REACHED);
    check_double(answered.energy_j, 3800);
    /* It had its model: what the run submits next is a new recurrence. */
    third = job_fixture_propose(&fixture, &question);
    assert_int_equal(third.trial, 2);
    assert_int_equal(third.recurrence, 1);
}

/* Tries of one submission belong together; the last is safe. */
static void test_tries(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    define("zeus");
    question.tries = 3;
    question.submission = "tonight";
    for (uint32_t i = 0; i < 3; i++) {
        proposal = job_fixture_propose(&fixture, &question);
        assert_int_equal(proposal.recurrence, 0);
        assert_int_equal(proposal.try_number, i);
        assert_int_equal(proposal.last_try, i == 2);
        assert_int_equal(proposal.reason, i == 2 ? REASON_LAST_TRY : REASON_EXPLORE);
        if (i < 2)
            end(proposal.trial, 1, TRIAL_CRASHED);
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
    define("zeus");
    for (int i = 0; i < 60; i++) {
        proposal = job_fixture_propose(&fixture, &question);
        assert_true(proposal.batch_size < smallest_failed);
        if (proposal.wants_profile)
            job_fixture_profile(&fixture, "job", proposal.trial);
        if (proposal.batch_size >= 16) {
            smallest_failed = proposal.batch_size;
            end(proposal.trial, 1, TRIAL_OUT_OF_MEMORY);
        } else {
            assert_int_equal(report(proposal.trial, 1, 1, 1000, 10, 0.95).answer, JOB_REACHED);
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
    define("zeus");
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
                trained = report(proposal.trial, 1, 1, 1000, 10, 0.95).answer == JOB_REACHED;
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

/* With one try nothing is explored, and the reason says what to change. */
static void test_one_try(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    define("zeus");
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
    define("zeus");
    question.finish_by_us = fixture.now_us + 1000000;
    proposal =
        job_fixture_propose(&fixture, &question); /* nothing is known: the default, whatever the policy */
    assert_int_equal(proposal.batch_size, 32);
    end(proposal.trial, 1, TRIAL_CRASHED);
    question.finish_by_us = 0;
    job_fixture_train(&fixture, &question, 10, 1365, 100, 0.95, NULL); /* the default takes 1000 s */
    question.finish_by_us = fixture.now_us + (int64_t)1500e6;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_DEADLINE);
    assert_int_equal(proposal.batch_size, 32);
    end(proposal.trial, 1, TRIAL_CRASHED);
    question.finish_by_us = fixture.now_us + (int64_t)3000e6;
    proposal = job_fixture_propose(&fixture, &question);
    assert_int_equal(proposal.reason, REASON_EXPLORE);
    assert_int_equal(proposal.batch_size, 16);
    do {
        pass(100);
        epoch++;
        answered = report(proposal.trial, 1, epoch, 100.0 * epoch, 100.0 * epoch, 0.1);
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
    struct job_definition definition = job_fixture_definition("job");
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
        report(proposal.trial, 1, 1, is_slow ? 500 + i : 1000 + i, is_slow ? 20 : 10, 0.95);
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
    define("zeus");
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
    end(proposal.trial, 1, TRIAL_CRASHED);
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

enum { PROCESSES = 4, TRIALS_EACH = 25 };

/* Proposes in a process of its own; tells which trials it got by its pipe. */
static void propose_alone(const char *path, int pipe_end)
{
    struct job_question question = job_fixture_question("job");
    struct jobs jobs;

    if (jobs_open(path, NULL, &jobs, NULL) < 0)
        _exit(1);
    for (int i = 0; i < TRIALS_EACH; i++) {
        struct job_proposal proposal;

        if (jobs.backend->propose(jobs.self, &question, &proposal, NULL) < 0 ||
            write(pipe_end, &proposal.trial, sizeof proposal.trial) != sizeof proposal.trial)
            _exit(2);
    }
    jobs_close(&jobs);
    _exit(0);
}

static void test_processes(void **state)
{
    bool seen[PROCESSES * TRIALS_EACH + 1] = {false};
    int ends[2], status;
    uint64_t trial;

    (void)state;
    define("zeus");
    jobs_close(&fixture.jobs); /* a child may not inherit it */
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0)
            propose_alone(fixture.path, ends[1]);
    }
    close(ends[1]);
    while (read(ends[0], &trial, sizeof trial) == sizeof trial) {
        assert_true(trial >= 1 && trial <= PROCESSES * TRIALS_EACH);
        assert_false(seen[trial]);
        seen[trial] = true;
    }
    close(ends[0]);
    for (int i = 0; i < PROCESSES; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    for (size_t i = 1; i < COUNT(seen); i++)
        assert_true(seen[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_expiry),       job_test(test_expired_explorations),
        job_test(test_late_reports), job_test(test_requeue),
        job_test(test_tries),        job_test(test_out_of_memory),
        job_test(test_finish_by),    job_test(test_bound),
        job_test(test_settings),     job_test(test_processes),
        job_test(test_given_up),     job_test(test_one_try),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
