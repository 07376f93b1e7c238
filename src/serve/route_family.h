/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_ROUTE_FAMILY_H
#define FLYBALL_SERVE_ROUTE_FAMILY_H

#include <stdbool.h>

#include "http/exchange.h"
#include "job/core/job_backend.h"

/* Families of routes, which answer requests about jobs, and what they note about an answer. */

/* What an answer was about, for the service's own figures. */
struct serve_note {
    char job[JOB_NAME_MAX + 1]; /* "": none */
    char gpu_model[JOB_TEXT_MAX];
    bool decided;               /* the answer made a proposal */
    bool ended;                 /* this very request ended a trial */
    bool left;                  /* with `ended`: its program ended by itself, and nobody saw it crash */
    enum trial_outcome outcome; /* with `ended` */
    double energy_j; /* adds to the energy of ended trials: with `ended` the trial's energy over all attempts;
                        otherwise what its run used after its end was known; NAN: none */
    struct job_expiries expired; /* trials of that job that this request recorded as expired */
};

/*
 * A family of routes. The service asks one family after the other. A family keeps nothing between
 * requests.
 */
struct serve_routes {
    const char *name; /* for the service's figures */

    /*
     * Answers from `jobs`, whose handle only the caller uses meanwhile. Returns false if the path is
     * not one of this family's. Fills `out_answer` (the caller still owns its body) and what is known
     * of `out_note`.
     */
    bool (*answer)(const struct jobs *jobs, const struct serve_request *request,
                   struct serve_answer *out_answer, struct serve_note *out_note);
};

extern const struct serve_routes serve_v1; /* the service's own interface */

/*
 * Returns the text that the body may have for an error: usually the error's own. Clients must not
 * learn where the store lies: from status 500 on they get the code's sentence, and `untold` gets
 * the error.
 */
const char *serve_error_text(struct serve_answer *answer, int status, int code, const char *text);

#endif
