/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of several threads over one file share commits: each has its own answer, and what
 * was acknowledged is in the log once, also when a neighbour's call fails, or the disk does.
 */
#include "job_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "faulty_vfs.h"

enum { CLIENTS = 8, PAIRS = 20, HELD_US = 300000, PATIENCE_S = 60 };

static struct job_fixture fixture;

/* A thread with a handle of its own. */
struct client {
    pthread_t thread;
    unsigned number;
    const char *job;
    struct jobs jobs;
    char request[32];
    uint64_t trials[PAIRS];
    int code;
    struct fly_error error;
};

static struct client clients[CLIENTS];
static const char *const jobs[] = {"one", "two", "three"};

static int setup(void **state)
{
    static const struct job_options patient = {.wait_s = PATIENCE_S};

    (void)state;
    if (faulty_vfs_count(FAULTY_SYNC) == 0)
        faulty_vfs_install();
    job_fixture_open(&fixture);
    for (size_t i = 0; i < COUNT(jobs); i++) {
        const struct fly_job_definition definition = job_fixture_definition(jobs[i]);

        job_fixture_define(&fixture, &definition);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.number = i, .job = jobs[i % COUNT(jobs)]};
        check_fine(jobs_open(fixture.store, &patient, &clients[i].jobs, &clients[i].error), clients[i].error);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    faulty_vfs_heal();
    for (unsigned i = 0; i < CLIENTS; i++)
        jobs_close(&clients[i].jobs);
    job_fixture_close(&fixture);
    return 0;
}

static struct job_answered report(struct client *client, uint64_t trial)
{
    const struct job_epoch epoch = {.job = client->job,
                                    .trial = trial,
                                    .attempt = 1,
                                    .epoch = 1,
                                    .metric = 0.95,
                                    .energy_j = 1000,
                                    .time_s = 10};
    struct job_answered answered = {0};

    client->code = client->jobs.backend->report(client->jobs.self, &epoch, &answered, &client->error);
    return answered;
}

static void propose(struct client *client, uint64_t *out_trial)
{
    struct job_question question = job_fixture_question(client->job);
    struct job_proposal proposal;

    question.request = client->request;
    client->code = client->jobs.backend->propose(client->jobs.self, &question, &proposal, &client->error);
    if (client->code == 0)
        *out_trial = proposal.trial;
}

static void run(void *(*act)(void *), void (*meanwhile)(void))
{
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&clients[i].thread, NULL, act, &clients[i]), 0);
    if (meanwhile != NULL)
        meanwhile();
    for (unsigned i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
}

/* Each proposal is one trial of its own, and each report is on record once. */
static void check_trials(size_t per_client)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (size_t k = 0; k < per_client; k++) {
            uint64_t trial = clients[i].trials[k];

            assert_true(trial > 0);
            assert_int_equal(job_fixture_count(&fixture, clients[i].job, "proposed", trial), 1);
            assert_int_equal(job_fixture_count(&fixture, clients[i].job, "attempt", trial), 1);
            for (unsigned other = 0; other < i; other++) {
                for (size_t n = 0; n < per_client && clients[other].job == clients[i].job; n++)
                    assert_int_not_equal(clients[other].trials[n], trial);
            }
        }
    }
}

/* ---- many at once, and every second one asks what has to be refused as well ---- */

static void *work(void *data)
{
    struct client *client = data;
    struct fly_error refused;

    for (int i = 0; i < PAIRS; i++) {
        struct job_epoch nonsense = {.job = client->job, .trial = 1000000, .attempt = 1, .epoch = 1};
        struct job_answered answered;

        snprintf(client->request, sizeof client->request, "%u/%d", client->number, i);
        propose(client, &client->trials[i]);
        if (client->code == 0 && client->number % 2 == 0 &&
            client->jobs.backend->report(client->jobs.self, &nonsense, &answered, &refused) != FLY_ENOTFOUND)
            client->code = FLY_EINTERNAL;
        if (client->code == 0)
            report(client, client->trials[i]);
        if (client->code < 0)
            break;
    }
    return NULL;
}

