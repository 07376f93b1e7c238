/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the samples gathers the blocks, another the differences within them. */
#include "job/past/saving_estimate.h"

#include <math.h>

#include "base/math/student.h"

static const struct fly_job_range unknown = {NAN, NAN, NAN};

/* The share of the tuned runs that may lie outside the time of the default's. */
static const double beyond_max = 0.25;

/* Divided by the number of blocks: how much wider the interval is towards a greater saving. */
static const double skewed = 5.0;

/*
 * How many runs of each outcome are added to those seen, and the number of standard errors that goes with it.
 */
static const double added_runs = 2.0, normal_975 = 1.959963984540054;

/* The tuned runs nearest to one run of the default. */
struct block {
    double runs, amount, delivered;
};

/* Sums over blocks and over the runs in them. */
struct gathered {
    size_t count;                     /* blocks */
    double runs;                      /* tuned runs in the blocks */
    double inverse;                   /* sum over blocks of 1 over their tuned runs */
    double tuned, tuned_models;       /* sums of the blocks' means */
    double baseline, baseline_models; /* sums over the default's runs */
    double tuned_step, baseline_step; /* sums over runs */
    double tuned_failed, baseline_failed;
    double between, within; /* sums of relative squares */
};

/* Where the search for the run of the default before, at or after a place has got to. */
struct neighbours {
    bool has_before, has_after;
    size_t before, after;
};

static bool is_baseline(const struct saving_sample *samples, size_t i)
{
    return samples[i].kind == SAVING_BASELINE;
}

/* The greatest distance between neighbouring runs of the default. */
static size_t reach_of(const struct saving_sample *samples, size_t count)
{
    size_t reach = 0, last = count;

    for (size_t i = 0; i < count; i++) {
        if (!is_baseline(samples, i))
            continue;
        if (last < count && i - last > reach)
            reach = i - last;
        last = i;
    }
    return reach;
}

static struct neighbours around(const struct saving_sample *samples, size_t count, size_t at)
{
    struct neighbours found = {.before = at, .after = at};

    while (found.before > 0 && !is_baseline(samples, found.before - 1))
        found.before--;
    while (found.after + 1 < count && !is_baseline(samples, found.after + 1))
        found.after++;
    found.has_before = found.before > 0;
    found.has_after = found.after + 1 < count;
    return found;
}

/*
 * The range of samples (end excluded) that belongs to the run of the default at `at`: half way to its
 * neighbours.
 */
static void range_of(const struct saving_sample *samples, size_t count, size_t at, size_t reach,
                     size_t *out_begin, size_t *out_end)
{
    struct neighbours found = around(samples, count, at);
    size_t before = found.has_before ? (at - (found.before - 1)) / 2 : at;
    size_t after = found.has_after ? (found.after + 1 - at - 1) / 2 : count - 1 - at;

    *out_begin = at - (before < reach ? before : reach);
    *out_end = at + 1 + (after < reach ? after : reach);
}

static struct block block_at(const struct saving_sample *samples, size_t begin, size_t end)
{
    struct block block = {0};

    for (size_t i = begin; i < end; i++) {
        if (samples[i].kind != SAVING_TUNED)
            continue;
        block.runs += 1.0;
        block.amount += samples[i].amount;
        block.delivered += samples[i].delivered;
    }
    if (block.runs > 0.0) {
        block.amount /= block.runs;
        block.delivered /= block.runs;
    }
    return block;
}

static void add_block(struct gathered *gathered, const struct saving_sample *samples, size_t at, size_t begin,
                      size_t end)
{
    struct block block = block_at(samples, begin, end);

    if (block.runs == 0.0)
        return;
    gathered->count++;
    gathered->runs += block.runs;
    gathered->inverse += 1.0 / block.runs;
    gathered->tuned += block.amount;
    gathered->tuned_models += block.delivered;
    gathered->tuned_failed += block.runs * (1.0 - block.delivered);
    gathered->baseline += samples[at].amount;
    gathered->baseline_models += samples[at].delivered;
    gathered->baseline_failed += !samples[at].delivered;
    gathered->baseline_step += samples[at].step;
    for (size_t i = begin; i < end; i++)
        gathered->tuned_step += samples[i].kind == SAVING_TUNED ? samples[i].step : 0.0;
}

/* Adds how far a block is from all of them, and its tuned runs from their mean. */
static void add_squares(struct gathered *gathered, const struct saving_sample *samples, size_t at,
                        size_t begin, size_t end)
{
    struct block block = block_at(samples, begin, end);
    double blocks = (double)gathered->count, mean = gathered->tuned / blocks, off;

    if (block.runs == 0.0)
        return;
    off = blocks *
          (block.amount / gathered->tuned - block.delivered / gathered->tuned_models -
           samples[at].amount / gathered->baseline + samples[at].delivered / gathered->baseline_models);
    gathered->between += off * off;
    for (size_t i = begin; i < end; i++) {
        double apart = samples[i].kind == SAVING_TUNED ? (samples[i].amount - block.amount) / mean : 0.0;

        gathered->within += apart * apart;
    }
}

typedef void (*take_block)(struct gathered *gathered, const struct saving_sample *samples, size_t at,
                           size_t begin, size_t end);

static void each_block(struct gathered *gathered, const struct saving_sample *samples, size_t count,
                       size_t reach, take_block take)
{
    for (size_t at = 0; at < count; at++) {
        size_t begin, end;

        if (!is_baseline(samples, at))
            continue;
        range_of(samples, count, at, reach, &begin, &end);
        take(gathered, samples, at, begin, end);
    }
}

