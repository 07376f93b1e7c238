/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/compare_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world/oracle.h"

enum { MEMORY_MAX = 64 << 20, NAME_MAX_BYTES = 256 };

static const char file_prefix[] = "summary_power_", file_suffix[] = ".csv";

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Takes the GPU of a file's name, if it is a power trace. */
static int take_file(const char *name, struct arena *arena, struct compare_gpus *gpus,
                     struct fly_error *out_error)
{
    size_t length = strlen(name), ends = sizeof file_prefix + sizeof file_suffix - 2;
    char *gpu;

    if (length <= ends || strncmp(name, file_prefix, sizeof file_prefix - 1) != 0 ||
        strcmp(name + length - (sizeof file_suffix - 1), file_suffix) != 0)
        return 0;
    if (gpus->count == COMPARE_GPUS_MAX)
        return error_set(out_error, FLY_ELIMIT, "the traces are of more than %d GPUs; choose some with --gpu",
                         COMPARE_GPUS_MAX);
    gpu = arena_strdup(arena, name + sizeof file_prefix - 1);
    if (gpu == NULL)
        return error_no_memory(out_error);
    gpu[length - ends] = '\0';
    gpus->names[gpus->count++] = gpu;
    return 0;
}

int compare_gpus_list(const char *traces, struct arena *arena, struct compare_gpus *gpus,
                      struct fly_error *out_error)
{
    DIR *directory = opendir(traces);
    struct dirent *entry;
    int code = 0;

    if (directory == NULL)
        return error_set(out_error, FLY_ENOTFOUND,
                         "%s: reading the directory failed: %s; name the traces' directory", traces,
                         strerror(errno));
    while (code == 0 && (entry = readdir(directory)) != NULL)
        code = take_file(entry->d_name, arena, gpus, out_error);
    closedir(directory);
    if (code == 0 && gpus->count == 0)
        code = error_set(out_error, FLY_ENOTFOUND,
                         "%s: no file summary_power_GPU.csv; name the traces' directory", traces);
    qsort(gpus->names, gpus->count, sizeof gpus->names[0], compare_names);
    return code;
}

void compare_jobs_init(struct compare_jobs *jobs)
{
    jobs->set_count = jobs->count = jobs->of_traces = jobs->row_count = jobs->left_out_count = 0;
    arena_init(&jobs->arena, MEMORY_MAX);
}

void compare_jobs_close(struct compare_jobs *jobs)
{
    for (size_t i = jobs->of_traces; i < jobs->count; i++)
        workload_close(&jobs->items[i]);
    for (size_t i = 0; i < jobs->set_count; i++)
        sim_set_close(&jobs->sets[i]);
    arena_deinit(&jobs->arena);
}

static int add_set(struct compare_jobs *jobs, const char *name, size_t first, size_t count,
                   struct fly_error *out_error)
{
    const char *kept = arena_strdup(&jobs->arena, name);

    if (kept == NULL)
        return error_no_memory(out_error);
    if (count > 0)
        jobs->rows[jobs->row_count++] = (struct compare_set){kept, first, count};
    return 0;
}

/* Makes `number` jobs of each kind that is asked for. */
static int make_synthetic(struct compare_jobs *jobs, const struct compare_synthetic *synthetic,
                          struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < synthetic->kind_count && code == 0; i++) {
        for (uint32_t n = 1; n <= synthetic->number && code == 0; n++) {
            struct workload *workload = &jobs->items[jobs->count];

            code = synthetic_make(workload, synthetic->kinds[i], n, out_error);
            if (code == 0) {
                workload->spec.eta = synthetic->eta;
                jobs->count++;
            }
        }
    }
    return code;
}

/* Adds a job, or its name to those left out. Returns false without memory. */
static bool take_job(struct compare_jobs *jobs, const struct workload *workload)
{
    char name[NAME_MAX_BYTES];

    if (isfinite(oracle_expected_epochs(workload, workload->spec.default_batch))) {
        jobs->items[jobs->count++] = *workload;
        return true;
    }
    snprintf(name, sizeof name, "%s on %s", workload->job.name, workload->gpu);
    jobs->left_out[jobs->left_out_count] = arena_strdup(&jobs->arena, name);
    return jobs->left_out[jobs->left_out_count++] != NULL;
}

static int collect(struct compare_jobs *jobs, const struct compare_synthetic *synthetic,
                   struct fly_error *out_error)
{
    size_t all;

    for (size_t i = 0; i < jobs->set_count; i++)
        jobs->of_traces += jobs->sets[i].count;
    all = jobs->of_traces + synthetic->kind_count * synthetic->number;
    if (all == 0)
        return error_set(out_error, FLY_EUSAGE, "no jobs; name traces, or kinds of synthetic jobs");
    if (all > COMPARE_JOBS_MAX)
        return error_set(out_error, FLY_EUSAGE, "%zu jobs; expected at most %d", all, COMPARE_JOBS_MAX);
    jobs->items = arena_alloc(&jobs->arena, all, sizeof jobs->items[0]);
    if (jobs->items == NULL)
        return error_no_memory(out_error);
    jobs->left_out = arena_alloc(&jobs->arena, all, sizeof jobs->left_out[0]);
    if (jobs->left_out == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < jobs->set_count; i++) {
        for (size_t w = 0; w < jobs->sets[i].count; w++) {
            if (!take_job(jobs, &jobs->sets[i].items[w]))
                return error_no_memory(out_error);
        }
    }
    jobs->of_traces = jobs->count;
    if (jobs->count + synthetic->kind_count * synthetic->number == 0)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "the default batch size of %s, and of every other job, never reaches the target; name "
            "jobs whose default does",
            jobs->left_out[0]);
    return make_synthetic(jobs, synthetic, out_error);
}

/* Makes the sets: all of the traces, all synthetic ones, each kind, and, with `each`, each job. */
static int make_sets(struct compare_jobs *jobs, const struct compare_synthetic *synthetic, bool each,
                     struct fly_error *out_error)
{
    char name[NAME_MAX_BYTES];
    int code = add_set(jobs, "traces", 0, jobs->of_traces, out_error);

    if (code == 0)
        code = add_set(jobs, "synthetic", jobs->of_traces, jobs->count - jobs->of_traces, out_error);
    for (size_t i = 0; i < synthetic->kind_count && synthetic->kind_count > 1 && code == 0; i++)
        code = add_set(jobs, synthetic_names[synthetic->kinds[i]], jobs->of_traces + i * synthetic->number,
                       synthetic->number, out_error);
    for (size_t i = 0; i < jobs->count && each && code == 0; i++) {
        snprintf(name, sizeof name, "%s on %s", jobs->items[i].job.name, jobs->items[i].gpu);
        code = add_set(jobs, name, i, 1, out_error);
    }
    return code;
}

int compare_jobs_collect(struct compare_jobs *jobs, const struct compare_synthetic *synthetic, bool each,
                         struct fly_error *out_error)
{
    int code = collect(jobs, synthetic, out_error);

    return code == 0 ? make_sets(jobs, synthetic, each, out_error) : code;
}
