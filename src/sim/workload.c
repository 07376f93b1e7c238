/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

enum { MEMORY_MAX = 1 << 30, LIST_MAX = 160 };

/* The job's texts as the trace has them interned; NULL where it has no such word. */
struct job_key {
    const char *dataset, *network, *optimizer;
};

static struct job_key job_key(const struct trace *trace, const struct job_description *job)
{
    return (struct job_key){trace_word(trace, job->dataset), trace_word(trace, job->network),
                            trace_word(trace, job->optimizer)};
}

static bool is_train_row(const struct train_row *row, const struct job_key *key)
{
    return row->dataset == key->dataset && row->network == key->network && row->optimizer == key->optimizer;
}

static bool is_power_row(const struct power_row *row, const struct job_key *key)
{
    return row->dataset == key->dataset && row->network == key->network && row->optimizer == key->optimizer;
}

static bool has_train_row(const struct trace *trace, const struct job_key *key, uint32_t batch_size)
{
    for (size_t i = 0; i < trace->train_count; i++) {
        if (trace->train[i].batch_size == batch_size && is_train_row(&trace->train[i], key))
            return true;
    }
    return false;
}

static bool has_power_row(const struct trace *trace, const struct job_key *key, uint32_t batch_size)
{
    for (size_t i = 0; i < trace->power_count; i++) {
        if (trace->power[i].batch_size == batch_size && is_power_row(&trace->power[i], key))
            return true;
    }
    return false;
}

bool workload_in_trace(const struct trace *trace, const struct job_description *job)
{
    struct job_key key = job_key(trace, job);

    for (size_t i = 0; i < trace->power_count; i++) {
        if (is_power_row(&trace->power[i], &key) && has_train_row(trace, &key, trace->power[i].batch_size))
            return true;
    }
    return false;
}

static int compare_u32(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static int compare_points(const void *left, const void *right)
{
    const struct fly_power_point *a = left, *b = right;

    return compare_doubles(&a->limit_w, &b->limit_w);
}

/* "8, 16, 32", cut with "..." where it grows long; into `text`, which is returned. */
static char *list_u32(const uint32_t *values, size_t count, char text[LIST_MAX])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && used < LIST_MAX - 20; i++)
        used += (size_t)snprintf(text + used, LIST_MAX - used, "%s%u", i > 0 ? ", " : "", values[i]);
    if (used >= LIST_MAX - 20)
        snprintf(text + used, LIST_MAX - used, ", ...");
    return text;
}

/* The batch sizes of the job's train rows, ascending, each once. */
static uint32_t *train_batch_sizes(struct workload *workload, const struct trace *trace,
                                   const struct job_key *key, size_t *out_count)
{
    uint32_t *sizes = arena_alloc(&workload->arena, trace->train_count + 1, sizeof sizes[0]);
    size_t count = 0, kept = 0;

    if (sizes == NULL)
        return NULL;
    for (size_t i = 0; i < trace->train_count; i++) {
        if (is_train_row(&trace->train[i], key))
            sizes[count++] = trace->train[i].batch_size;
    }
    qsort(sizes, count, sizeof sizes[0], compare_u32);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || sizes[kept - 1] != sizes[i])
            sizes[kept++] = sizes[i];
    }
    *out_count = kept;
    return sizes;
}

static int refuse_batch(const struct workload *workload, const struct trace *trace, uint32_t size,
                        struct fly_error *out_error)
{
    const char *path = has_train_row(trace,
                                     &(struct job_key){trace_word(trace, workload->job.dataset),
                                                       trace_word(trace, workload->job.network),
                                                       trace_word(trace, workload->job.optimizer)},
                                     size)
                           ? trace->power_path
                           : trace->train_path;

    return error_set(
        out_error, FLY_EDATA,
        "%s: column 'batch_size': job '%s' asks for batch size %u, which has no row there; leave it out of "
        "the job's batch sizes or record it",
        path, workload->job.name, size);
}

static bool is_wanted(const struct job_description *job, uint32_t size)
{
    return job->batch_sizes == NULL ||
           bsearch(&size, job->batch_sizes, job->batch_count, sizeof size, compare_u32) != NULL;
}

/* Sorts the train file's batch sizes into those of the job and those left out. */
static int choose_batches(struct workload *workload, const struct trace *trace, const struct job_key *key,
                          uint32_t **out_sizes, struct fly_error *out_error)
{
    size_t count, kept = 0, left = 0;
    uint32_t *sizes = train_batch_sizes(workload, trace, key, &count);
    uint32_t *left_out = arena_alloc(&workload->arena, trace->train_count + 1, sizeof left_out[0]);

    if (sizes == NULL || left_out == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < workload->job.batch_count; i++) {
        uint32_t size = workload->job.batch_sizes[i];

        if (!has_train_row(trace, key, size) || !has_power_row(trace, key, size))
            return refuse_batch(workload, trace, size, out_error);
    }
    for (size_t i = 0; i < count; i++) {
        if (!has_power_row(trace, key, sizes[i]))
            left_out[left++] = sizes[i];
        else if (is_wanted(&workload->job, sizes[i]))
            sizes[kept++] = sizes[i];
    }
    if (kept > JOB_BATCHES_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s: job '%s' has %zu batch sizes; expected at most %d",
                         trace->train_path, workload->job.name, kept, JOB_BATCHES_MAX);
    workload->left_out = left_out;
    workload->left_out_count = left;
    workload->spec.batch_count = kept;
    *out_sizes = sizes;
    return 0;
}