/* The variance that one run of one step more and one of one step less add to a mean. */
static double step_error(double step_sum, double mean, double runs)
{
    double relative = step_sum / runs / mean;

    return 2.0 * relative * relative / (runs * (runs + 1.0));
}

static double failure_error(double failed, double runs)
{
    double models = (runs - failed + added_runs) / (runs + 2.0 * added_runs);

    return (1.0 - models) / models / runs;
}

static double half_width(const struct gathered *gathered)
{
    double blocks = (double)gathered->count, inner = gathered->runs - blocks, rare = 0.0;
    double outer = gathered->between / blocks / (blocks - 1.0) +
                   step_error(gathered->baseline_step, gathered->baseline / blocks, blocks) +
                   step_error(gathered->tuned_step, gathered->tuned / blocks, gathered->runs);
    double half = student_975(blocks - 1.0) * sqrt(outer);

    if (gathered->baseline_failed + gathered->tuned_failed > 0.0)
        rare = normal_975 * normal_975 *
               (failure_error(gathered->baseline_failed, blocks) +
                failure_error(gathered->tuned_failed, gathered->runs));
    if (inner >= SAVING_BLOCKS_MIN - 1) {
        double pooled = gathered->within / inner * (1.0 / blocks + gathered->inverse / (blocks * blocks));
        double times = student_975(inner);

        half = fmax(half, sqrt(times * times * pooled + rare));
    }
    return fmax(half, sqrt(rare));
}

/* Towards a greater saving: long tails, and a default that may fail although none of its runs did. */
static double upper_width(const struct gathered *gathered, double half)
{
    double blocks = (double)gathered->count, wide = half * (1.0 + skewed / blocks);
    bool may_fail = gathered->baseline_step > 0.0 && gathered->baseline_failed == 0.0;
    double rare = may_fail ? normal_975 * normal_975 * failure_error(0.0, blocks) : 0.0;

    return sqrt(wide * wide + rare);
}

static enum saving_doubt doubt_of(const struct saving_sample *samples, size_t count,
                                  const struct gathered *gathered)
{
    double tuned = 0.0, baseline = 0.0;

    for (size_t i = 0; i < count; i++) {
        tuned += samples[i].kind == SAVING_TUNED;
        baseline += is_baseline(samples, i);
    }
    if (baseline < SAVING_BLOCKS_MIN)
        return SAVING_FEW_BASELINE;
    if (tuned < SAVING_BLOCKS_MIN)
        return SAVING_FEW_TUNED;
    if (tuned - gathered->runs > beyond_max * tuned)
        return SAVING_NOT_SPANNED;
    if (gathered->count < SAVING_BLOCKS_MIN)
        return SAVING_FEW_BASELINE;
    if (!(gathered->tuned_models > 0.0 && gathered->baseline_models > 0.0 && gathered->tuned > 0.0 &&
          gathered->baseline > 0.0))
        return SAVING_NO_MODEL;
    return SAVING_STATED;
}

struct fly_job_range saving_estimate(const struct saving_sample *samples, size_t count,
                                     enum saving_doubt *out_doubt)
{
    struct gathered gathered = {0};
    size_t reach = reach_of(samples, count);
    enum saving_doubt doubt;
    double difference, half;

    each_block(&gathered, samples, count, reach, add_block);
    doubt = doubt_of(samples, count, &gathered);
    if (out_doubt != NULL)
        *out_doubt = doubt;
    if (doubt != SAVING_STATED)
        return unknown;
    each_block(&gathered, samples, count, reach, add_squares);
    difference =
        log(gathered.tuned / gathered.tuned_models) - log(gathered.baseline / gathered.baseline_models);
    half = half_width(&gathered);
    return (struct fly_job_range){-expm1(difference), -expm1(difference + half),
                                  -expm1(difference - upper_width(&gathered, half))};
}

struct saving_bounds saving_bounds_of(const struct saving_sample *samples, size_t count)
{
    double runs = (double)count, amount = 0.0, models = 0.0, steps = 0.0, squares = 0.0, rare = 0.0, half;

    for (size_t i = 0; i < count; i++) {
        amount += samples[i].amount;
        models += samples[i].delivered;
        steps += samples[i].step;
    }
    if (count < SAVING_BLOCKS_MIN || models == 0.0 || !(amount > 0.0) || !isfinite(amount))
        return (struct saving_bounds){NAN, NAN};
    for (size_t i = 0; i < count; i++) {
        double off = runs * (samples[i].amount / amount - samples[i].delivered / models);

        squares += off * off;
    }
    if (models < runs)
        rare = normal_975 * normal_975 * failure_error(runs - models, runs);
    half = student_975(runs - 1.0) *
           sqrt(squares / runs / (runs - 1.0) + step_error(steps, amount / runs, runs));
    half = fmax(half, sqrt(rare));
    return (struct saving_bounds){half, half * (1.0 + skewed / runs)};
}

const char *saving_doubt_text(enum saving_doubt doubt)
{
    static const char *const texts[] = {
        [SAVING_STATED] = NULL,
        [SAVING_FEW_BASELINE] = "it takes four runs of the default at the highest limit, with runs of what "
                                "was chosen beside each",
        [SAVING_FEW_TUNED] = "it takes four runs of what was chosen",
        [SAVING_NOT_SPANNED] = "the default did not run during most of the time in which the others did, so "
                               "that a saving cannot be told from a drift",
        [SAVING_NO_MODEL] = "the default, or what was chosen, delivered no model",
        [SAVING_NO_DEFAULT] = "the job has no default to compare with",
    };

    _Static_assert(sizeof texts / sizeof texts[0] == SAVING_DOUBT_COUNT, "a text for every doubt");
    return texts[doubt];
}
