/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_HTTP_CLIENT_H
#define FLYBALL_BASE_HTTP_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "base/socket_reach.h"

/*
 * Sends one request over HTTP and receives its answer.
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
 * It uses libcurl, which is loaded at the first request and kept. If libcurl is missing, the
 * error says what to install. Only http and https are supported, no redirection is followed, no
 * signal is used, and nothing is stored between requests. Certificates are checked. Thread-safe.
 *
 * Files that a trusted listener gets (base/socket_reach.h) travel with an empty line in front of the
 * request, which servers ignore. Such a request has a connection of its own.
 *
 * Requests of one `line` share its connection while the server keeps it open, which saves
 * handshakes. A line is for one thread at a time, and for the process that made it. A forked
 * child must not use it; there http_line_free closes nothing.
 */
struct http_line;

/* Makes a line. FLY_ENOMEM, or FLY_EUNSUPPORTED as below. */
int http_line_new(struct http_line **out_line, struct fly_error *out_error);
void http_line_free(struct http_line *line); /* accepts NULL */

struct http_request {
    const char *method;               /* NULL: "GET", or "POST" with a body */
    const char *url;                  /* with a socket, its host is only a name */
    const char *unix_socket;          /* its path; NULL: TCP */
    const struct socket_trust *trust; /* who may listen at that socket, and gets open files; NULL: anybody */
    const char *const *headers; /* "Name: value", ended by NULL, or NULL; they never appear in error texts */
    const char *body;           /* sent as it is; NULL: none */
    size_t answer_maximum;      /* bytes of the answer's body, > 0 */
    double connect_timeout_s, total_timeout_s; /* > 0 */
    bool past_proxies;                         /* ignore http_proxy and similar settings */
    const char *authority_file; /* certificates of the authorities to trust; NULL: the system's */
    struct http_line *line;     /* NULL: a connection of its own */
    /* Once another thread sets it, the request is abandoned at once, with FLY_EREAD; NULL: never. */
    const atomic_bool *abandon;
};

struct http_answer {
    int status;           /* 200, 404, ... */
    struct buffer body;   /* owned */
    double retry_after_s; /* the wait that the server asks for; 0: none stated */
};

/*
 * Sends a request; returns 0 for an answer of any status. Errors of requests that certainly did
 * not reach the server: FLY_EUNSUPPORTED (no libcurl, or no such scheme), FLY_EUSAGE (the
 * request), FLY_ENOTFOUND (nobody listens, no such host), FLY_EPERM (the socket, its listener, or a
 * certificate that no authority vouches for), FLY_ENOMEM. Errors of requests that may have reached it:
 * FLY_EREAD (no answer in time, or an incomplete one) and FLY_ELIMIT (an answer that is too
 * long). `out_answer` needs http_answer_deinit only after success.
 */
int http_ask(const struct http_request *request, struct http_answer *out_answer, struct fly_error *out_error);

void http_answer_deinit(struct http_answer *answer);

#endif
