/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One store and many programs: numbers are given once, a killed program leaves whole
 * changes, and what it was told is written is there. Children open their own handles,
 * and the parent has none meanwhile.
 */
#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 8, APPENDS = 20, ROUNDS = 20, EVENTS_OF_CHANGE = 3, CHANGES_MAX = 100 };

static const struct store_query everything;
static const struct store_options patient = {.wait_s = 90.0};
static struct kept kept;

/* The nth number, from 0, of a key such as "r3/7/2"; -1 where there is none. */
static long part_of(const char *key, int nth)
{
    const char *place = key[0] == '\0' ? key : key + 1;
    char *end;
    long number;

    for (; nth > 0 && *place != '\0'; nth--) {
        place += strcspn(place, "/");
        place += *place == '/' ? 1 : 0;
    }
    number = strtol(place, &end, 10);
    return end == place || (*end != '/' && *end != '\0') ? -1 : number;
}

/* In a child, where a failed check must not go on as the parent's test. */
static void require(bool holds, const struct fly_error *error)
{
    if (holds)
        return;
    fprintf(stderr, "# child: %s\n", error->text);
    _exit(3);
}

static struct store *open_in_child(void)
{
    struct fly_error error = {0};
    struct store *store = NULL;

    require(store_open(store_fixture_address(), &patient, &store, &error) == 0, &error);
    return store;
}

static int take_trial(void *state, const struct store_event *event, struct fly_error *out_error)
{
    (void)out_error;
    *(uint64_t *)state = event->trial;
    return 0;
}

/* Proposes the trial after the last one: what it decides by is read under the lock. */
static uint64_t propose(struct store *store, const char *job, const char *key)
{
    struct fly_error error = {0};
    struct store_change *change = NULL;
    struct store_event event = {.kind = "proposed", .key = key, .body = "{}"};
    uint64_t last = 0, number = 0;

    require(store_change_begin(store, job, STORE_MAKE_JOB, &change, &error) == 0, &error);
    require(store_change_read(change, &(struct store_query){.after = store_change_head(change) - 1},
                              take_trial, &last, &error) == 0 ||
                store_change_head(change) == 0,
            &error);
    event.trial = last + 1;
    require(store_change_append(change, &event, &number, &error) == 0, &error);
    require(store_change_commit(change, &error) == 0, &error);
    return number;
}

static void wait_for_children(const pid_t *children, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
}

static void write_many(const char *job, int writer)
{
    struct store *store = open_in_child();
    char key[32];

    for (int i = 0; i < APPENDS; i++) {
        snprintf(key, sizeof key, "w%d/%d", writer, i);
        propose(store, job, key);
    }
    store_close(store);
    _exit(0);
}

static void test_writers_at_once(void **state)
{
    const char *job = store_fixture_job("at once");
    pid_t children[WRITERS];
    int next[WRITERS] = {0};
    struct store *store;

    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            write_many(job, i);
    }
    wait_for_children(children, WRITERS);
    store = store_fixture_open();
    store_fixture_read(store, job, &everything, &kept);
    assert_int_equal(kept.count, WRITERS * APPENDS);
    for (size_t i = 0; i < kept.count; i++) {
        long writer = part_of(kept.events[i].key, 0), turn = part_of(kept.events[i].key, 1);

        assert_int_equal(kept.events[i].number, i + 1);
        assert_int_equal(kept.events[i].trial, i + 1);
        assert_in_range(writer, 0, WRITERS - 1);
        assert_int_equal(turn, next[writer]++);
    }
    store_close(store);
}

struct thread_work {
    const char *job;
    int writer;
};

static void *write_in_thread(void *state)
{
    const struct thread_work *work = state;
    struct store *store = open_in_child();
    char key[32];

    for (int i = 0; i < APPENDS; i++) {
        snprintf(key, sizeof key, "w%d/%d", work->writer, i);
        propose(store, work->job, key);
    }
    store_close(store);
    return NULL;
}

