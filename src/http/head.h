/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_HEAD_H
#define FLYBALL_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Checks that a request's head is written exactly as HTTP/1.1 (RFC 9112) demands. The HTTP
 * library accepts much that is only similar, and a proxy in front of the service may read the
 * same bytes differently: then one of the two sees one request and the other sees two.
 *
 *     head_check_begin(&check, method, target, target_length, version, in_place);
 *     head_check_line(&check, name, name_length, value, value_length);      for each header
 *     fault = head_check_end(&check, head_bytes);
 *
 * Refused are: blanks and control characters in wrong places (a NUL, a blank before a colon),
 * invalid header names, a header that continues on the next line, more than one Host,
 * Content-Length or Authorization, and an HTTP/1.1 request without Host.
 *
 * The texts do not show how lines ended. With `in_place` the texts still stand where the library
 * read them: in one piece of memory that begins with the method, with 0 bytes in place of all
 * separators. So the pieces, one behind the other, plus two bytes for each line's end (CR LF)
 * must add up to exactly the length of the head. A line that ends with LF alone changes that
 * length, and so does anything behind a NUL. Two things go unnoticed: a NUL beside an LF without
 * CR, if together they are as long as CR LF, since both are 0 by then; and any line before the
 * method. Newer libraries leave other bytes in between, and refuse such heads themselves.
 *
 * Pure and thread-safe: it reads only the texts and the memory between them.
 */
struct head_check {
    bool in_place;
    const char *begin, *at; /* where the head begins, and where its next line must begin */
    bool wants_host;
    unsigned hosts, lengths, tokens;
    size_t bytes;      /* of all headers */
    const char *fault; /* the first one found, static; NULL: none */
};

/* `version` is for example "HTTP/1.1". All texts are borrowed until the end, and end with 0. */
void head_check_begin(struct head_check *check, const char *method, const char *target, size_t target_length,
                      const char *version, bool in_place);
void head_check_line(struct head_check *check, const char *name, size_t name_length, const char *value,
                     size_t value_length);

/*
 * Returns what is wrong with the head of `head_bytes` bytes, a sentence without a capital, or
 * NULL: nothing.
 */
const char *head_check_end(struct head_check *check, size_t head_bytes);

#endif
