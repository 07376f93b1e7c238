/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_SERVE_ZEUS_JOB_H
#define FLYBALL_COMPAT_ZEUS_SERVE_ZEUS_JOB_H

#include "base/arena.h"
#include "compat/zeus/serve/zeus_body.h"
#include "job/core/job.h"

/*
 * A job as a client of the public batch-size server states it, and its conversion to a job's
 * definition and back. A definition has no place for the GPUs and the prefix; its `client` holds
 * them, so that all fields are compared when the job is registered again.
 */
struct zeus_job {
    const char *job_id; /* NULL: the service makes one */
    const char *job_id_prefix;
    struct zeus_wholes batch_sizes; /* ascending */
    int64_t default_batch_size;
    double eta_knob;
    double beta_knob; /* INFINITY: null, never stopped because of its cost */
    double target_metric;
    bool higher_is_better_metric;
    int64_t max_epochs;
    int64_t num_pruning_rounds;
    int64_t window_size;
    double mab_prior_mean;
    double mab_prior_precision;
    int64_t mab_num_explorations;
    int64_t mab_seed; /* ZEUS_NULL: none */
    double max_power; /* W, all GPUs together */
    int64_t number_of_gpus;
    const char *gpu_model;
};

/* Reads a request's object; texts are borrowed from it. Returns whether nothing was wrong. */
bool zeus_job_read(const json_t *object, struct zeus_job *out_job, struct zeus_complaints *detail);

/* Writes the job as the public server answers it, with `job_id` as given. */
json_t *zeus_job_write(const struct zeus_job *job, const char *job_id);

/*
 * Makes the store's name of a job from its id: the id itself if it is a valid name of a job. A
 * byte that is not allowed, a leading dot, and an underscore before a dot are written as "_.2F",
 * so that no two ids get the same name. Returns false if the name would be longer than
 * JOB_NAME_MAX.
 */
bool zeus_job_name(const char *job_id, char out_name[JOB_NAME_MAX + 1]);

/*
 * Makes the job's definition under that name. The definition borrows a text from `client` and the
 * batch sizes from the job. Returns 0 or FLY_ENOMEM.
 */
int zeus_job_define(const struct zeus_job *job, const char *name, char client[JOB_CLIENT_MAX + 1],
                    struct fly_job_definition *out_definition);

/*
 * Turns a definition back into the job, without the id; texts go into the arena. Returns false if
 * no such client defined it.
 */
bool zeus_job_recall(const struct fly_job_definition *definition, struct arena *arena,
                     struct zeus_job *out_job);

/* The fields in which two jobs differ, for example {"eta_knob": [0.5, 0.7]}. */
enum { ZEUS_DIFFERENCES_MAX = 18 };

struct zeus_difference {
    const char *name; /* static */
    struct zeus_values {
        json_t *before, *now; /* owned */
    } values;
};

struct zeus_differences {
    struct zeus_difference list[ZEUS_DIFFERENCES_MAX];
    size_t count;
};

void zeus_job_differences(const struct zeus_job *registered, const struct zeus_job *now,
                          struct zeus_differences *out_differences);
void zeus_differences_deinit(struct zeus_differences *differences);

#endif
