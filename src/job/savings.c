/* SPDX-License-Identifier: Apache-2.0 */
#include "job/savings.h"

#include <math.h>
#include <stdlib.h>

#include "base/student.h"

static const struct saving unknown = {NAN, NAN, NAN};

/* ---- statistics ---- */

/* Count, mean and sum of squared distances, one value at a time (Welford). */
struct moments {
    double count, mean, squares;
};

static void moments_add(struct moments *moments, double value)
{
    double before = value - moments->mean;

    moments->count += 1.0;
    moments->mean += before / moments->count;
    moments->squares += before * (value - moments->mean);
}

/* Of the mean. */
static double squared_error(const struct moments *moments)
{
    return moments->squares / (moments->count - 1.0) / moments->count;
}

/* From a difference of logarithms to a saving. */
static struct saving saving_from(double difference, double half)
{
    return (struct saving){-expm1(difference), -expm1(difference + half), -expm1(difference - half)};
}

/* The mean logarithm of the tuned samples that are nearer to `at` than to the baseline's before and after. */
static struct moments neighbours(const struct saving_sample *samples, size_t count, size_t at)
{
    struct moments near = {0};
    size_t before = at, after = at;
    double low = 0.0, high = (double)count;

    while (before > 0 && samples[before - 1].kind != SAVING_BASELINE)
        before--;
    while (after + 1 < count && samples[after + 1].kind != SAVING_BASELINE)
        after++;
    if (before > 0)
        low = 0.5 * ((double)(before - 1) + (double)at);
    if (after + 1 < count)
        high = 0.5 * ((double)at + (double)(after + 1));
    for (size_t i = before; i <= after; i++) {
        if (samples[i].kind == SAVING_TUNED && (double)i >= low && (double)i < high)
            moments_add(&near, log(samples[i].amount));
    }
    return near;
}

/* Each run of the baseline against the tuned ones around it. */
static bool estimate_interleaved(const struct saving_sample *samples, size_t count, struct saving *out_saving)
{
    struct moments differences = {0};

    for (size_t i = 0; i < count; i++) {
        struct moments near;

        if (samples[i].kind != SAVING_BASELINE)
            continue;
        near = neighbours(samples, count, i);
        if (near.count > 0.0)
            moments_add(&differences, near.mean - log(samples[i].amount));
    }
    if (differences.count < JOB_SAMPLES_MIN)
        return false;
    *out_saving = saving_from(differences.mean,
                              student_975(differences.count - 1.0) * sqrt(squared_error(&differences)));
    return true;
}

/* The groups as they are (Welch, "The generalization of Student's problem", 1947). */
static struct saving estimate_apart(const struct saving_sample *samples, size_t count)
{
    struct moments groups[SAVING_TUNED + 1] = {{0}};
    const struct moments *tuned = &groups[SAVING_TUNED], *baseline = &groups[SAVING_BASELINE];
    double a, b, degrees;

    for (size_t i = 0; i < count; i++)
        moments_add(&groups[samples[i].kind], log(samples[i].amount));
    if (tuned->count < JOB_SAMPLES_MIN || baseline->count < JOB_SAMPLES_MIN)
        return unknown;
    a = squared_error(tuned);
    b = squared_error(baseline);
    if (a + b == 0.0)
        return saving_from(tuned->mean - baseline->mean, 0.0);
    degrees = (a + b) * (a + b) / (a * a / (tuned->count - 1.0) + b * b / (baseline->count - 1.0));
    return saving_from(tuned->mean - baseline->mean, student_975(degrees) * sqrt(a + b));
}

struct saving saving_estimate(const struct saving_sample *samples, size_t count, bool *out_interleaved)
{
    struct saving saving = estimate_apart(samples, count);
    bool interleaved = !isnan(saving.saving) && estimate_interleaved(samples, count, &saving);

    if (out_interleaved != NULL)
        *out_interleaved = interleaved;
    return saving;
}

/* ---- recurrences ---- */

struct submission {
    bool any;     /* a trial of it ran on the machine */
    bool running; /* or elsewhere */
    bool reached;
    bool searched;
    bool plain;    /* of trials at the default and the highest limit alone */
    bool outdated; /* a trial of it was chosen for what is not wanted any more */
    double energy_j, time_s, cost_j, metric;
    int64_t ended_us;
};

static bool is_plain(const struct job_history *history, const struct job_row *row)
{
    double highest_w = history->machines[row->machine].highest_limit_w;

    return row->batch_size == history->definition.default_batch_size && !row->profiled &&
           (isnan(highest_w) || row->limit_w == highest_w);
}

static void add_row(struct submission *submission, const struct job_history *history,
                    const struct job_row *row, size_t machine)
{
    if (!submission->any)
        submission->plain = true;
    submission->any = true;
    submission->running |= row->running || row->machine != machine;
    submission->reached |= !row->running && row->outcome == TRIAL_REACHED;
    submission->searched |= row->reason == REASON_EXPLORE || row->profiled;
    submission->plain &= is_plain(history, row);
    submission->outdated |= row->trial < history->wanted_from;
    submission->energy_j += row->energy_j;
    submission->time_s += row->time_s;
    submission->cost_j += row->cost_j;
    submission->metric = row->metric;
    submission->ended_us = row->ended_us;
}

