/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_TROUBLES_H
#define FLYBALL_SERVE_TROUBLES_H

#include <pthread.h>
#include <stdbool.h>

#include <flyball/error.h>

/*
 * What keeps the service from its work, for whoever runs it: each is said once when it
 * begins, and once when it is over, however many requests meet it. Thread-safe.
 */
enum trouble {
    TROUBLE_TOKENS,      /* their file cannot be read */
    TROUBLE_STORE,       /* it does not answer, or fails */
    TROUBLE_DISK,        /* nothing can be written where the store lies */
    TROUBLE_CERTIFICATE, /* it has expired, or does not hold yet */
    TROUBLE_COUNT,
};

struct troubles {
    pthread_mutex_t lock;
    bool is[TROUBLE_COUNT];
    char untold[FLY_ERROR_TEXT_MAX];             /* that was said last; "": none since all was well */
    void (*tell)(void *state, const char *line); /* NULL: nobody wants to know; called with the lock held */
    void *state;
};

void troubles_init(struct troubles *troubles, void (*tell)(void *state, const char *line), void *state);
void troubles_deinit(struct troubles *troubles);

/* How it stands now: NULL, or code 0: well; else why not. */
void troubles_set(struct troubles *troubles, enum trouble which, const struct fly_error *why);

/* Says what an answer kept to itself, once until something else is said so; code 0: nothing. */
void troubles_untold(struct troubles *troubles, const struct fly_error *untold);

/* Says a line that is neither. */
void troubles_tell(struct troubles *troubles, const char *line);

#endif
