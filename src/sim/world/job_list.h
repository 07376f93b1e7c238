/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_JOB_LIST_H
#define FLYBALL_SIM_WORLD_JOB_LIST_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/world/job_description.h"

/*
 * The recurring jobs that can be named: the paper's, and those that are described, which win if a name
 * is in both.
 */
enum { JOB_LIST_MAX = 256 };

struct job_list {
    struct arena arena; /* owns the texts */
    struct job_description jobs[JOB_LIST_MAX];
    size_t count;
};

/* Fills in the paper's jobs. Call job_list_deinit afterwards. */
void job_list_init(struct job_list *list);
void job_list_deinit(struct job_list *list);

/* Returns the job of that name, or NULL. */
struct job_description *job_list_find(struct job_list *list, const char *name);

/* Returns the name nearest to what was typed, or NULL. */
const char *job_list_nearest(const struct job_list *list, const char *name);

/* Adds a job that has only its name; FLY_ELIMIT beyond JOB_LIST_MAX. */
int job_list_add(struct job_list *list, const char *name, struct job_description **out_job,
                 struct fly_error *out_error);

/*
 * Checks that a job has all it needs. If not, returns `code`, and `where` begins the error's
 * text. A missing dataset becomes the job's name.
 */
int job_list_check(struct job_description *job, const char *where, int code, struct fly_error *out_error);

#endif
