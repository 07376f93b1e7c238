/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_HTTP_CLIENT_H
#define FLYBALL_BASE_HTTP_CLIENT_H

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
 */
struct http_request {
    const char *method;         /* NULL: "GET", or "POST" with a body */
    const char *url;            /* its host is only a name where there is a socket */
    const char *unix_socket;    /* its path; NULL: TCP */
    const char *const *headers; /* "Name: value", ended by NULL, or NULL; no error's text has them */
    const char *body;           /* sent as it is; NULL: none */
    size_t answer_maximum;      /* bytes of the answer's body, > 0 */
    double connect_timeout_s, total_timeout_s; /* > 0 */
    bool past_proxies;                         /* whatever http_proxy and its like say */
};

struct http_answer {
    int status;         /* 200, 404, ... */
    struct buffer body; /* owned */
};

/*
 * 0 for an answer of any status. What is certain not to have reached the server: FLY_EUNSUPPORTED (no
 * libcurl, or no such scheme), FLY_EUSAGE (the request), FLY_ENOTFOUND (nobody listens, no such host),
 * FLY_EPERM (the socket), FLY_ENOMEM. What may have reached it: FLY_EREAD (no answer in time, or
 * none that is whole) and FLY_ELIMIT (a longer one). `out_answer` needs http_answer_deinit only after
 * success.
 */
int http_ask(const struct http_request *request, struct http_answer *out_answer, struct fly_error *out_error);

void http_answer_deinit(struct http_answer *answer);

#endif
