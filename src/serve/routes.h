/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_ROUTES_H
#define FLYBALL_SERVE_ROUTES_H

#include <stdbool.h>

#include "http/exchange.h"
#include "job/core/job_backend.h"

/*
 * What answers requests over jobs: families of routes, and what they note of an answer.
 */

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

/*
 * The text of an error for the body: its own. But what says where the store lies is not for clients: with
 * 500 and above they get the code's sentence then, and `untold` gets the error.
 */
const char *serve_error_text(struct serve_answer *answer, int status, int code, const char *text);

#endif
