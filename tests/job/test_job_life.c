/* SPDX-License-Identifier: Apache-2.0 */
/* A job's life: silence, late reports, requeues, and several processes at once. */
#include "job_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static struct job_fixture fixture;

static const struct job_backend *at(void)
{
    return fixture.jobs.backend;
}

static uint64_t expire(void)
{
    struct fly_error error;
    uint64_t expired = 0;

    check_fine(at()->expire(fixture.jobs.self, "job", &expired, &error), error);
    return expired;
}

/* What nobody told is not zero. */
static void check_expired_energy(uint64_t trial, double energy_j)
{
    struct job_history history = job_fixture_history(&fixture, &fixture.arena);

    check_double(isnan(history.rows[trial - 1].trial.energy_j) ? -1.0
                                                               : history.rows[trial - 1].trial.energy_j,
                 isnan(energy_j) ? -1.0 : energy_j);
}

static void pass(double seconds)
{
    fixture.now_us += (int64_t)(1e6 * seconds);
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
    job_fixture_begin(&fixture, "default");
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
            job_fixture_epoch(&fixture, proposal.trial, 1, 1, 1000, rows[i].epoch_s, 0.1);
        }
        pass(rows[i].allowed_s - 1);
        assert_int_equal(expire(), 0);
        pass(2);
        assert_int_equal(expire(), 1);
        assert_int_equal(expire(), 0);
        check_expired_energy(proposal.trial, rows[i].epoch_s > 0.0 ? 1000.0 : NAN);
    }
}

/* A trial that ends before anything was reported: a time that is told is on record, and no energy is not
 * zero. */
static void test_end_without_energy(void **state)
{
    static const double times_s[] = {0.25, NAN};

    (void)state;
    job_fixture_begin(&fixture, "default");
    for (size_t i = 0; i < COUNT(times_s); i++) {
        const struct job_question question = job_fixture_question("job");
        const struct job_proposal proposal = job_fixture_propose(&fixture, &question);
        struct job_ended ended;
        struct fly_error error;

        check_fine(at()->end(fixture.jobs.self,
                             &(struct job_end){.job = "job",
                                               .trial = proposal.trial,
                                               .attempt = 1,
                                               .outcome = TRIAL_CRASHED,
                                               .energy_j = NAN,
                                               .time_s = times_s[i],
                                               .reference_per_kwh = NAN},
                             &ended, &error),
                   error);
        assert_true(isnan(ended.energy_j));
        check_double(ended.time_s, isnan(times_s[i]) ? 0.0 : times_s[i]);
    }
}

/* Whoever holds the lock next writes an expiry down; then the policy explores again. */
static void test_expired_explorations(void **state)
{
    struct job_question question = job_fixture_question("job");
    struct job_proposal proposal;

    (void)state;
    job_fixture_begin(&fixture, "zeus");
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
    job_fixture_begin(&fixture, "zeus");
    lost = job_fixture_propose(&fixture, &question);
    job_fixture_epoch(&fixture, lost.trial, 1, 1, 1000, 10, 0.1);
    pass(601);
    assert_int_equal(expire(), 1);
    job_fixture_reopen(&fixture);
    answered = job_fixture_epoch(&fixture, lost.trial, 1, 2, 2000, 20, 0.2);
    assert_true(answered.late);
    assert_int_equal(answered.answer, JOB_GO_ON);
    pass(2000);
    assert_int_equal(expire(), 1); /* silent again, for three times its longest interval */
    answered = job_fixture_epoch(&fixture, lost.trial, 1, 3, 3000, 30, 0.95);
    assert_int_equal(answered.answer, JOB_REACHED);
    assert_true(answered.late);
    assert_int_equal(job_fixture_over(&fixture, lost.trial, 1, TRIAL_CRASHED).outcome, TRIAL_REACHED);
    other = job_fixture_propose(&fixture, &question);
    assert_int_equal(other.recurrence, 1);
    check_contains(other.why, "its only trial reached the target");
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
    job_fixture_begin(&fixture, "zeus");
    question.run = "slurm-17";
    first = job_fixture_propose(&fixture, &question);
    job_fixture_profile(&fixture, "job", first.trial);
    job_fixture_epoch(&fixture, first.trial, 1, 1, 1000, 10, 0.1);
    job_fixture_epoch(&fixture, first.trial, 1, 2, 2000, 20, 0.2);
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
    answered = job_fixture_epoch(&fixture, first.trial, 2, 2, 900, 9, 0.2);
    check_double(answered.energy_j, 2900);
    check_double(answered.time_s, 29);
    /* The old process is given up, and what it says is kept. */
    in_vain = job_fixture_epoch(&fixture, first.trial, 1, 3, 3000, 30, 0.3);
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
    answered = job_fixture_epoch(&fixture, first.trial, 2, 3, 1800, 18, 0.95);
    assert_int_equal(answered.answer, JOB_REACHED);
    check_double(answered.energy_j, 3800);
    /* It had its model: what the run submits next is a new recurrence. */
    third = job_fixture_propose(&fixture, &question);
    assert_int_equal(third.trial, 2);
    assert_int_equal(third.recurrence, 1);
}

enum { PROCESSES = 4, TRIALS_EACH = 25 };

/* Proposes in a process of its own, once it is told where; tells which trials it got by its pipe. */
static void propose_alone(int told, int pipe_end)
{
    struct job_question question = job_fixture_question("job");
    char path[sizeof fixture.path];
    struct jobs jobs;

    if (read(told, path, sizeof path) != sizeof path || jobs_open(path, NULL, &jobs, NULL) < 0)
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
    int ends[2], tells[2], status;
    uint64_t trial;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(tells), 0);
    /* Before the fixture: a service has threads, whose locks a child may not inherit. */
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            close(tells[1]);
            propose_alone(tells[0], ends[1]);
        }
    }
    close(ends[1]);
    job_fixture_open(&fixture);
    job_fixture_begin(&fixture, "zeus");
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(write(tells[1], fixture.path, sizeof fixture.path), sizeof fixture.path);
    close(tells[0]);
    close(tells[1]);
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
    job_fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        job_test(test_expiry),
        job_test(test_end_without_energy),
        job_test(test_expired_explorations),
        job_test(test_late_reports),
        job_test(test_requeue),
        cmocka_unit_test(test_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
