/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_HEAD_H
#define FLYBALL_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether a request's head is written exactly as HTTP/1.1 (RFC 9112) wants it. The HTTP
 * library takes much that only looks like it, and a proxy in front of the service may
 * read the same bytes another way: then one request is taken for two.
 *
 *     head_check_begin(&check, method, target, target_length, version, in_place);
 *     head_check_line(&check, name, name_length, value, value_length);      of each header
 *     fault = head_check_end(&check, head_bytes);
 *
 * Refused are blanks and control characters where none belong (a NUL, a blank before a
 * colon), names that are none, a line that goes on in the next one, two headers Host,
 * Content-Length or Authorization, and a request of HTTP/1.1 without Host.
 *
 * How lines ended, the texts do not say. With `in_place` they are where the library read them,
 * in one piece of memory that begins with the method, and whatever parted them has been
 * replaced by 0 bytes: so the pieces and two bytes for each line's end (CR LF) have to come to
 * exactly the length of the head, one behind the other. A line that ends with LF alone, and
 * whatever follows a NUL, leaves another length. Not seen is a NUL beside an LF without CR, if
 * together they are as long as CR LF: both are 0 by then. Nor is any line before the
 * method. Newer libraries leave other bytes between, and refuse such heads themselves.
 *
 * Pure, and thread-safe: reads only the texts, and between them.
 */
struct head_check {
    bool in_place;
    const char *begin, *at; /* where the head begins, and where its next line has to */
    bool wants_host;
    unsigned hosts, lengths, tokens;
    size_t bytes;      /* of all headers */
    const char *fault; /* the first, static; NULL: none */
};

/* `version` as in "HTTP/1.1". All texts are borrowed until the end, and ended by 0. */
void head_check_begin(struct head_check *check, const char *method, const char *target, size_t target_length,
                      const char *version, bool in_place);
void head_check_line(struct head_check *check, const char *name, size_t name_length, const char *value,
                     size_t value_length);

/* What is wrong with the head of `head_bytes`, a sentence without a capital; NULL: nothing. */
const char *head_check_end(struct head_check *check, size_t head_bytes);

#endif
