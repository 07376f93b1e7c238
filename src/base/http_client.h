/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_HTTP_CLIENT_H
#define FLYBALL_BASE_HTTP_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "base/buffer.h"

/*
 * One request over HTTP, and its answer.
 *
 *     const struct http_request request = {
 *         .url = "http://localhost/discover",
 *         .unix_socket = "/run/zeusd/zeusd.sock",
 *         .answer_maximum = 1 << 16,
 *         .connect_timeout_s = 1,
 *         .total_timeout_s = 2,
 *     };
 *     struct http_answer answer;
 *
 *     if (http_ask(&request, &answer, out_error) < 0)
 *         ...
 *     if (answer.status == 200)
 *         ... answer.body.data, answer.body.length ...
 *     http_answer_deinit(&answer);
 *
 * libcurl does it, loaded at the first request and kept; its absence is an error that
 * says what to install. Only http and https are spoken, no redirection is followed, no signal is
 * used, and nothing is stored between requests. Certificates are checked. Thread-safe.
 *
 * Requests of one `line` share its connection while the server keeps it open, and spare
 * the handshakes. A line is for one thread at a time, and for the process that made it:
 * a child lets it be, and http_line_free closes nothing there.
 */
struct http_line;

/* FLY_ENOMEM, or FLY_EUNSUPPORTED as below. */
int http_line_new(struct http_line **out_line, struct fly_error *out_error);
void http_line_free(struct http_line *line); /* accepts NULL */

struct http_request {
    const char *method;         /* NULL: "GET", or "POST" with a body */
    const char *url;            /* its host is only a name where there is a socket */
    const char *unix_socket;    /* its path; NULL: TCP */
    const char *const *headers; /* "Name: value", ended by NULL, or NULL; no error's text has them */
    const char *body;           /* sent as it is; NULL: none */
    size_t answer_maximum;      /* bytes of the answer's body, > 0 */
    double connect_timeout_s, total_timeout_s; /* > 0 */
    bool past_proxies;                         /* whatever http_proxy and its like say */
    const char *authority_file; /* certificates of who vouches for the server; NULL: the system's */
    struct http_line *line;     /* NULL: a connection of its own */
    /* Once another thread sets it the request is given up at once, with FLY_EREAD; NULL: it is waited for. */
    const atomic_bool *abandon;
};

struct http_answer {
    int status;           /* 200, 404, ... */
    struct buffer body;   /* owned */
    double retry_after_s; /* that the server asks to wait; 0: not said */
};

/*
 * 0 for an answer of any status. What is certain not to have reached the server: FLY_EUNSUPPORTED (no
 * libcurl, or no such scheme), FLY_EUSAGE (the request), FLY_ENOTFOUND (nobody listens, no such host),
 * FLY_EPERM (the socket, or a certificate that nobody vouches for), FLY_ENOMEM. What may have reached it:
 * FLY_EREAD (no answer in time, or none that is whole) and FLY_ELIMIT (a longer one). `out_answer` needs
 * http_answer_deinit only after success.
 */
int http_ask(const struct http_request *request, struct http_answer *out_answer, struct fly_error *out_error);

void http_answer_deinit(struct http_answer *answer);

#endif
