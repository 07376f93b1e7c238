/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/readiness.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/error.h"
#include "serve/disk.h"
#include "serve/workers.h"

enum { SHOWN_BYTES = 1 << 20, NS_PER_S = 1000000000 };
static const double look_wait_s = 2.0, look_every_s = 5.0, disk_every_s = 1.0;
static const char too_slow[] = "the store has not answered in time";

enum part { PART_TOKENS, PART_STORE, PART_DISK, PARTS };
static const char *const part_names[] = {
    [PART_TOKENS] = "tokens", [PART_STORE] = "store", [PART_DISK] = "disk"};
static const enum trouble part_troubles[] = {
    [PART_TOKENS] = TROUBLE_TOKENS, [PART_STORE] = TROUBLE_STORE, [PART_DISK] = TROUBLE_DISK};

/* What a look found. */
struct found {
    struct fly_error why[PARTS]; /* code 0: well */
    bool absent[PARTS];          /* there is nothing to look at */
};

/* A job that cannot exist is looked for: the store's answer that there is none is an answer. */
static int look_at_store(struct readiness *readiness, struct fly_error *out_error)
{
    struct job_shown shown;
    struct arena arena;
    int code = served_store_check(readiness->options.store, out_error);

    if (code == 0 && readiness->jobs.backend == NULL)
        code = served_store_open(readiness->options.store, look_wait_s, &readiness->jobs, out_error);
    if (code < 0)
        return code;
    arena_init(&arena, SHOWN_BYTES);
    code = readiness->jobs.backend->show(readiness->jobs.self, "flyball-readyz-asks-for-no-job", &arena,
                                         &shown, out_error);
    arena_deinit(&arena);
    if (code == FLY_ENOTFOUND)
        code = 0;
    if (code < 0)
        jobs_close(&readiness->jobs);
    return code;
}

/* At most once a second, since anybody may ask and it costs the disk something. */
static void look_at_disk(struct readiness *readiness)
{
    struct mono_time now = mono_now();

    if (now.ns < readiness->disk_until.ns)
        return;
    readiness->disk.code = disk_check(readiness->options.store->address, &readiness->disk);
    readiness->disk_until = mono_after_s(now, disk_every_s);
}

static void look(struct readiness *readiness, struct found *found)
{
    *found = (struct found){.absent[PART_TOKENS] = readiness->options.tokens == NULL};
    if (!found->absent[PART_TOKENS])
        found->why[PART_TOKENS].code =
            token_file_check(readiness->options.tokens, false, &found->why[PART_TOKENS]);
    found->why[PART_STORE].code = look_at_store(readiness, &found->why[PART_STORE]);
    look_at_disk(readiness);
    found->why[PART_DISK] = readiness->disk;
    found->absent[PART_DISK] = found->why[PART_DISK].code == FLY_EUNSUPPORTED;
    if (found->absent[PART_DISK])
        found->why[PART_DISK].code = 0;
    for (int i = 0; i < PARTS; i++)
        troubles_set(readiness->options.troubles, part_troubles[i], &found->why[i]);
}

/* What is wrong, by part and code, without a word of where things lie; code 0: with anything else. */
static const struct {
    enum part part;
    int code;
    const char *text;
} reasons[] = {
    {PART_TOKENS, FLY_ENOTFOUND, "the file of tokens is not there"},
    {PART_TOKENS, FLY_EPERM, "the file of tokens may not be read, or others may write it"},
    {PART_TOKENS, 0, "the file of tokens cannot be read, or a line of it is no token"},
    {PART_STORE, FLY_EUNREACHABLE, "the store is not there, or cannot be reached"},
    {PART_STORE, FLY_ENOTFOUND, "the store is not there"},
    {PART_STORE, FLY_EBUSY, "another program holds the store's lock"},
    {PART_STORE, FLY_EPERM, "the store may not be read or written"},
    {PART_STORE, 0, "the store cannot be used"},
    {PART_DISK, 0, "a MiB cannot be written where the store lies"},
};

static const char *reason(enum part part, int code)
{
    size_t i = 0;

    while (reasons[i].part != part || (reasons[i].code != 0 && reasons[i].code != code))
        i++;
    return reasons[i].text;
}