static void test_many_clients(void **state)
{
    (void)state;
    run(work, NULL);
    for (unsigned i = 0; i < CLIENTS; i++)
        check_fine(clients[i].code, clients[i].error);
    check_trials(PAIRS);
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < PAIRS; k++) {
            uint64_t trial = clients[i].trials[k];

            assert_int_equal(job_fixture_count(&fixture, clients[i].job, "epoch", trial), 1);
            assert_int_equal(job_fixture_count(&fixture, clients[i].job, "ended", trial), 1);
        }
    }
}

/* ---- all in line while another program holds the lock ---- */

static bool in_file(void)
{
    return fixture.store[0] == '/';
}

static int fault_code;
static unsigned round_number;
static enum faulty_operation fault_operation;

static void hold_lock(void)
{
    sqlite3 *other = NULL;

    assert_int_equal(sqlite3_open(fixture.store, &other), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(other, 1000 * PATIENCE_S), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    usleep(HELD_US);
    if (fault_code != 0)
        faulty_vfs_fail(fault_operation, 1, fault_code);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

static void *propose_once(void *data)
{
    struct client *client = data;

    usleep(HELD_US / 3);
    snprintf(client->request, sizeof client->request, "once %u/%u", round_number, client->number);
    /* The last one asks for what is not there: its neighbours go on. */
    if (client->number == CLIENTS - 1)
        client->job = "nobody's";
    propose(client, &client->trials[0]);
    return NULL;
}

static void test_one_commit_for_many(void **state)
{
    unsigned long before;

    (void)state;
    if (!in_file())
        skip();
    run(propose_once, NULL); /* all handles are warm */
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i].job = jobs[i % COUNT(jobs)];
    before = faulty_vfs_count(FAULTY_SYNC);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i].trials[0] = 0;
    round_number++;
    run(propose_once, hold_lock);
    assert_int_equal(clients[CLIENTS - 1].code, FLY_ENOTFOUND);
    for (unsigned i = 0; i < CLIENTS - 1; i++)
        check_fine(clients[i].code, clients[i].error);
    assert_in_range(faulty_vfs_count(FAULTY_SYNC) - before, 1, CLIENTS - 2);
}

/* As above, and then the disk fails under the shared commit; it heals, and all ask again. */
static void test_disk_fails_under_all(void **state)
{
    static const struct {
        enum faulty_operation operation;
        int code, means;
    } cases[] = {
        {FAULTY_WRITE, SQLITE_FULL, FLY_EWRITE},
        {FAULTY_WRITE, SQLITE_IOERR_WRITE, FLY_EWRITE},
        {FAULTY_SYNC, SQLITE_IOERR_FSYNC, FLY_EUNSURE},
    };

    (void)state;
    if (!in_file())
        skip();
    for (size_t n = 0; n < COUNT(cases); n++) {
        round_number++;
        fault_operation = cases[n].operation;
        fault_code = cases[n].code;
        for (unsigned i = 0; i < CLIENTS; i++) {
            clients[i].job = jobs[i % COUNT(jobs)];
            clients[i].trials[0] = 0;
        }
        run(propose_once, hold_lock);
        assert_true(faulty_vfs_struck());
        for (unsigned i = 0; i < CLIENTS - 1; i++) {
            if (clients[i].code != 0)
                assert_int_equal(clients[i].code, cases[n].means);
        }
        fault_code = 0;
        faulty_vfs_heal();
        run(propose_once, NULL);
        for (unsigned i = 0; i < CLIENTS - 1; i++)
            check_fine(clients[i].code, clients[i].error);
        clients[CLIENTS - 1] =
            (struct client){.number = CLIENTS - 1, .job = "nobody's", .jobs = clients[CLIENTS - 1].jobs};
        for (unsigned i = 0; i < CLIENTS - 1; i++) {
            uint64_t trial = clients[i].trials[0];

            assert_int_equal(job_fixture_count(&fixture, clients[i].job, "proposed", trial), 1);
            assert_int_equal(job_fixture_count(&fixture, clients[i].job, "attempt", trial), 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_clients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_commit_for_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disk_fails_under_all, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
