/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_EXCHANGE_H
#define FLYBALL_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "shapes/shape.h"

/*
 * One request to a server and its answer, without any transport: code that answers requests is
 * tested and fuzzed without a socket.
 */

/* What a caller may do. Each scope includes those before it. */
enum serve_scope {
    SERVE_NOBODY, /* is enough for /healthz */
    SERVE_READ,   /* look at jobs, read metrics */
    SERVE_TRAIN,  /* define jobs, ask what to run, report */
    SERVE_MANAGE, /* change, import and remove them */
};

enum { SERVE_QUERY_MAX = 8 };

struct serve_parameter {
    const char *name, *value; /* decoded */
};

/* All texts are borrowed. All but the body are UTF-8 without control characters. */
struct serve_request {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/jobs/digits", not decoded, without the query */
    struct serve_parameter query[SERVE_QUERY_MAX];
    size_t query_count;
    const char *body;        /* ended by a 0 byte that is not counted; "" without a body */
    size_t body_length;      /* never above the service's limit */
    enum serve_scope scope;  /* of the caller */
    const char *caller_name; /* the token's name; "" without a token */
};

/* Returns the parameter's value, or NULL. */
const char *serve_query(const struct serve_request *request, const char *name);

struct serve_answer {
    int status;
    const char *type;        /* static; "application/json" */
    const char *allow;       /* with 405: the methods that are allowed, static; or NULL */
    unsigned retry_after_s;  /* with 503; 0: not sent */
    struct buffer body;      /* the caller of a route initialises it */
    struct fly_error untold; /* what the body must not say, for the service's own log; code 0: nothing */
};

/*
 * Sets the answer to a status and a JSON value, which it takes. With NULL, or a body that does
 * not fit, the answer is 503 and null.
 */
void serve_answer_json(struct serve_answer *answer, int status, json_t *json);

/* Does the same with a struct; the answer is 503 and null if it cannot be written. */
void serve_answer_struct(struct serve_answer *answer, int status, const struct shape *shape,
                         const void *from);

/* What went wrong, for programs and for people. */
struct serve_failure {
    const char *code; /* "FLY_EBUSY" */
    const char *message;
};
extern const struct shape shape_serve_failure;

/* Sets the answer to an error: {"error": {"code": "FLY_EBUSY", "message": "..."}}. */
void serve_answer_error(struct serve_answer *answer, int status, const char *code_word, const char *message);

#endif