static void answer(struct task *task, const struct found *found)
{
    json_t *json = json_object();
    int first = PARTS;

    for (int i = 0; i < PARTS; i++) {
        int code = found->why[i].code;

        if (code != 0 && first == PARTS)
            first = i;
        json_object_set_new(json, part_names[i],
                            found->absent[i] ? json_null() : json_string(code == 0 ? "ok" : reason(i, code)));
    }
    json_object_set_new(json, "status", json_string(first == PARTS ? "ready" : "not ready"));
    if (first < PARTS)
        json_object_set_new(json, "error",
                            json_pack("{s:s, s:s}", "code", fly_error_name(found->why[first].code), "message",
                                      reason(first, found->why[first].code)));
    serve_answer_json(&task->answer, first == PARTS ? 200 : 503, json);
    task->answer.retry_after_s = first == PARTS ? 0 : 1;
}

static void *look_after(void *data)
{
    struct readiness *readiness = data;

    while (task_line_wait(&readiness->line)) {
        struct found found;

        atomic_store(&readiness->began_ns, mono_now().ns);
        look(readiness, &found);
        atomic_store(&readiness->began_ns, 0);
        for (struct task *task = task_line_take_all(&readiness->line); task != NULL;) {
            struct task *next = task->next;

            if (task != &readiness->own)
                answer(task, &found);
            task->finish(task);
            task = next;
        }
    }
    jobs_close(&readiness->jobs);
    return NULL;
}

/* Whether a store that fails so at the start may still come to serve. */
static bool may_come(int code)
{
    return code == FLY_EUNREACHABLE || code == FLY_EBUSY || code == FLY_EUNSURE;
}

static void own_is_done(struct task *task)
{
    struct readiness *readiness = (struct readiness *)((char *)task - offsetof(struct readiness, own));

    buffer_deinit(&task->answer.body);
    atomic_store(&readiness->own_waits, false);
}

static int start_thread(struct readiness *readiness, struct fly_error *out_error)
{
    pthread_attr_t attributes;
    int failed;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKERS_STACK_BYTES);
    failed = pthread_create(&readiness->thread, &attributes, look_after, readiness);
    pthread_attr_destroy(&attributes);
    readiness->runs = failed == 0;
    return failed == 0 ? 0 : error_set(out_error, FLY_ENOMEM, "cannot start a thread: %s", strerror(failed));
}

int readiness_start(struct readiness *readiness, const struct readiness_options *options,
                    struct fly_error *out_error)
{
    struct fly_error why = {.code = 0};
    int code;

    *readiness = (struct readiness){.options = *options, .next = mono_now()};
    code = served_store_open(options->store, look_wait_s, &readiness->jobs, &why);
    if (code < 0 && !may_come(code)) {
        if (out_error != NULL)
            *out_error = why;
        return code;
    }
    troubles_set(options->troubles, TROUBLE_STORE, code < 0 ? &why : NULL);
    task_line_init(&readiness->line);
    code = start_thread(readiness, out_error);
    if (code < 0) {
        readiness_stop(readiness);
        readiness_deinit(readiness);
    }
    return code;
}

void readiness_ask(struct readiness *readiness, struct task *task)
{
    task_line_put(&readiness->line, task);
}

void readiness_doubt(struct readiness *readiness)
{
    atomic_store(&readiness->doubted, true);
}

static void wake(struct readiness *readiness)
{
    if (atomic_exchange(&readiness->own_waits, true))
        return;
    readiness->own = (struct task){.finish = own_is_done, .deadline = {INT64_MAX}};
    buffer_init(&readiness->own.answer.body, SHOWN_BYTES);
    task_line_put(&readiness->line, &readiness->own);
}

void readiness_tick(struct readiness *readiness, struct mono_time now)
{
    int64_t began_ns = atomic_load(&readiness->began_ns);

    if (atomic_exchange(&readiness->doubted, false) || now.ns >= readiness->next.ns) {
        readiness->next = mono_after_s(now, look_every_s);
        wake(readiness);
    }
    if (began_ns != 0 && now.ns - began_ns > (int64_t)look_every_s * NS_PER_S) {
        const struct fly_error slow = {.code = FLY_EBUSY, .text = "it has not answered in time"};

        troubles_set(readiness->options.troubles, TROUBLE_STORE, &slow);
    }
    task_line_expire(&readiness->line, now, too_slow);
}

void readiness_stop(struct readiness *readiness)
{
    task_line_close(&readiness->line);
    if (readiness->runs)
        pthread_join(readiness->thread, NULL);
    else
        jobs_close(&readiness->jobs);
    readiness->runs = false;
}

void readiness_deinit(struct readiness *readiness)
{
    task_line_deinit(&readiness->line);
}
