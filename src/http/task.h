/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TASK_H
#define FLYBALL_HTTP_TASK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "http/exchange.h"

/*
 * A request that waits for a thread that may block, and the line in which it waits. `finish`
 * gives the task back to whoever put it in: once, from another thread, with the answer made. From
 * then on the line does not touch the task.
 */
struct task {
    struct serve_request request; /* its owner owns the texts */
    struct serve_answer answer;
    void *note;         /* what the answer was about, written by whoever answers (server_back.h); borrowed */
    const char *family; /* the family that answered; "none" */
    double busy_s;      /* time that making the answer took */
    struct mono_time deadline; /* somebody must take it up by then */
    void (*finish)(struct task *task);
    struct task *next; /* in the line */
};

struct task_line {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct task *first, *last;
    bool closed;
    unsigned most; /* of one caller's tasks are taken at the same time; 0: all */
    unsigned short taken[SERVE_CALLERS];
};

void task_line_init(struct task_line *line);

/*
 * Lets no caller have all of the threads that take tasks: of `threads` at least one is left for others, if
 * there are two. Call it before any task is put in.
 */
void task_line_share(struct task_line *line, size_t threads);
void task_line_deinit(struct task_line *line); /* the line must be empty */

/* Puts the task at the end. A closed line refuses it at once (503). */
void task_line_put(struct task_line *line, struct task *task);

/*
 * Waits for a task and takes it: of the callers with fewest taken tasks, the one that came first. NULL once
 * the line is closed and empty.
 */
struct task *task_line_take(struct task_line *line);

/* Finishes a task that was taken. */
void task_line_finish(struct task_line *line, struct task *task);

/* Waits until there is a task and leaves it in the line, for a caller that takes all tasks later. */
bool task_line_wait(struct task_line *line);

/* Takes all tasks, linked by `next`. */
struct task *task_line_take_all(struct task_line *line);

/* Answers (503) tasks that nobody took up in time. */
void task_line_expire(struct task_line *line, struct mono_time now, const char *why);

/* Accepts no more tasks. Those in the line can still be taken. */
void task_line_close(struct task_line *line);

#endif
