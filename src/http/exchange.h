/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_EXCHANGE_H
#define FLYBALL_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buffer.h"
#include "job/core/job_backend.h"

/*
 * One request to the service and its answer, without a word of how they travel: what
 * answers is tested and fuzzed without a socket.
 */

/* What a caller may do; each holds those before it. */
enum serve_scope {
    SERVE_NOBODY, /* /healthz needs no more */
    SERVE_READ,   /* look at jobs, read metrics */
    SERVE_TRAIN,  /* define jobs, ask what to run, report */
    SERVE_MANAGE, /* change, import and remove them */
};

enum { SERVE_QUERY_MAX = 8 };

struct serve_parameter {
    const char *name, *value; /* decoded */
};

/* All texts are borrowed, and UTF-8 without control characters but for the body. */
struct serve_request {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/jobs/digits", not decoded, without the query */
    struct serve_parameter query[SERVE_QUERY_MAX];
    size_t query_count;
    const char *body;        /* ended by a 0 byte that does not count; "" without one */
    size_t body_length;      /* within the service's limit */
    enum serve_scope scope;  /* of the caller */
    const char *caller_name; /* of the token; "" without one */
};

/* The parameter's value, or NULL. */
const char *serve_query(const struct serve_request *request, const char *name);

struct serve_answer {
    int status;
    const char *type;        /* static; "application/json" */
    const char *allow;       /* with 405: the methods, static; or NULL */
    unsigned retry_after_s;  /* with 503; 0: not said */
    struct buffer body;      /* initialised by the caller of a route */
    struct fly_error untold; /* what the body keeps to itself, for the service's own log; code 0: nothing */
};

/*
 * The text of an error for the body: its own. But what says where the store lies is not for clients: with
 * 500 and above they get the code's sentence then, and `untold` gets the error.
 */
const char *serve_error_text(struct serve_answer *answer, int status, int code, const char *text);

/*
 * Makes the answer of a status and a JSON value, which is taken. NULL, or a body that
 * does not fit: 503 and null.
 */
void serve_answer_json(struct serve_answer *answer, int status, json_t *json);

/* What an answer was about, for the service's own figures. */
struct serve_note {
    char job[JOB_NAME_MAX + 1]; /* "": none */
    char gpu_model[JOB_TEXT_MAX];
    bool decided;               /* a proposal was made */
    bool ended;                 /* a trial has, by this very request */
    bool left;                  /* then: its program ended by itself, and nobody saw it crash */
    enum trial_outcome outcome; /* then */
    double energy_j; /* that it adds to the energy of ended trials: with `ended` that of the trial, all
                        attempts; else what its run took after its end was known; NAN: none */
    struct job_expiries expired; /* trials of that job that this request wrote down as expired */
};

/* A family of routes; the service asks one after the other. None keeps anything between two requests. */
struct serve_routes {
    const char *name; /* "v1", "zeus" */

    /*
     * Answers over `jobs`, whose handle is the caller's alone meanwhile. false: the path is
     * none of these. Fills `out_answer` (its body stays the caller's) and what is known of `out_note`.
     */
    bool (*answer)(const struct jobs *jobs, const struct serve_request *request,
                   struct serve_answer *out_answer, struct serve_note *out_note);
};

extern const struct serve_routes serve_v1;   /* the service's own interface */
extern const struct serve_routes serve_zeus; /* that of the public batch-size server, at the root */

#endif