/* Whether it is a run of what was chosen, for what is wanted now or was then. */
static bool is_tuned(const struct submission *submission)
{
    return !submission->plain && !submission->searched;
}

/* What is outdated keeps its place among the samples and says no more than a search does. */
static enum saving_kind kind_of(const struct submission *submission)
{
    if (submission->plain)
        return SAVING_BASELINE;
    return is_tuned(submission) && !submission->outdated ? SAVING_TUNED : SAVING_SEARCHING;
}

static bool counts(const struct submission *submission)
{
    return submission->any && !submission->running && submission->reached && submission->energy_j > 0.0 &&
           submission->time_s > 0.0 && submission->cost_j > 0.0;
}

static void group_add(struct saving_group *group, struct moments *energy, const struct submission *submission)
{
    double runs = (double)++group->runs;

    moments_add(energy, submission->energy_j);
    group->mean_energy_j = energy->mean;
    group->spread = runs > 1.0 ? sqrt(energy->squares / (runs - 1.0)) / energy->mean : NAN;
    group->mean_time_s = runs > 1.0 ? group->mean_time_s + (submission->time_s - group->mean_time_s) / runs
                                    : submission->time_s;
    group->mean_metric = runs > 1.0 ? group->mean_metric + (submission->metric - group->mean_metric) / runs
                                    : submission->metric;
    group->newest_us = submission->ended_us > group->newest_us ? submission->ended_us : group->newest_us;
}

/* When all recurrences together had taken less than as many of the baseline, and did so to the end. */
static void find_pay_off(const struct submission *submissions, size_t count, double baseline_j,
                         struct job_savings *savings)
{
    double ahead_j = 0.0;

    for (size_t i = 0; i < count; i++) {
        bool before = savings->paid_off;

        if (!submissions[i].any || submissions[i].running || isnan(submissions[i].energy_j))
            continue;
        ahead_j += baseline_j - submissions[i].energy_j;
        savings->paid_off = ahead_j > 0.0;
        if (savings->paid_off && !before)
            savings->paid_off_at = i;
    }
}

typedef double (*amount_of)(const struct submission *submission);

static double energy_of(const struct submission *submission)
{
    return submission->energy_j;
}

static double time_of(const struct submission *submission)
{
    return submission->time_s;
}

static double cost_of(const struct submission *submission)
{
    return submission->cost_j;
}

static struct saving estimate(const struct submission *submissions, size_t count, amount_of amount,
                              struct saving_sample *samples, bool *out_interleaved)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (counts(&submissions[i]))
            samples[used++] = (struct saving_sample){kind_of(&submissions[i]), amount(&submissions[i])};
    }
    return saving_estimate(samples, used, out_interleaved);
}

static void sum_up(const struct submission *submissions, size_t count, struct saving_sample *samples,
                   struct job_savings *savings)
{
    struct moments baseline = {0}, tuned = {0};
    double searching_j = 0.0;

    for (size_t i = 0; i < count; i++) {
        const struct submission *submission = &submissions[i];

        if (!counts(submission))
            continue;
        if (kind_of(submission) == SAVING_BASELINE)
            group_add(&savings->baseline, &baseline, submission);
        else if (kind_of(submission) == SAVING_TUNED)
            group_add(&savings->tuned, &tuned, submission);
        else if (is_tuned(submission))
            savings->outdated++;
        else
            savings->searching++, searching_j += submission->energy_j;
    }
    savings->energy = estimate(submissions, count, energy_of, samples, &savings->interleaved);
    savings->time = estimate(submissions, count, time_of, samples, NULL);
    savings->cost = estimate(submissions, count, cost_of, samples, NULL);
    savings->known = !isnan(savings->energy.saving);
    if (!savings->known)
        return;
    savings->exploration_j = searching_j - (double)savings->searching * tuned.mean;
    find_pay_off(submissions, count, baseline.mean, savings);
}

int job_savings_of(const struct job_history *history, size_t machine, struct job_savings *out_savings,
                   struct fly_error *out_error)
{
    static const struct saving_group empty = {
        .mean_energy_j = NAN, .spread = NAN, .mean_time_s = NAN, .mean_metric = NAN};
    struct job_savings savings = {.baseline = empty,
                                  .tuned = empty,
                                  .energy = unknown,
                                  .time = unknown,
                                  .cost = unknown,
                                  .exploration_j = NAN};
    size_t count = history->count > 0 ? (size_t)history->rows[history->count - 1].recurrence + 1 : 0;
    struct submission *submissions;
    struct saving_sample *samples;
    int code = 0;

    for (size_t i = 0; i < history->count; i++) {
        if (history->rows[i].recurrence >= count)
            count = (size_t)history->rows[i].recurrence + 1;
    }
    submissions = calloc(count + 1, sizeof submissions[0]);
    samples = calloc(count + 1, sizeof samples[0]);
    if (submissions != NULL && samples != NULL) {
        for (size_t i = 0; i < history->count; i++) {
            const struct job_row *row = &history->rows[i];

            if (row->machine == machine || submissions[row->recurrence].any)
                add_row(&submissions[row->recurrence], history, row, machine);
        }
        sum_up(submissions, count, samples, &savings);
        *out_savings = savings;
    } else {
        code = error_no_memory(out_error);
    }
    free(samples);
    free(submissions);
    return code;
}