/* The power points of one batch size, ascending, and the plain means over them. */
static int cut_points(struct workload *workload, const struct trace *trace, const struct job_key *key,
                      uint32_t size, struct workload_batch *batch, struct fly_error *out_error)
{
    struct fly_power_point *points = arena_alloc(&workload->arena, JOB_LIMITS_MAX, sizeof points[0]);
    double energy_j = 0.0, time_s = 0.0;

    if (points == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < trace->power_count; i++) {
        const struct power_row *row = &trace->power[i];

        if (row->batch_size != size || !is_power_row(row, key))
            continue;
        if (batch->point_count == JOB_LIMITS_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: batch size %u has more than %d power limits",
                             trace->power_path, row->line, size, JOB_LIMITS_MAX);
        points[batch->point_count++] =
            (struct fly_power_point){row->limit_w, row->power_w, row->epoch_time_s};
        energy_j += row->epoch_time_s * row->power_w;
        time_s += row->epoch_time_s;
    }
    qsort(points, batch->point_count, sizeof points[0], compare_points);
    batch->points = points;
    batch->mean_epoch_energy_j = energy_j / (double)batch->point_count;
    batch->mean_epoch_time_s = time_s / (double)batch->point_count;
    return 0;
}

static int cut_paths(struct workload *workload, const struct trace *trace, const struct job_key *key,
                     uint32_t size, struct workload_batch *batch, struct fly_error *out_error)
{
    size_t rows = 0;
    double *epochs;

    for (size_t i = 0; i < trace->train_count; i++)
        rows += trace->train[i].batch_size == size;
    epochs = arena_alloc(&workload->arena, rows, sizeof epochs[0]);
    if (epochs == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < trace->train_count; i++) {
        const struct train_row *row = &trace->train[i];

        if (row->batch_size == size && row->target_metric == workload->job.target_metric &&
            is_train_row(row, key))
            epochs[batch->path_count++] = row->target_epoch;
    }
    batch->path_epochs = epochs;
    if (batch->path_count == 0)
        return error_set(
            out_error, FLY_EDATA,
            "%s: column 'target_metric': batch size %u of job '%s' has no run for target %g; record one "
            "or leave the batch size out",
            trace->train_path, size, workload->job.name, workload->job.target_metric);
    return 0;
}

static int cut_batch(struct workload *workload, const struct trace *trace, const struct job_key *key,
                     size_t i, uint32_t size, struct batch_choice *choice, struct fly_error *out_error)
{
    struct workload_batch *batch = &workload->batches[i];
    double *limits_w;
    int code = cut_points(workload, trace, key, size, batch, out_error);

    if (code == 0)
        code = cut_paths(workload, trace, key, size, batch, out_error);
    if (code < 0)
        return code;
    limits_w = arena_alloc(&workload->arena, batch->point_count, sizeof limits_w[0]);
    if (limits_w == NULL)
        return error_no_memory(out_error);
    for (size_t p = 0; p < batch->point_count; p++)
        limits_w[p] = batch->points[p].limit_w;
    *choice = (struct batch_choice){size, limits_w, batch->point_count};
    return 0;
}

static int cut_batches(struct workload *workload, const struct trace *trace, const struct job_key *key,
                       const uint32_t *sizes, struct fly_error *out_error)
{
    size_t count = workload->spec.batch_count;
    struct batch_choice *choices = arena_alloc(&workload->arena, count, sizeof choices[0]);
    int code = 0;

    workload->batches = arena_alloc(&workload->arena, count, sizeof workload->batches[0]);
    if (choices == NULL || workload->batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = cut_batch(workload, trace, key, i, sizes[i], &choices[i], out_error);
    workload->spec.batches = choices;
    return code;
}

/* The largest batch size of the job's dataset in the power file, of whatever network. */
static uint32_t largest_power_batch(const struct trace *trace, const struct job_key *key)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < trace->power_count; i++) {
        if (trace->power[i].dataset == key->dataset && trace->power[i].batch_size > largest)
            largest = trace->power[i].batch_size;
    }
    return largest;
}

