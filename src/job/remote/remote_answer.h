/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_REMOTE_ANSWER_H
#define FLYBALL_JOB_REMOTE_REMOTE_ANSWER_H

#include "job/core/api.h"
#include "store/store.h"

/* Reads what a service, or anything else at its address, answered. Pure; thread-safe. */

enum remote_fate {
    REMOTE_ANSWERED, /* done, or refused for good */
    REMOTE_LATER,    /* not done; ask again later */
    REMOTE_LOST,     /* nobody knows whether it was done */
};

struct remote_reply {
    const char *from; /* the service's address, for error texts */
    int status;
    const char *body;
    size_t length;
};

/*
 * Returns 0 and stores the route's answer in `out_struct` (API_JSON), with texts in the arena; or returns the
 * service's code with its text. FLY_EUNREACHABLE for an answer that is not the service's, such as a proxy's
 * page; FLY_EDATA for one of another form.
 */
int remote_reply_read(const struct remote_reply *reply, const struct api_route *route, struct arena *arena,
                      void *out_struct, enum remote_fate *out_fate, struct fly_error *out_error);

/*
 * Calls `visit` with the events of a page (API_LINES) whose numbers are above `*after`, and sets `*after` to
 * the last one. `out_count`: how many there were. When `visit` returns other than 0, reading ends with that;
 * else returns 0 or FLY_EDATA.
 */
int remote_page_read(const struct remote_reply *reply, uint64_t *after, uint64_t *out_count,
                     store_visit *visit, void *state, struct fly_error *out_error);

#endif
