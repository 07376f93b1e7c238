/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/trace_export.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "job/core/job_record.h"
#include "job/core/job_words.h"

enum { TRACE_MEMORY_MAX = 1 << 30, TEXT_MAX = 64 << 20 };

/* What the two files are made from. */
struct tracing {
    const struct job_history *history;
    size_t machine;
    bool chosen_only;
    bool *profiled;                        /* per batch size: its profile went into the power file */
    bool default_trained, default_powered; /* the default batch size has rows in each */
    struct buffer train, power;
};

static size_t index_of(const struct fly_job_definition *definition, uint32_t batch_size)
{
    size_t at = 0;

    while (at + 1 < definition->batch_count && definition->batch_sizes[at] != batch_size)
        at++;
    return at;
}

bool job_reason_chosen(enum reason reason)
{
    return reason != REASON_CONTROL && reason != REASON_PINNED && reason != REASON_NO_TARGET;
}

static bool tells(const struct tracing *tracing, const struct job_row *row)
{
    return row->machine == tracing->machine && row->revision == tracing->history->revision &&
           (!tracing->chosen_only || job_reason_chosen(row->reason)) && !row->running &&
           outcome_observed(row->outcome) && !isnan(row->trial.energy_j) && row->stop != JOB_STOP_DEADLINE &&
           row->trial.epochs > 0;
}

static int write_train(struct tracing *tracing, struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &tracing->history->definition;
    uint64_t *runs = calloc(definition->batch_count, sizeof runs[0]);
    char target[NUMBER_TEXT_MAX];

    if (runs == NULL)
        return error_no_memory(out_error);
    number_format(definition->target != FLY_TARGET_NONE ? definition->target_metric : 0.0, target);
    buffer_puts(&tracing->train,
                "dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\n");
    for (size_t i = 0; i < tracing->history->count; i++) {
        const struct job_row *row = &tracing->history->rows[i];

        if (!tells(tracing, row))
            continue;
        buffer_printf(&tracing->train, "%s,any,%u,any,0,%" PRIu64 ",%s,", definition->name,
                      row->trial.batch_size, runs[index_of(definition, row->trial.batch_size)]++, target);
        tracing->default_trained |= row->trial.batch_size == definition->default_batch_size;
        if (row->outcome == TRIAL_REACHED)
            buffer_printf(&tracing->train, "%u\n", row->trial.epochs);
        else
            buffer_puts(&tracing->train, "nan\n");
    }
    free(runs);
    return 0;
}

static void write_power(struct tracing *tracing, uint32_t batch_size, double limit_w, double epoch_s,
                        double power_w)
{
    char limit[NUMBER_TEXT_MAX], time[NUMBER_TEXT_MAX], power[NUMBER_TEXT_MAX];
    double gpus = tracing->history->machines[tracing->machine].gpu_count;

    tracing->default_powered |= batch_size == tracing->history->definition.default_batch_size;
    buffer_printf(&tracing->power, "%s,any,%u,any,%s,%s,%s\n", tracing->history->definition.name, batch_size,
                  number_format(limit_w, limit), number_format(epoch_s, time),
                  number_format(power_w / gpus, power));
}

/* Writes a profile if it counts epochs and is the first of its batch size. */
static int on_profiled(void *fold, const struct log_event *at, const struct profiled_record *record)
{
    struct tracing *tracing = fold;
    const struct job_row *row =
        at->event->trial <= tracing->history->count ? &tracing->history->rows[at->event->trial - 1] : NULL;

    if (row == NULL || !record->folded || !(record->units_per_epoch > 0.0) ||
        row->machine != tracing->machine || row->revision != tracing->history->revision)
        return 0;
    tracing->profiled[index_of(&tracing->history->definition, row->trial.batch_size)] = true;
    for (size_t i = 0; i < record->count; i++)
        write_power(tracing, row->trial.batch_size, record->points[i].limit_w,
                    record->points[i].time_s * record->units_per_epoch, record->points[i].power_w);
    return 0;
}

static int take_profile(void *context, const struct store_event *event, struct fly_error *out_error)
{
    static const struct log_visitor visitor = {.on_profiled = on_profiled};

    return log_tell(&visitor, context, event, NULL, out_error);
}

/* Whether a trial ran under one limit alone, with the batch size and the limit of `like`. */
static bool is_alike(const struct tracing *tracing, const struct job_row *row, const struct job_row *like)
{
    return tells(tracing, row) && !row->trial.profiled && row->trial.batch_size == like->trial.batch_size &&
           job_history_limit_w(tracing->history, row) == job_history_limit_w(tracing->history, like);
}

/* Sums over a batch size's trials at one limit. */
struct epoch_sums {
    double epochs, energy_j, time_s;
};

static struct epoch_sums sum_trials(const struct tracing *tracing, const struct job_row *like)
{
    struct epoch_sums sums = {0};

