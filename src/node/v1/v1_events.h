/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_V1_V1_EVENTS_H
#define FLYBALL_NODE_V1_V1_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/buffer.h"

/*
 * The texts of the newest events, which are made once and sent to all who read the stream.
 *
 *     if (!v1_events_take(events, sample->id, &text)) {
 *         size_t begin = text.length;
 *         ... write the event ...
 *         v1_events_keep(events, sample->id, text.data + begin, text.length - begin);
 *     }
 *
 * A text that is too long is not kept. Thread-safe.
 */
struct v1_events;

int v1_events_new(struct v1_events **out_events, struct fly_error *out_error);
void v1_events_free(struct v1_events *events); /* accepts NULL */

/* Appends the text of that event, if it is there; ids begin at 1. */
bool v1_events_take(struct v1_events *events, uint64_t id, struct buffer *text);
void v1_events_keep(struct v1_events *events, uint64_t id, const char *bytes, size_t length);

#endif
