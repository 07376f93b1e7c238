/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/step_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pause makes a step longer than so many median steps. */
static const double pause_medians = 5.0;
/* A step below this share of the median was reported together with the one before. */
static const double bunched_share = 0.2;
enum { LEAST_STEPS = 8, USUAL_FROM = 10 }; /* one long step in ten is usual */

/*
 * How far apart marks are; once a step was long, and how long after one the next may come. Energy counters
 * move every 20 to 100 ms: a mark right after a pause would count some of its energy to the steps that
 * follow.
 */
static const double mark_every_s = 0.2, mark_after_s = 0.1;
static const double long_means = 3.0;

/* The steps' power is known from stretches without pauses that are at least this share of the steps' time. */
static const double clean_share = 0.25;

/* From the first decile of a normal number to the last, in standard deviations. */
static const double normal_deciles = 2.563;

enum { BATCHES = 10, LEAST_BATCHED = 4 * BATCHES };
/* 99th percentile of chi squared with nine degrees of freedom, over nine. */
static const double batch_chance = 2.41;

/* ---- the record ---- */

void step_record_begin(struct step_record *record)
{
    record->count = record->mark_count = 0;
    record->per_place = 1;
    record->begun = 0;
    record->begun_s = record->time_s = 0.0;
    record->mark_every_s = record->mark_due_s = mark_every_s;
}

static void halve_places(struct step_record *record)
{
    record->count /= 2;
    for (size_t i = 0; i < record->count; i++)
        record->places_s[i] = record->places_s[2 * i] + record->places_s[2 * i + 1];
    record->per_place *= 2;
    for (size_t i = 0; i < record->mark_count; i++)
        record->marks[i].at /= 2;
}

static double mean_step_s(const struct step_record *record)
{
    double steps = (double)record->count * record->per_place + record->begun;

    return steps > 0.0 ? record->time_s / steps : INFINITY;
}

void step_record_add(struct step_record *record, double step_s)
{
    bool is_long = step_s > long_means * mean_step_s(record);

    record->time_s += step_s;
    if (is_long) {
        record->mark_every_s = fmin(record->mark_every_s, mark_after_s);
        record->mark_due_s = record->time_s + mark_after_s;
    }
    record->begun_s += step_s;
    if (++record->begun < record->per_place)
        return;
    record->places_s[record->count++] = (float)record->begun_s;
    record->begun = 0;
    record->begun_s = 0.0;
    if (record->count == STEP_RECORD_PLACES)
        halve_places(record);
}

bool step_record_wants_mark(const struct step_record *record)
{
    return record->begun == 0 && record->time_s >= record->mark_due_s;
}

static void halve_marks(struct step_record *record)
{
    record->mark_count /= 2;
    for (size_t i = 0; i < record->mark_count; i++)
        record->marks[i] = record->marks[2 * i + 1];
    record->mark_every_s *= 2.0;
}

void step_record_mark(struct step_record *record, const struct step_stretch *so_far)
{
    record->mark_due_s = record->time_s + record->mark_every_s;
    if (isnan(so_far->energy_j))
        return;
    record->marks[record->mark_count++] = (struct step_mark){record->count, *so_far};
    if (record->mark_count == STEP_RECORD_MARKS)
        halve_marks(record);
}

/* ---- pauses ---- */

static int compare_floats(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;

    return (a > b) - (a < b);
}

static double median_step_s(const struct step_record *record)
{
    float sorted[STEP_RECORD_PLACES];

    if (record->count == 0)
        return NAN;
    memcpy(sorted, record->places_s, record->count * sizeof sorted[0]);
    qsort(sorted, record->count, sizeof sorted[0], compare_floats);
    return (double)sorted[record->count / 2] / record->per_place;
}

/* Places with a pause, and those that were reported together with it. */
struct pause {
    size_t from, count;
    double time_s;
};

/* Finds the first pause at this place or behind it; false for none. */
static bool find_pause(const struct step_record *record, double median_s, size_t from,
                       struct pause *out_pause)
{
    double usual_s = median_s * record->per_place, longest_s = usual_s + (pause_medians - 1.0) * median_s;

    for (size_t i = from; i < record->count; i++) {
        struct pause pause = {i, 1, record->places_s[i]};

        if (!(pause.time_s > longest_s))
            continue;
        while (i + pause.count < record->count && record->places_s[i + pause.count] < bunched_share * usual_s)
            pause.time_s += record->places_s[i + pause.count++];
        if (pause.time_s > longest_s + (double)(pause.count - 1) * usual_s) {
            *out_pause = pause;
            return true;
        }
        i += pause.count - 1;
    }
    return false;
}

/* What counts as a pause here: a median step, or NAN when nothing does. */
static double pausing_median_s(const struct step_record *record)
{
    double median_s = median_step_s(record);
    size_t steps = record->count * record->per_place, pauses = 0;
    struct pause pause = {0};

    if (steps < LEAST_STEPS || record->count < LEAST_STEPS || !(median_s > 0.0))
        return NAN;
    while (find_pause(record, median_s, pause.from + pause.count, &pause))
        pauses++;
    return pauses > 0 && (pauses == 1 || pauses * USUAL_FROM <= steps) ? median_s : NAN;
}

/* ---- the steps' mean and spread ---- */

struct sums {
    double count, sum_s, squares_s2;
};

static void add_place(struct sums *sums, double place_s)
{
    sums->count++;
    sums->sum_s += place_s;
    sums->squares_s2 += place_s * place_s;
}

