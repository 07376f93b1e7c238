/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TROUBLES_H
#define FLYBALL_HTTP_TROUBLES_H

#include <pthread.h>
#include <stdbool.h>

#include <flyball/error.h>

/*
 * Reports to the operator what keeps a server from its work: each trouble once when it begins and
 * once when it is over, however many requests meet it. Thread-safe.
 */
struct trouble {
    const char *name;    /* "store" */
    const char *meaning; /* its effect while it lasts: "requests are answered with 503 until it is back" */
    const char *over;    /* "it answers again" */
    bool is;             /* it lasts now; guarded by the troubles' lock */
};

struct troubles {
    pthread_mutex_t lock;
    char untold[FLY_ERROR_TEXT_MAX]; /* last text of troubles_untold; "": none since all was well */
    void (*tell)(void *state, const char *line); /* NULL: no reports; called with the lock held */
    void *state;
};

void troubles_init(struct troubles *troubles, void (*tell)(void *state, const char *line), void *state);
void troubles_deinit(struct troubles *troubles);

/* Sets a trouble's state: NULL or code 0 means well, else `why` says what is wrong. */
void troubles_set(struct troubles *troubles, struct trouble *trouble, const struct fly_error *why);

/* Reports what an answer did not tell its client, once until the text changes; code 0: nothing. */
void troubles_untold(struct troubles *troubles, const struct fly_error *untold);

/* Reports any other line. */
void troubles_tell(struct troubles *troubles, const char *line);

#endif
