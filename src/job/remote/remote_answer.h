/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_REMOTE_ANSWER_H
#define FLYBALL_JOB_REMOTE_REMOTE_ANSWER_H

#include "job/core/api.h"
#include "store/store.h"

/* What a service answered, or whatever else stands at its address. Pure; thread-safe. */

enum remote_fate {
    REMOTE_ANSWERED, /* done, or refused for good */
    REMOTE_LATER,    /* not done; asked again, it may be */
    REMOTE_LOST,     /* nobody knows */
};

struct remote_reply {
    const char *from; /* its address, for people */
    int status;
    const char *body;
    size_t length;
};

/*
 * 0 with what the route answers in `out_struct` (API_JSON), whose texts stand in the
 * arena; or the code that the service gave, with its text. FLY_EUNREACHABLE for an answer
 * that is not the service's, such as a proxy's page; FLY_EDATA for one of another form.
 */
int remote_reply_read(const struct remote_reply *reply, const struct api_route *route, struct arena *arena,
                      void *out_struct, enum remote_fate *out_fate, struct fly_error *out_error);

/*
 * Tells the events of a page (API_LINES) with numbers above `*after`, which is brought up
 * to the last one's. `out_count`: how many there were. What `visit` returned other than 0
 * ends it; else 0 or FLY_EDATA.
 */
int remote_page_read(const struct remote_reply *reply, uint64_t *after, uint64_t *out_count,
                     store_visit *visit, void *state, struct fly_error *out_error);

#endif
