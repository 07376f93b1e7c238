/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DEFINITION_H
#define FLYBALL_JOB_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/objective.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fly_target {
    FLY_TARGET_NONE,     /* a fixed number of epochs: only the power limit is tuned */
    FLY_TARGET_AT_LEAST, /* reached with a metric of target_metric or more */
    FLY_TARGET_AT_MOST,
};

/*
 * A recurring job's definition. It is registered once and never changed. The members are the rows of
 * <flyball/job_definition.def>, each with its meaning, after the job's name. Options of a session have the
 * same members (<flyball/session.h>).
 *
 * A definition that names no policy (NULL, "" or "auto") gets the one that whoever keeps the log decides on.
 * So it is with an objective: energy with an eta of NAN is not named, nor is a max_slowdown of NAN, while
 * INFINITY is no bound.
 */
struct fly_job_definition {
    const char *name; /* a-z A-Z 0-9 - _ . */
#define FLY_MEMBER(type, name) type name;
#include <flyball/job_definition.def>
};

#ifdef __cplusplus
}
#endif

#endif
