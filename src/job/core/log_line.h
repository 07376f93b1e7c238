/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_LOG_LINE_H
#define FLYBALL_JOB_CORE_LOG_LINE_H

#include <jansson.h>

#include "store/store.h"

/* A line of an exported log, parsed. */
struct log_line {
    struct store_event event; /* texts belong to the JSON; without a body */
    json_t *body;             /* an object that belongs to the JSON */
    json_t *json;             /* owned */
};

enum { LOG_LINE_MAX = STORE_BODY_MAX + (64 << 10) /* bytes: a body, and the rest of the line */ };

/*
 * Reads a line that must be event `number` of its log. The error text continues "line 7": FLY_EUSAGE with "is
 * no JSON object (column 12: ...)", FLY_EDATA with "member 'kind': expected a text".
 */
int log_line_read(const char *line, size_t length, uint64_t number, struct log_line *out_line,
                  struct fly_error *out_error);
void log_line_deinit(struct log_line *line);

#endif
