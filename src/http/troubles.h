/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TROUBLES_H
#define FLYBALL_HTTP_TROUBLES_H

#include <pthread.h>
#include <stdbool.h>

#include <flyball/error.h>

/*
 * What keeps a server from its work, for whoever runs it: each is said once when it
 * begins, and once when it is over, however many requests meet it. Thread-safe.
 */
struct trouble {
    const char *name;    /* "store" */
    const char *meaning; /* what it means while it is: "requests are answered with 503 until it is back" */
    const char *over;    /* "it answers again" */
    bool is;             /* with the lock of the troubles */
};

struct troubles {
    pthread_mutex_t lock;
    char untold[FLY_ERROR_TEXT_MAX];             /* that was said last; "": none since all was well */
    void (*tell)(void *state, const char *line); /* NULL: nobody wants to know; called with the lock held */
    void *state;
};

void troubles_init(struct troubles *troubles, void (*tell)(void *state, const char *line), void *state);
void troubles_deinit(struct troubles *troubles);

/* How it is with one now: NULL, or code 0: well; else why not. */
void troubles_set(struct troubles *troubles, struct trouble *trouble, const struct fly_error *why);

/* Says what an answer kept to itself, once until something else is said so; code 0: nothing. */
void troubles_untold(struct troubles *troubles, const struct fly_error *untold);

/* Says a line that is neither. */
void troubles_tell(struct troubles *troubles, const char *line);

#endif
