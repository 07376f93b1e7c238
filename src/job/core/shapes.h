/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_SHAPES_H
#define FLYBALL_JOB_CORE_SHAPES_H

#include "job/core/job.h"
#include "shapes/shape.h"

/*
 * The structs of job.h that travel, as JSON (shape.h). Job and trial stand in a request's
 * path and are no members of what is asked.
 */

/* Asked. */
extern const struct shape shape_definition;       /* with its name: as it is on record */
extern const struct shape shape_definition_asked; /* without */
extern const struct shape shape_setting; /* "pin": {"batch_size": 64, "limit_w": 100}, of size 0 for none */
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

/* Parts of these. */
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

/* What a request came to that failed. */
struct job_failure {
    struct job_failure_error {
        const char *code; /* "FLY_ECONFLICT" */
        const char *message;
    } error;
};

#endif
