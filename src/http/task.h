/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TASK_H
#define FLYBALL_HTTP_TASK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "http/exchange.h"

/*
 * A request that waits for somebody who may block, and the line it waits in.
 *
 * Who puts it in gets it back through `finish`, once, from another thread, with its
 * answer made; the task is not the line's any more then.
 */
struct task {
    struct serve_request request; /* texts borrowed from its owner */
    struct serve_answer answer;
    void *note;                /* what its answer was about, for who answers (server_back.h); borrowed */
    const char *family;        /* that answered; "none" */
    double busy_s;             /* it took to make the answer */
    struct mono_time deadline; /* to be taken up by then */
    void (*finish)(struct task *task);
    struct task *next; /* of the line */
};

struct task_line {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct task *first, *last;
    bool closed;
};

void task_line_init(struct task_line *line);
void task_line_deinit(struct task_line *line); /* an empty one */

/* Puts the task at the end; in a closed line it is refused at once (503). */
void task_line_put(struct task_line *line, struct task *task);

/* Waits for the first task and takes it; NULL once the line is closed and empty. */
struct task *task_line_take(struct task_line *line);

/* Waits until there is a task, and leaves it there: who answers all of them takes them later. */
bool task_line_wait(struct task_line *line);

/* Takes all tasks, linked by `next`. */
struct task *task_line_take_all(struct task_line *line);

/* Answers (503) those that nobody took up in time. */
void task_line_expire(struct task_line *line, struct mono_time now, const char *why);

/* No more tasks: those in the line are still taken. */
void task_line_close(struct task_line *line);

#endif
