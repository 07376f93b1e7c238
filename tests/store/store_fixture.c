/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <flyball/error.h>

static char directory[64], address[4096];
static long run_number;

int store_fixture_begin(void **state)
{
    const char *given = getenv("FLYBALL_TEST_STORE");
    struct timespec now;

    (void)state;
    clock_gettime(CLOCK_REALTIME, &now);
    run_number = (long)getpid() * 1000 + now.tv_nsec / 1000000;
    if (given != NULL && given[0] != '\0') {
        snprintf(address, sizeof address, "%s", given);
        directory[0] = '\0';
        return 0;
    }
    snprintf(directory, sizeof directory, "/tmp/flyball-store-XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(address, sizeof address, "%s/store.sqlite", directory);
    return 0;
}

int store_fixture_end(void **state)
{
    static const char *const names[] = {"store.sqlite", "store.sqlite-wal", "store.sqlite-shm"};
    char path[128];

    (void)state;
    if (directory[0] == '\0')
        return 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
    return 0;
}

const char *store_fixture_address(void)
{
    return address;
}

bool store_fixture_is_file(void)
{
    return directory[0] != '\0';
}

const char *store_fixture_job(const char *name)
{
    static char names[16][128];
    static size_t next;
    char *job = names[next++ % COUNT(names)];

    snprintf(job, sizeof names[0], "%s %ld", name, run_number);
    return job;
}

void check_done_at(int code, const struct fly_error *error, const char *file, int line)
{
    if (code == 0)
        return;
    print_error("%s:%d: %s: %s\n", file, line, fly_error_name(code), error->text);
    _fail(file, line);
}

void check_refused_at(int code, int expected, const struct fly_error *error, const char *part,
                      const char *file, int line)
{
    if (code == expected && (part == NULL || strstr(error->text, part) != NULL))
        return;
    print_error("%s:%d: %s, expected %s with '%s': %s\n", file, line, fly_error_name(code),
                fly_error_name(expected), part == NULL ? "" : part, error->text);
    _fail(file, line);
}

struct store *store_fixture_open_with(const struct store_options *options)
{
    struct fly_error error = {0};
    struct store *store = NULL;

    check_done(store_open(address, options, &store, &error), &error);
    return store;
}

struct store *store_fixture_open(void)
{
    return store_fixture_open_with(NULL);
}

struct store_change *store_fixture_change(struct store *store, const char *job)
{
    struct fly_error error = {0};
    struct store_change *change = NULL;

    check_done(store_change_begin(store, job, STORE_MAKE_JOB, &change, &error), &error);
    return change;
}

uint64_t store_fixture_append(struct store_change *change, const char *kind, uint64_t trial, const char *key,
                              const char *body)
{
    const struct store_event event = {.kind = kind, .trial = trial, .key = key, .body = body};
    struct fly_error error = {0};
    uint64_t number = 0;

    check_done(store_change_append(change, &event, &number, &error), &error);
    return number;
}

uint64_t store_fixture_add(struct store *store, const char *job, uint64_t trial, const char *key)
{
    struct store_change *change = store_fixture_change(store, job);
    struct fly_error error = {0};
    uint64_t number = store_fixture_append(change, "made", trial, key, "{}");

    check_done(store_change_commit(change, &error), &error);
    return number;
}

static void keep_text(char to[KEPT_TEXT_MAX], const char *from)
{
    snprintf(to, KEPT_TEXT_MAX, "%s", from);
}

int store_fixture_keep(void *state, const struct store_event *event, struct fly_error *out_error)
{
    struct kept *kept = state;
    struct kept_event *copy = &kept->events[kept->count];

    if (kept->count == KEPT_MAX) {
        snprintf(out_error->text, sizeof out_error->text, "more events than a test keeps");
        return FLY_ELIMIT;
    }
    *copy = (struct kept_event){event->number, event->trial, event->time_us, strlen(event->body), "", "", ""};
    keep_text(copy->kind, event->kind);
    keep_text(copy->key, event->key);
    keep_text(copy->body, event->body);
    kept->count++;
    return kept->stop_after != 0 && kept->count == kept->stop_after ? kept->stop_code : 0;
}

void store_fixture_read(struct store *store, const char *job, const struct store_query *query,
                        struct kept *kept)
{
    struct fly_error error = {0};

    memset(kept, 0, sizeof *kept);
    check_done(store_read(store, job, query, store_fixture_keep, kept, &error), &error);
}

static int take_count(void *state, const struct store_job *job, struct fly_error *out_error)
{
    (void)out_error;
    *(uint64_t *)state = job->events;
    return 0;
}

uint64_t store_fixture_count(struct store *store, const char *job)
{
    struct fly_error error = {0};
    uint64_t count = 0;
    int code = store_find_job(store, job, take_count, &count, &error);

    if (code != FLY_ENOTFOUND)
        check_done(code, &error);
    return count;
}
