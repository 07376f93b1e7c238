/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_SHAPES_H
#define FLYBALL_JOB_CORE_SHAPES_H

#include "job/core/job.h"
#include "shapes/shape.h"

/*
 * The shapes of those structs of job.h that are sent as JSON (shape.h). A request's path names job and trial,
 * so they are no members of its body.
 */

/* Asked. */
extern const struct shape shape_definition;       /* with its name: as in the log */
extern const struct shape shape_definition_asked; /* without its name */
extern const struct shape shape_setting; /* "pin": {"batch_size": 64, "limit_w": 100}; size 0: no pin */
extern const struct shape shape_question;
extern const struct shape shape_profile;
extern const struct shape shape_beat;
extern const struct shape shape_epoch;
extern const struct shape shape_end;

/* Answered. */
extern const struct shape shape_registered;
extern const struct shape shape_proposal;
extern const struct shape shape_choice;
extern const struct shape shape_answered;
extern const struct shape shape_ended;
extern const struct shape shape_expired;
extern const struct shape shape_list;
extern const struct shape shape_shown;
extern const struct shape shape_failure;

/* Parts of the shapes above. */
extern const struct shape shape_objective;
extern const struct shape shape_hardware;
extern const struct shape shape_origin;
extern const struct shape shape_point;
extern const struct shape shape_summary;

/* A line of an exported log. */
extern const struct shape shape_event;

struct job_expired {
    uint64_t expired;
};

/* The answer to a request that failed. */
struct job_failure {
    struct job_failure_error {
        const char *code; /* "FLY_ECONFLICT" */
        const char *message;
    } error;
};

#endif