static int choose_default(struct workload *workload, const struct trace *trace, const struct job_key *key,
                          const uint32_t *sizes, struct fly_error *out_error)
{
    uint32_t size = workload->job.default_batch_size;
    uint32_t largest = largest_power_batch(trace, key);
    char list[LIST_MAX];

    if (workload->job.default_fits_gpu && size > largest)
        size = largest;
    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        if (sizes[i] == size) {
            workload->spec.default_batch = i;
            return 0;
        }
    }
    return error_set(out_error, FLY_ENOTFOUND,
                     "%s: column 'batch_size': default batch size %u of job '%s' is not in the trace; it has "
                     "%s, so choose "
                     "one of them as the default",
                     has_train_row(trace, key, size) ? trace->power_path : trace->train_path, size,
                     workload->job.name, list_u32(sizes, workload->spec.batch_count, list));
}

/* The highest limit of all jobs that both files have: the published MaxPower, one number per GPU. */
static double highest_joined_limit_w(const struct trace *trace)
{
    double highest_w = 0.0;

    for (size_t i = 0; i < trace->power_count; i++) {
        const struct power_row *row = &trace->power[i];
        const struct job_key key = {row->dataset, row->network, row->optimizer};

        if (row->limit_w > highest_w && has_train_row(trace, &key, row->batch_size))
            highest_w = row->limit_w;
    }
    return highest_w;
}

static int count_limits(struct workload *workload, struct fly_error *out_error)
{
    size_t total = 0, count = 0;
    double *limits_w;

    for (size_t i = 0; i < workload->spec.batch_count; i++)
        total += workload->batches[i].point_count;
    limits_w = arena_alloc(&workload->arena, total, sizeof limits_w[0]);
    if (limits_w == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        for (size_t p = 0; p < workload->batches[i].point_count; p++)
            limits_w[count++] = workload->batches[i].points[p].limit_w;
    }
    qsort(limits_w, count, sizeof limits_w[0], compare_doubles);
    for (size_t i = 0; i < count; i++)
        workload->limit_count += i == 0 || limits_w[i] != limits_w[i - 1];
    return 0;
}

/* Says what the trace has instead of the job's target. */
static int refuse_target(const struct workload *workload, const struct trace *trace,
                         const struct job_key *key, struct fly_error *out_error)
{
    double below = -INFINITY, above = INFINITY, target = workload->job.target_metric;

    for (size_t i = 0; i < trace->train_count; i++) {
        double metric = trace->train[i].target_metric;

        if (!is_train_row(&trace->train[i], key))
            continue;
        if (metric == target)
            return 0;
        if (metric < target)
            below = fmax(below, metric);
        else
            above = fmin(above, metric);
    }
    return error_set(out_error, FLY_ENOTFOUND,
                     "%s: column 'target_metric': no run of job '%s' has target %g; the nearest in the trace "
                     "is %g, so choose "
                     "that or record more",
                     trace->train_path, workload->job.name, target,
                     isinf(above) || target - below < above - target ? below : above);
}

static int cut_job(struct workload *workload, const struct trace *trace, const struct job_key *key,
                   struct fly_error *out_error)
{
    uint32_t *sizes = NULL;
    int code = refuse_target(workload, trace, key, out_error);

    if (code == 0)
        code = choose_batches(workload, trace, key, &sizes, out_error);
    if (code == 0)
        code = choose_default(workload, trace, key, sizes, out_error);
    if (code == 0)
        code = cut_batches(workload, trace, key, sizes, out_error);
    if (code == 0)
        code = count_limits(workload, out_error);
    return code;
}

int workload_open(struct workload *workload, const struct trace *trace, const struct job_description *job,
                  struct fly_error *out_error)
{
    const struct job_key key = job_key(trace, job);
    int code;

    if (!workload_in_trace(trace, job))
        return error_set(
            out_error, FLY_ENOTFOUND,
            "%s: no rows of dataset '%s', network '%s', optimizer '%s' (job '%s') that %s has too; choose "
            "another workload or correct the job's description",
            trace->power_path, job->dataset, job->network, job->optimizer, job->name, trace->train_path);
    *workload = (struct workload){.job = *job};
    arena_init(&workload->arena, MEMORY_MAX);
    workload->gpu = arena_strdup(&workload->arena, trace->gpu);
    workload->spec.name = arena_strdup(&workload->arena, job->name);
    workload->spec.max_epochs = job->max_epochs;
    workload->spec.max_power_w = highest_joined_limit_w(trace);
    code = workload->gpu == NULL || workload->spec.name == NULL ? error_no_memory(out_error)
                                                                : cut_job(workload, trace, &key, out_error);
    if (code < 0)
        workload_close(workload);
    return code;
}

void workload_close(struct workload *workload)
{
    arena_deinit(&workload->arena);
}

uint64_t workload_recurrences(const struct workload *workload)
{
    return 2 * (uint64_t)workload->spec.batch_count * workload->limit_count;
}

size_t workload_find_limit(const struct workload_batch *batch, double limit_w)
{
    size_t i = 0;

    while (i < batch->point_count && batch->points[i].limit_w != limit_w)
        i++;
    return i;
}
