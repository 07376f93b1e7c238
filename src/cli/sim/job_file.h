/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_SIM_JOB_FILE_H
#define FLYBALL_CLI_SIM_JOB_FILE_H

#include "base/error.h"
#include "sim/world/job_list.h"

/*
 * Job files, which describe recurring jobs.
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

/*
 * Adds the jobs of a file. FLY_ENOTFOUND, or FLY_ECONFIG with file and line: what was expected
 * there, or a field that is unknown (with the nearest known one), doubled or missing.
 */
int job_file_load(struct job_list *list, const char *path, struct fly_error *out_error);

/*
 * Sets one field by its name above. FLY_EUSAGE for a bad value; the error's text is then what was
 * expected: "a whole number from 1".
 */
int job_file_set_field(struct job_list *list, struct job_description *job, const char *field,
                       const char *value, struct fly_error *out_error);

#endif
