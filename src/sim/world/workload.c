/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/workload.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/math/order.h"
#include "sim/world/job_rows.h"

enum { MEMORY_MAX = 1 << 30, LIST_MAX = 256 };

/* A workload that is being made. */
struct cutting {
    struct workload *workload;
    struct job_rows rows;
    uint32_t *sizes; /* the job's batch sizes, ascending: spec.batch_count of them */
};

static int compare_points(const void *left, const void *right)
{
    const struct fly_power_point *a = left, *b = right;

    return order_doubles(&a->limit_w, &b->limit_w);
}

/* Checks that every batch size that was asked for is there. */
static int check_wanted(const struct cutting *cutting, struct fly_error *out_error)
{
    const struct job_description *job = &cutting->workload->job;
    const struct trace *trace = cutting->rows.trace;

    for (size_t i = 0; i < job->batch_count; i++) {
        uint32_t size = job->batch_sizes[i];
        bool trained = job_rows_trained(&cutting->rows, size);

        if (!trained || !job_rows_powered(&cutting->rows, size))
            return error_set(
                out_error, FLY_EDATA,
                "%s: column 'batch_size': job '%s' asks for batch size %u, which has no row there; leave "
                "it out of the job's batch sizes or record it",
                trained ? trace->power_path : trace->train_path, job->name, size);
    }
    return 0;
}

static bool is_wanted(const struct job_description *job, uint32_t size)
{
    for (size_t i = 0; i < job->batch_count; i++) {
        if (job->batch_sizes[i] == size)
            return true;
    }
    return job->batch_sizes == NULL;
}

/* Sorts the trained batch sizes into those of the job and those left out. */
static int choose_batches(struct cutting *cutting, struct fly_error *out_error)
{
    struct workload *workload = cutting->workload;
    size_t count = 0, kept = 0, left = 0;
    uint32_t *sizes = job_rows_batch_sizes(&cutting->rows, &workload->arena, &count);
    uint32_t *left_out = arena_alloc(&workload->arena, count, sizeof left_out[0]);

    if (sizes == NULL || left_out == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&workload->job, sizes[i]))
            continue;
        if (job_rows_powered(&cutting->rows, sizes[i]))
            sizes[kept++] = sizes[i];
        else
            left_out[left++] = sizes[i];
    }
    if (kept > JOB_BATCHES_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s: job '%s' has %zu batch sizes; expected at most %d",
                         cutting->rows.trace->train_path, workload->job.name, kept, JOB_BATCHES_MAX);
    workload->left_out = left_out;
    workload->left_out_count = left;
    workload->spec.batch_count = kept;
    cutting->sizes = sizes;
    return 0;
}

/* Returns the largest batch size of the job's dataset in the power file, for any network. */
static uint32_t largest_power_batch(const struct trace *trace, const char *dataset)
{
    const char *word = trace_word(trace, dataset);
    uint32_t largest = 0;

    for (size_t i = 0; i < trace->power_count; i++) {
        if (trace->power[i].dataset == word && trace->power[i].batch_size > largest)
            largest = trace->power[i].batch_size;
    }
    return largest;
}

static int refuse_default(const struct cutting *cutting, uint32_t size, struct fly_error *out_error)
{
    const struct trace *trace = cutting->rows.trace;
    const struct workload *workload = cutting->workload;
    struct buffer list;
    int code;

    buffer_init(&list, LIST_MAX);
    for (size_t i = 0; i < workload->spec.batch_count; i++)
        buffer_printf(&list, "%s%u", i > 0 ? ", " : "", cutting->sizes[i]);
    code = error_set(
        out_error, FLY_ENOTFOUND,
        "%s: column 'batch_size': default batch size %u of job '%s' is not in the trace; expected one of "
        "%s, so choose one of them as the default",
        job_rows_trained(&cutting->rows, size) ? trace->power_path : trace->train_path, size,
        workload->job.name, list.data);
    buffer_deinit(&list);
    return code;
}

static int choose_default(struct cutting *cutting, struct fly_error *out_error)
{
    struct workload *workload = cutting->workload;
    uint32_t size = workload->job.default_batch_size;
    uint32_t largest = largest_power_batch(cutting->rows.trace, workload->job.dataset);

    if (workload->job.default_fits_gpu && size > largest)
        size = largest;
    for (size_t i = 0; i < workload->spec.batch_count; i++) {
        if (cutting->sizes[i] == size) {
            workload->spec.default_batch = i;
            return 0;
        }
    }
    return refuse_default(cutting, size, out_error);
}

/* Collects the power points of one batch size, ascending, and the plain means over them. */
static int cut_points(struct cutting *cutting, uint32_t size, struct workload_batch *batch,
                      struct fly_error *out_error)
{
    struct fly_power_point *points =
        arena_alloc(&cutting->workload->arena, cutting->rows.power_count, sizeof points[0]);
    double energy_j = 0.0, time_s = 0.0;

