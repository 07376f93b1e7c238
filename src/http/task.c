/* SPDX-License-Identifier: Apache-2.0 */
#include "http/task.h"

#include <limits.h>

void task_line_init(struct task_line *line)
{
    *line = (struct task_line){.closed = false};
    pthread_mutex_init(&line->lock, NULL);
    pthread_cond_init(&line->more, NULL);
}

void task_line_deinit(struct task_line *line)
{
    pthread_cond_destroy(&line->more);
    pthread_mutex_destroy(&line->lock);
}

static void refuse(struct task *task, const char *why)
{
    serve_answer_error(&task->answer, 503, fly_error_name(FLY_EBUSY), why);
    task->finish(task);
}

void task_line_put(struct task_line *line, struct task *task)
{
    bool closed;

    task->next = NULL;
    pthread_mutex_lock(&line->lock);
    closed = line->closed;
    if (!closed) {
        if (line->last != NULL)
            line->last->next = task;
        else
            line->first = task;
        line->last = task;
        pthread_cond_signal(&line->more);
    }
    pthread_mutex_unlock(&line->lock);
    if (closed)
        refuse(task, "the service is stopping; ask again, it may be back soon");
}

void task_line_share(struct task_line *line, size_t threads)
{
    line->most = threads > 1 ? (unsigned)threads - 1 : 1;
}

static unsigned taken_of(const struct task_line *line, const struct task *task)
{
    return line->taken[serve_caller_place(&task->request)];
}

/* The next task to be taken, behind `before`, which is NULL for the first; NULL: none may be now. */
static struct task *choose(const struct task_line *line, struct task **before)
{
    struct task *chosen = NULL, *last = NULL;
    unsigned fewest = line->most > 0 ? line->most : UINT_MAX;

    for (struct task *task = line->first; task != NULL && fewest > 0; last = task, task = task->next) {
        if (taken_of(line, task) >= fewest)
            continue;
        fewest = taken_of(line, task);
        chosen = task;
        *before = last;
    }
    return chosen;
}

struct task *task_line_take(struct task_line *line)
{
    struct task *task, *before = NULL;

    pthread_mutex_lock(&line->lock);
    while ((task = choose(line, &before)) == NULL && !(line->closed && line->first == NULL))
        pthread_cond_wait(&line->more, &line->lock);
    if (task != NULL) {
        *(before != NULL ? &before->next : &line->first) = task->next;
        if (line->last == task)
            line->last = before;
        line->taken[serve_caller_place(&task->request)]++;
    }
    pthread_mutex_unlock(&line->lock);
    return task;
}

void task_line_finish(struct task_line *line, struct task *task)
{
    pthread_mutex_lock(&line->lock);
    line->taken[serve_caller_place(&task->request)]--;
    /* A thread that found no task it may take may find one now. */
    if (line->first != NULL || line->closed)
        pthread_cond_broadcast(&line->more);
    pthread_mutex_unlock(&line->lock);
    task->finish(task);
}

bool task_line_wait(struct task_line *line)
{
    bool some;

    pthread_mutex_lock(&line->lock);
    while (line->first == NULL && !line->closed)
        pthread_cond_wait(&line->more, &line->lock);
    some = line->first != NULL || !line->closed;
    pthread_mutex_unlock(&line->lock);
    return some;
}

struct task *task_line_take_all(struct task_line *line)
{
    struct task *all;

    pthread_mutex_lock(&line->lock);
    all = line->first;
    line->first = line->last = NULL;
    pthread_mutex_unlock(&line->lock);
    return all;
}

void task_line_expire(struct task_line *line, struct mono_time now, const char *why)
{
    struct task *late = NULL, **late_end = &late;

    pthread_mutex_lock(&line->lock);
    line->last = NULL;
    for (struct task **at = &line->first; *at != NULL;) {
        struct task *task = *at;

        if (task->deadline.ns <= now.ns) {
            *at = task->next;
            task->next = NULL;
            *late_end = task;
            late_end = &task->next;
        } else {
            line->last = task;
            at = &task->next;
        }
    }
    pthread_mutex_unlock(&line->lock);
    while (late != NULL) {
        struct task *task = late;

        late = task->next;
        refuse(task, why);
    }
}

void task_line_close(struct task_line *line)
{
    pthread_mutex_lock(&line->lock);
    line->closed = true;
    pthread_cond_broadcast(&line->more);
    pthread_mutex_unlock(&line->lock);
}