    for (size_t i = 0; i < tracing->history->count; i++) {
        const struct job_row *row = &tracing->history->rows[i];

        if (!is_alike(tracing, row, like))
            continue;
        sums.epochs += row->trial.epochs;
        sums.energy_j += row->trial.energy_j;
        sums.time_s += row->trial.time_s;
    }
    return sums;
}

static bool stands_before(const struct tracing *tracing, size_t index)
{
    const struct job_history *history = tracing->history;

    for (size_t i = 0; i < index; i++) {
        if (is_alike(tracing, &history->rows[i], &history->rows[index]))
            return true;
    }
    return false;
}

/* For batch sizes without a profile: the first trial at each limit writes the means of all. */
static void write_means(struct tracing *tracing)
{
    const struct job_history *history = tracing->history;

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        double limit_w = job_history_limit_w(history, row);
        struct epoch_sums sums;

        if (!tells(tracing, row) || row->trial.profiled || !(limit_w > 0.0) || !(row->trial.time_s > 0.0) ||
            tracing->profiled[index_of(&history->definition, row->trial.batch_size)] ||
            stands_before(tracing, i))
            continue;
        sums = sum_trials(tracing, row);
        if (sums.energy_j > 0.0)
            write_power(tracing, row->trial.batch_size, limit_w, sums.time_s / sums.epochs,
                        sums.energy_j / sums.time_s);
    }
}

/* The simulator compares everything with the default. */
static int refuse_untold(const char *job, uint32_t default_size, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_EUNSUPPORTED,
        "job '%s': of its default batch size %u no trial that counts tells both the epochs and, under a "
        "limit that is known, the power, so a trace cannot tell its power or epochs; let it run "
        "further, or export it as jsonl",
        job, default_size);
}

static int write_both(const struct jobs *jobs, const char *job, struct tracing *tracing,
                      struct fly_error *out_error)
{
    static const struct store_query everything = {0};
    int code = write_train(tracing, out_error);

    buffer_puts(&tracing->power,
                "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n");
    if (code == 0)
        code = jobs->backend->read(jobs->self, job, &everything, take_profile, tracing, out_error);
    if (code < 0)
        return code;
    write_means(tracing);
    if (!tracing->default_trained || !tracing->default_powered)
        return refuse_untold(job, tracing->history->definition.default_batch_size, out_error);
    if (tracing->train.error < 0 || tracing->power.error < 0)
        return error_set(out_error, FLY_ELIMIT, "job '%s': its trace is larger than %d bytes", job, TEXT_MAX);
    return 0;
}

/* Counts the batch sizes that a trial was to profile, and none finished. */
static uint64_t count_unprofiled(const struct tracing *tracing)
{
    const struct fly_job_definition *definition = &tracing->history->definition;
    uint64_t count = 0;

    for (size_t batch = 0; batch < definition->batch_count; batch++) {
        bool wanted = false;

        for (size_t i = 0; i < tracing->history->count && !tracing->profiled[batch]; i++) {
            const struct job_row *row = &tracing->history->rows[i];

            wanted = wanted || (tells(tracing, row) && row->trial.profiled &&
                                row->trial.batch_size == definition->batch_sizes[batch]);
        }
        count += wanted;
    }
    return count;
}

static bool tells_anything(const struct tracing *tracing)
{
    for (size_t i = 0; i < tracing->history->count; i++) {
        if (tells(tracing, &tracing->history->rows[i]))
            return true;
    }
    return false;
}

int job_export_trace(const struct jobs *jobs, const char *job, size_t machine,
                     const struct job_trace_sinks *sinks, struct fly_error *out_error)
{
    struct job_history history;
    struct tracing tracing = {.history = &history, .machine = machine, .chosen_only = sinks->chosen_only};
    struct arena arena;
    int code;

    arena_init(&arena, TRACE_MEMORY_MAX);
    buffer_init(&tracing.train, TEXT_MAX);
    buffer_init(&tracing.power, TEXT_MAX);
    code = job_history_read(jobs, job, &arena, &history, out_error);
    if (code == 0 && (machine >= history.machine_count || !tells_anything(&tracing)))
        code = error_set(out_error, FLY_ENOTFOUND,
                         "job '%s': nothing was observed on machine %zu yet; let it run first", job, machine);
    if (code == 0) {
        tracing.profiled = arena_alloc(&arena, history.definition.batch_count, sizeof tracing.profiled[0]);
        code = tracing.profiled != NULL ? write_both(jobs, job, &tracing, out_error)
                                        : error_no_memory(out_error);
    }
    if (code == 0 && sinks->out_unprofiled != NULL)
        *sinks->out_unprofiled = count_unprofiled(&tracing);
    if (code == 0)
        code = sinks->train(sinks->train_context, tracing.train.data, tracing.train.length, out_error);
    if (code == 0)
        code = sinks->power(sinks->power_context, tracing.power.data, tracing.power.length, out_error);
    buffer_deinit(&tracing.train);
    buffer_deinit(&tracing.power);
    arena_deinit(&arena);
    return code;
}
