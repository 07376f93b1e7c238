/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_V1_CLIENT_H
#define FLYBALL_TESTS_V1_CLIENT_H

/* Requests to the service's own interface without a socket. */
#include "test.h"

#include <jansson.h>

#include "serve/exchange.h"

struct v1_answer {
    struct serve_answer answer;
    struct serve_note note;
    json_t *json; /* of the body, or NULL */
};

/* A request with the scope to manage; `target` may have a query, not encoded. Needs v1_answer_free. */
struct v1_answer v1_ask(const struct jobs *jobs, const char *method, const char *target, const char *body);
struct v1_answer v1_ask_as(const struct jobs *jobs, enum serve_scope scope, const char *method,
                           const char *target, const char *body);
void v1_answer_free(struct v1_answer *answer);

/* The message of an answer that is an error. */
const char *v1_message(const struct v1_answer *answer);

/* The members of an answer. */
double v1_number(const struct v1_answer *answer, const char *name);
const char *v1_text(const struct v1_answer *answer, const char *name);

#endif
