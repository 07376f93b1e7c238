/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_JOB_DESCRIPTION_H
#define FLYBALL_SIM_WORLD_JOB_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A recurring job as its user describes it: which rows of a trace are its trainings, and its defaults. */
struct job_description {
    const char *name;
    const char *dataset;
    const char *network;
    const char *optimizer;
    double target_metric;
    uint32_t max_epochs;
    uint32_t default_batch_size;
    /*
     * Lowers the default batch size to the largest one that the GPU's power trace has for the
     * dataset, as the published experiments do if a GPU's memory is too small.
     */
    bool default_fits_gpu;
    /* What happened to the job that a trace cannot express, "2 bounds"; NULL: nothing, or not known. */
    const char *untold;
    /* The batch sizes to choose from, ascending; NULL for all that the trace has. */
    const uint32_t *batch_sizes;
    size_t batch_count;
};

/* The six jobs of You et al., NSDI '23, named by their datasets. */
extern const struct job_description known_jobs[];
extern const size_t known_job_count;

#endif