static void test_threads_at_once(void **state)
{
    enum { THREADS = 4 };
    const char *job = store_fixture_job("threads");
    struct thread_work works[THREADS];
    pthread_t threads[THREADS];
    struct store *store;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        works[i] = (struct thread_work){job, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_in_thread, &works[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    store = store_fixture_open();
    store_fixture_read(store, job, &everything, &kept);
    assert_int_equal(kept.count, THREADS * APPENDS);
    for (size_t i = 0; i < kept.count; i++)
        assert_int_equal(kept.events[i].trial, i + 1);
    store_close(store);
}

/* Changes of three events, until it is killed; tells of each once it is acknowledged. */
static void write_until_killed(const char *job, int round, int pipe_end)
{
    struct store *store = open_in_child();
    struct fly_error error = {0};

    for (int i = 0; i < CHANGES_MAX; i++) {
        struct store_change *change = NULL;

        require(store_change_begin(store, job, STORE_MAKE_JOB, &change, &error) == 0, &error);
        for (int part = 0; part < EVENTS_OF_CHANGE; part++) {
            char key[48];
            const struct store_event event = {
                .kind = "part", .key = key, .body = "{\"filler\": \"0123456789\"}"};

            snprintf(key, sizeof key, "r%d/%d/%d", round, i, part);
            require(store_change_append(change, &event, NULL, &error) == 0, &error);
        }
        require(store_change_commit(change, &error) == 0, &error);
        require(write(pipe_end, &i, sizeof i) == sizeof i, &error);
    }
    for (;;)
        pause();
}

/* What is left of a round: whole changes, in order, with all that was acknowledged. */
static size_t check_round(int round, int acknowledged, size_t from)
{
    int expected = 0;

    for (; from < kept.count; from++, expected++) {
        const char *key = kept.events[from].key;

        assert_int_equal(kept.events[from].number, from + 1);
        if (part_of(key, 0) != round)
            break;
        assert_int_equal(part_of(key, 1), expected / EVENTS_OF_CHANGE);
        assert_int_equal(part_of(key, 2), expected % EVENTS_OF_CHANGE);
    }
    assert_int_equal(expected % EVENTS_OF_CHANGE, 0);
    assert_true(expected / EVENTS_OF_CHANGE >= acknowledged);
    /* At most the one change whose acknowledgement was under way. */
    assert_true(expected / EVENTS_OF_CHANGE <= acknowledged + 1);
    return from;
}

/* Lets a program write, kills it, and tells how many changes were acknowledged. */
static int kill_one(const char *job, int round, const struct timespec *pause)
{
    int ends[2], status = 0, number, count = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0)
        write_until_killed(job, round, ends[1]);
    close(ends[1]);
    /* The first round may be killed before its first change. */
    if (round > 0 && read(ends[0], &number, sizeof number) == sizeof number)
        count++;
    nanosleep(pause, NULL);
    kill(child, SIGKILL);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        assert_int_equal(number, count++);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    return count;
}

static void test_killed(void **state)
{
    const char *job = store_fixture_job("killed");
    uint64_t random = (uint64_t)time(NULL);
    int acknowledged[ROUNDS];
    struct store *store;
    size_t from = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec pause = {.tv_nsec = 1000000 + (long)test_below(&random, 20000000)};

        acknowledged[round] = kill_one(job, round, &pause);
    }
    store = store_fixture_open_with(&patient);
    /* Waits until a server has noticed the last one's end. */
    store_change_rollback(store_fixture_change(store, job));
    store_fixture_read(store, job, &everything, &kept);
    for (int round = 0; round < ROUNDS; round++)
        from = check_round(round, acknowledged[round], from);
    assert_int_equal(from, kept.count);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writers_at_once),
        cmocka_unit_test(test_threads_at_once),
        cmocka_unit_test(test_killed),
    };

    return cmocka_run_group_tests_name("store processes", tests, store_fixture_begin, store_fixture_end);
}
