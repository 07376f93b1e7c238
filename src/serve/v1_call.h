/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_V1_CALL_H
#define FLYBALL_SERVE_V1_CALL_H

#include "job/core/api.h"
#include "serve/route_family.h"

/* One request to the service's own interface, between parsing its body and writing its answer. */
struct v1_call {
    const struct jobs *jobs;
    const struct serve_request *request;
    struct serve_answer *answer;
    struct serve_note *note;
    struct api_place place;
    struct arena arena;
    union {
        struct fly_job_definition definition;
        struct job_setting setting;
        struct job_question question;
        struct job_profile profile;
        struct job_beat beat;
        struct job_epoch epoch;
        struct job_end end;
    } asked;
    union {
        struct job_list list;
        struct job_shown shown;
        struct job_registered registered;
        struct job_expired expired;
        struct job_proposal proposal;
        struct job_choice choice;
        struct job_answered answered;
        struct job_ended ended;
    } result;
    struct fly_error error;
};

/*
 * What a route does: it turns `asked` into `result`, or reads and writes the bodies itself.
 * Returns 0, or a code with its error.
 */
typedef int v1_operation(struct v1_call *call);

extern v1_operation *const v1_operations[API_OPERATIONS];

/* Returns the OpenAPI document, a new reference; NULL without memory. */
json_t *v1_document(void);

#endif