static double variance(const struct sums *sums)
{
    double mean_s = sums->sum_s / sums->count;

    return sums->count < 2.0 ? 0.0
                             : fmax(sums->squares_s2 / sums->count - mean_s * mean_s, 0.0) * sums->count /
                                   (sums->count - 1.0);
}

/* By how much more batches of neighbours vary than the places' own spread explains; 1: chance explains it. */
static double batch_excess(const double *kept_s, size_t count, double place_variance)
{
    size_t size = count / BATCHES;
    struct sums batches = {0};
    double excess;

    if (count < LEAST_BATCHED || !(place_variance > 0.0))
        return 1.0;
    for (size_t batch = 0; batch < BATCHES; batch++) {
        double sum_s = 0.0;

        for (size_t i = 0; i < size; i++)
            sum_s += kept_s[batch * size + i];
        add_place(&batches, sum_s / (double)size);
    }
    excess = variance(&batches) * (double)size / place_variance;
    return excess > batch_chance ? excess : 1.0;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/*
 * From the deciles of the places, which are of several steps; orders them. 0: not known. Fewer than one step
 * in ten that is late, on a busy machine, does not count; one in ten or more is how the training works.
 */
static double decile_scatter(const struct step_record *record, double *kept_s, size_t count)
{
    qsort(kept_s, count, sizeof kept_s[0], compare_doubles);
    if (count < LEAST_STEPS || !(kept_s[count / 2] > 0.0))
        return 0.0;
    return (kept_s[(USUAL_FROM - 1) * count / USUAL_FROM] - kept_s[count / USUAL_FROM]) / normal_deciles /
           kept_s[count / 2] * sqrt(record->per_place);
}

static void take_spread(const struct step_record *record, double median_s, struct step_estimate *estimate)
{
    double kept_s[STEP_RECORD_PLACES];
    struct sums sums = {0};
    struct pause pause = {0};
    size_t kept = 0, at = 0;

    do {
        bool found = !isnan(median_s) && find_pause(record, median_s, at, &pause);

        for (size_t until = found ? pause.from : record->count; at < until; at++) {
            kept_s[kept] = (double)record->places_s[at] / record->per_place;
            add_place(&sums, kept_s[kept++]);
        }
        if (found) {
            estimate->pauses++;
            estimate->pause_s += pause.time_s;
            at += pause.count;
        }
    } while (at < record->count);
    estimate->steps = (double)kept * record->per_place;
    if (kept == 0)
        return;
    estimate->mean_s = sums.sum_s / sums.count;
    estimate->spread_s =
        sqrt(variance(&sums) * batch_excess(kept_s, kept, variance(&sums)) * record->per_place);
    estimate->scatter = decile_scatter(record, kept_s, kept);
}

/* ---- the steps' energy ---- */

/* What lies between marks without a pause, and the error of the edges of what is left out. */
struct clean {
    double time_s, energy_j, edges_j2;
};

static struct clean find_clean(const struct step_record *record, double median_s,
                               const struct step_stretch *whole)
{
    const struct step_stretch nothing = {0};
    struct clean clean = {0};
    bool was_left_out = false;
    size_t from = 0;

    for (size_t i = 0; i <= record->mark_count; i++) {
        bool last = i == record->mark_count;
        const struct step_stretch *begin = i > 0 ? &record->marks[i - 1].so_far : &nothing;
        const struct step_stretch *end = last ? whole : &record->marks[i].so_far;
        size_t until = last ? record->count : record->marks[i].at;
        struct pause pause;
        bool left_out = find_pause(record, median_s, from, &pause) && pause.from < until;

        if (!left_out) {
            clean.time_s += end->time_s - begin->time_s;
            clean.energy_j += end->energy_j - begin->energy_j;
        } else if (!was_left_out) {
            clean.edges_j2 += end->half_j * end->half_j;
        }
        was_left_out = left_out;
        from = until;
    }
    return clean;
}

/* Scales the energy from the steps' power; `kept_s` of the window are no pauses. */
static void take_energy(const struct step_record *record, double median_s, const struct step_stretch *whole,
                        double kept_s, struct step_estimate *estimate)
{
    struct clean clean = find_clean(record, median_s, whole);
    double kept_j, half_j;

    if (clean.time_s >= clean_share * kept_s && clean.energy_j > 0.0) {
        kept_j = clean.energy_j / clean.time_s * kept_s;
        half_j = sqrt(whole->half_j * whole->half_j + clean.edges_j2) * kept_s / clean.time_s;
    } else {
        double least_j = whole->energy_j * kept_s / whole->time_s;

        kept_j = (least_j + whole->energy_j) / 2.0;
        half_j = hypot((whole->energy_j - least_j) / 2.0, whole->half_j);
    }
    estimate->pause_j = whole->energy_j - kept_j;
    estimate->energy_j = kept_j * estimate->time_s / kept_s;
    estimate->half_j = half_j * estimate->time_s / kept_s;
}

struct step_estimate step_record_estimate(const struct step_record *record, const struct step_stretch *whole)
{
    struct step_estimate estimate = {
        .time_s = whole->time_s, .energy_j = whole->energy_j, .half_j = whole->half_j};
    double median_s = pausing_median_s(record), kept_s;

    take_spread(record, median_s, &estimate);
    kept_s = whole->time_s - estimate.pause_s;
    if (estimate.pauses == 0 || !(estimate.steps > 0.0) || !(kept_s > 0.0))
        return estimate;
    estimate.time_s = kept_s * ((double)record->count * record->per_place + record->begun) /
                      (estimate.steps + record->begun);
    take_energy(record, median_s, whole, kept_s, &estimate);
    return estimate;
}
