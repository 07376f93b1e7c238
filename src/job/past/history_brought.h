/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_HISTORY_BROUGHT_H
#define FLYBALL_JOB_PAST_HISTORY_BROUGHT_H

#include "job/core/job_record.h"
#include "job/past/history.h"

/* Reads what came along to a job from the bodies of its events. */
struct brought_list {
    struct job_brought_past *items; /* in the arena */
    size_t count, capacity;
    size_t revisions; /* among them */
};

/* Adds one that came before the trial `before`. Errors as record_refuse; FLY_ENOMEM. */
int brought_list_add(struct brought_list *list, const struct store_event *event, json_t *body,
                     uint64_t before, struct arena *arena, struct fly_error *out_error);

/* Adds one whose texts are in the arena. Returns 0 or FLY_ENOMEM, without a text. */
int brought_list_put(struct brought_list *list, const struct job_brought_past *past, struct arena *arena);

#endif
