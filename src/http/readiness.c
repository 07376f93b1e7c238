/* SPDX-License-Identifier: Apache-2.0 */
#include "http/readiness.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "shapes/shape_rows.h"

enum { ANSWER_MAX = 1 << 20, STACK_BYTES = 2 << 20, NS_PER_S = 1000000000 };
static const double look_every_s = 5.0;

/* What a check found, by part. */
struct found {
    struct fly_error why[READINESS_PARTS_MAX]; /* code 0: well */
    bool absent[READINESS_PARTS_MAX];          /* there is nothing to check */
};

void readiness_init(struct readiness *readiness, struct troubles *troubles)
{
    *readiness = (struct readiness){.troubles = troubles, .next = mono_now()};
    task_line_init(&readiness->line);
}

void readiness_add(struct readiness *readiness, const struct readiness_part *part)
{
    if (readiness->part_count < READINESS_PARTS_MAX)
        readiness->parts[readiness->part_count++] = *part;
}

static void look(struct readiness *readiness, struct found *found)
{
    *found = (struct found){.absent = {false}};
    for (size_t i = 0; i < readiness->part_count; i++) {
        const struct readiness_part *part = &readiness->parts[i];
        int code = part->look(part->self, &found->why[i]);

        found->absent[i] = code == READINESS_ABSENT;
        found->why[i].code = found->absent[i] ? 0 : code;
    }
    for (size_t i = 0; i < readiness->part_count; i++)
        troubles_set(readiness->troubles, readiness->parts[i].trouble, &found->why[i]);
}

static const char *reason(const struct readiness_part *part, int code)
{
    const struct readiness_reason *at = part->reasons;

    while (at->code != 0 && at->code != code)
        at++;
    return at->text;
}

/* What is answered: the state of each part, and the error of the first that fails. */
struct told_part {
    const char *name;
    const char *state; /* "ok", or why it is not ready; NULL: there is nothing to check */
};

struct told {
    struct told_part parts[READINESS_PARTS_MAX];
    size_t part_count;
    const char *status;
    bool failed;
    struct serve_failure error;
};

static const struct shape_field part_rows[] = {
    {SHAPE_AT(told_part, name), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(told_part, state), SHAPE_IS_TEXT(UINT32_MAX), .null = SHAPE_OR_NULL},
};
static const struct shape shape_part = {SHAPE_OF(told_part, part_rows)};

static const struct shape_field told_rows[] = {
    {SHAPE_AT(told, parts), .kind = SHAPE_REST, .shape = &shape_part, .longest = READINESS_PARTS_MAX,
     .beside = offsetof(struct told, part_count)},
    {SHAPE_AT(told, status), SHAPE_IS_TEXT(UINT32_MAX)},
    {SHAPE_AT(told, error), SHAPE_IS_STRUCT(&shape_serve_failure), SHAPE_IF(told, failed)},
};
static const struct shape shape_told = {SHAPE_OF(told, told_rows)};

static void answer(const struct readiness *readiness, struct task *task, const struct found *found)
{
    struct told told = {.part_count = readiness->part_count, .status = "ready"};

    for (size_t i = 0; i < told.part_count; i++) {
        const struct readiness_part *part = &readiness->parts[i];
        int code = found->why[i].code;

        told.parts[i] = (struct told_part){part->name, code == 0 ? "ok" : reason(part, code)};
        if (found->absent[i])
            told.parts[i].state = NULL;
        if (code == 0 || told.failed)
            continue;
        told.failed = true;
        told.status = "not ready";
        told.error = (struct serve_failure){fly_error_name(code), reason(part, code)};
    }
    serve_answer_struct(&task->answer, told.failed ? 503 : 200, &shape_told, &told);
    task->answer.retry_after_s = told.failed ? 1 : 0;
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
                answer(readiness, task, &found);
            task->finish(task);
            task = next;
        }
    }
    return NULL;
}

static void own_is_done(struct task *task)
{
    struct readiness *readiness = (struct readiness *)((char *)task - offsetof(struct readiness, own));

    buffer_deinit(&task->answer.body);
    atomic_store(&readiness->own_waits, false);
}

int readiness_start(struct readiness *readiness, struct fly_error *out_error)
{
    int failed = pool_add(&readiness->pool, STACK_BYTES, look_after, readiness);

    return failed == 0 ? 0 : error_set(out_error, FLY_ENOMEM, "cannot start a thread: %s", strerror(failed));
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
    buffer_init(&readiness->own.answer.body, ANSWER_MAX);
    task_line_put(&readiness->line, &readiness->own);
}

/* Returns the part that is to blame if a check takes too long; NULL: none. */
static const struct readiness_part *slow_part(const struct readiness *readiness)
{
    for (size_t i = 0; i < readiness->part_count; i++) {
        if (readiness->parts[i].too_slow != NULL)
            return &readiness->parts[i];
    }
    return NULL;
}

void readiness_tick(struct readiness *readiness, struct mono_time now)
{
    const struct readiness_part *slow = slow_part(readiness);
    int64_t began_ns = atomic_load(&readiness->began_ns);

    if (atomic_exchange(&readiness->doubted, false) || now.ns >= readiness->next.ns) {
        readiness->next = mono_after_s(now, look_every_s);
        wake(readiness);
    }
    if (slow != NULL && began_ns != 0 && now.ns - began_ns > (int64_t)look_every_s * NS_PER_S) {
        const struct fly_error why = {.code = FLY_EBUSY, .text = "it has not answered in time"};

        troubles_set(readiness->troubles, slow->trouble, &why);
    }
    task_line_expire(&readiness->line, now,
                     slow != NULL ? slow->too_slow : "nobody has looked in time; ask again");
}

void readiness_stop(struct readiness *readiness)
{
    task_line_close(&readiness->line);
    pool_join(&readiness->pool);
}

void readiness_deinit(struct readiness *readiness)
{
    task_line_deinit(&readiness->line);
}