    if (points == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < cutting->rows.power_count; i++) {
        const struct power_row *row = cutting->rows.power[i];

        if (row->batch_size != size)
            continue;
        if (batch->point_count == JOB_LIMITS_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: batch size %u has more than %d power limits",
                             cutting->rows.trace->power_path, row->line, size, JOB_LIMITS_MAX);
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

/* Collects the recorded runs of one batch size towards the job's target, in file order. */
static int cut_paths(struct cutting *cutting, uint32_t size, struct workload_batch *batch,
                     struct fly_error *out_error)
{
    const struct job_description *job = &cutting->workload->job;
    double *epochs = arena_alloc(&cutting->workload->arena, cutting->rows.train_count, sizeof epochs[0]);

    if (epochs == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < cutting->rows.train_count; i++) {
        const struct train_row *row = cutting->rows.train[i];

        if (row->batch_size == size && row->target_metric == job->target_metric)
            epochs[batch->path_count++] = row->target_epoch;
    }
    batch->path_epochs = epochs;
    if (batch->path_count == 0)
        return error_set(
            out_error, FLY_EDATA,
            "%s: column 'target_metric': batch size %u of job '%s' has no run for target %g; record one "
            "or leave the batch size out",
            cutting->rows.trace->train_path, size, job->name, job->target_metric);
    return 0;
}

static int cut_batch(struct cutting *cutting, size_t i, struct batch_choice *choice,
                     struct fly_error *out_error)
{
    struct workload_batch *batch = &cutting->workload->batches[i];
    double *limits_w;
    int code = cut_points(cutting, cutting->sizes[i], batch, out_error);

    if (code == 0)
        code = cut_paths(cutting, cutting->sizes[i], batch, out_error);
    if (code < 0)
        return code;
    limits_w = arena_alloc(&cutting->workload->arena, batch->point_count, sizeof limits_w[0]);
    if (limits_w == NULL)
        return error_no_memory(out_error);
    for (size_t p = 0; p < batch->point_count; p++)
        limits_w[p] = batch->points[p].limit_w;
    *choice = (struct batch_choice){cutting->sizes[i], limits_w, batch->point_count};
    return 0;
}

static int cut_batches(struct cutting *cutting, struct fly_error *out_error)
{
    struct workload *workload = cutting->workload;
    size_t count = workload->spec.batch_count;
    struct batch_choice *choices = arena_alloc(&workload->arena, count, sizeof choices[0]);
    int code = 0;

    workload->batches = arena_alloc(&workload->arena, count, sizeof workload->batches[0]);
    if (choices == NULL || workload->batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = cut_batch(cutting, i, &choices[i], out_error);
    workload->spec.batches = choices;
    return code;
}

/* Returns the highest limit of all jobs that both files have: the published MaxPower, one number per GPU. */
static double highest_joined_limit_w(const struct trace *trace)
{
    double highest_w = 0.0;

    for (size_t i = 0; i < trace->power_count; i++) {
        if (trace->power[i].limit_w > highest_w && trace_trained(trace, &trace->power[i]))
            highest_w = trace->power[i].limit_w;
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
    qsort(limits_w, count, sizeof limits_w[0], order_doubles);
    for (size_t i = 0; i < count; i++)
        workload->limit_count += i == 0 || limits_w[i] != limits_w[i - 1];
    return 0;
}

static int check_job(const struct cutting *cutting, struct fly_error *out_error)
{
    const struct job_description *job = &cutting->workload->job;
    const struct trace *trace = cutting->rows.trace;
    double nearest = job_rows_nearest_target(&cutting->rows, job->target_metric);

    if (!job_rows_joined(&cutting->rows))
        return error_set(
            out_error, FLY_ENOTFOUND,
            "%s: no row of dataset '%s', network '%s', optimizer '%s' (job '%s') with a batch size of %s; "
            "choose another workload or correct the job's description",
            cutting->rows.train_count == 0 ? trace->train_path : trace->power_path, job->dataset,
            job->network, job->optimizer, job->name,
            cutting->rows.train_count == 0 ? trace->power_path : trace->train_path);
    if (nearest != job->target_metric)
        return error_set(
            out_error, FLY_ENOTFOUND,
            "%s: column 'target_metric': no run of job '%s' has target %g; the nearest in the trace is "
            "%g, so choose that or record more",
            trace->train_path, job->name, job->target_metric, nearest);
    return check_wanted(cutting, out_error);
}

static int cut_job(struct cutting *cutting, struct fly_error *out_error)
{
    int code = check_job(cutting, out_error);

    if (code == 0)
        code = choose_batches(cutting, out_error);
    if (code == 0)
        code = choose_default(cutting, out_error);
    if (code == 0)
        code = cut_batches(cutting, out_error);
    return code == 0 ? count_limits(cutting->workload, out_error) : code;
}

int workload_open(struct workload *workload, const struct trace *trace, const struct job_description *job,
                  struct fly_error *out_error)
{
    struct cutting cutting = {.workload = workload};
    int code;

    *workload = (struct workload){.job = *job};
    arena_init(&workload->arena, MEMORY_MAX);
    workload->gpu = arena_strdup(&workload->arena, trace->gpu);
    workload->spec.name = arena_strdup(&workload->arena, job->name);
    workload->spec.max_epochs = job->max_epochs;
    workload->spec.max_power_w = highest_joined_limit_w(trace);
    if (workload->gpu == NULL || workload->spec.name == NULL)
        code = error_no_memory(out_error);
    else
        code = job_rows_cut(trace, job, &workload->arena, &cutting.rows, out_error);
    if (code == 0)
        code = cut_job(&cutting, out_error);
    if (code < 0)
        workload_close(workload);
    return code;
}

void workload_close(struct workload *workload)
{
    arena_deinit(&workload->arena);
}

bool workload_in_trace(const struct trace *trace, const struct job_description *job)
{
    struct arena arena;
    struct job_rows rows;
    bool joined;

    arena_init(&arena, MEMORY_MAX);
    joined = job_rows_cut(trace, job, &arena, &rows, NULL) == 0 && job_rows_joined(&rows);
    arena_deinit(&arena);
    return joined;
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
