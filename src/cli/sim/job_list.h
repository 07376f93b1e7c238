/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_JOB_LIST_H
#define FLYBALL_CLI_SIM_JOB_LIST_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/world/job_description.h"

/*
 * The recurring jobs that can be named: the paper's, and those of a job file, which win if a name
 * is in both.
 *
 *     [ranker]                       the job's name
 *     dataset = clicks               rows of the trace; the name if left out
 *     network = dlrm
 *     optimizer = adam
 *     target_metric = 0.79
 *     max_epochs = 20
 *     default_batch_size = 1024
 *     batch_sizes = 256,512,1024     optional: all that the trace has
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

/*
 * Adds the jobs of a file. FLY_ENOTFOUND, or FLY_ECONFIG with file and line: what was expected
 * there, or a field that is unknown (with the nearest known one), doubled or missing.
 */
int job_list_load(struct job_list *list, const char *path, struct fly_error *out_error);

/* Returns the job of that name, or NULL. */
struct job_description *job_list_find(struct job_list *list, const char *name);

/* Returns the name nearest to what was typed, or NULL. */
const char *job_list_nearest(const struct job_list *list, const char *name);

/*
 * Sets one field by its name above. FLY_EUSAGE for a bad value; the error's text is then what was
 * expected: "a whole number from 1".
 */
int job_list_set_field(struct job_list *list, struct job_description *job, const char *field,
                       const char *value, struct fly_error *out_error);

/* Adds a job that has only its name; FLY_ELIMIT beyond JOB_LIST_MAX. */
int job_list_add(struct job_list *list, const char *name, struct job_description **out_job,
                 struct fly_error *out_error);

/*
 * Checks that a job has all it needs. If not, returns `code`, and `where` begins the error's
 * text. A missing dataset becomes the job's name.
 */
int job_list_check(struct job_description *job, const char *where, int code, struct fly_error *out_error);

#endif
