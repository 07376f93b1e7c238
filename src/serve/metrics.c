/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/harmless.h"
#include "base/number.h"
#include "http/prometheus.h"

static const char other[] = "(other)";

/* Upper ends of the histogram's buckets. A decision takes milliseconds, but it may wait for a lock. */
static const double bounds_s[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
enum { BOUNDS = sizeof bounds_s / sizeof bounds_s[0] };

enum family { TRIALS, ENERGY, DECISION };
static const struct meaning families[] = {
    [TRIALS] = {"flyball_trials_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
                "Trials that ended, as seen by this service."},
    [ENERGY] = {"flyball_trial_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
                "Energy of those trials whose energy is known."},
    [DECISION] = {"flyball_decision_seconds", "", MEANING_REAL, 0, "s", MEANING_HISTOGRAM,
                  "Time to decide what to run and to write it down, waiting for the store included."},
};
const struct quantities metrics_quantities = {"a metric of the service", QUANTITIES(families)};

struct series {
    char job[JOB_NAME_MAX + 1];
    char gpu_model[JOB_TEXT_MAX];
    uint64_t trials[TRIAL_OUTCOME_COUNT];
    uint64_t left; /* trials that the log records as crashed because it has no better word */
    bool energy_known;
    double energy_j;
};

struct metrics {
    pthread_mutex_t lock;
    struct series series[METRICS_SERIES_MAX + 1]; /* the last one counts all others */
    size_t series_count;
    uint64_t within[BOUNDS]; /* decisions within this bound and above the one before it */
    uint64_t decisions;
    double decision_s;
};

int metrics_new(struct metrics **out_metrics, struct fly_error *out_error)
{
    struct metrics *made = calloc(1, sizeof *made);

    if (made == NULL)
        return error_no_memory(out_error);
    pthread_mutex_init(&made->lock, NULL);
    *out_metrics = made;
    return 0;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

/* Compares the GPU's name as it is shown: two names that look the same share a series. */
static struct series *find_series(struct metrics *metrics, const char *job, const char *told_model)
{
    char gpu_model[JOB_TEXT_MAX];
    struct series *made;

    snprintf(gpu_model, sizeof gpu_model, "%s", told_model);
    harmless_make(gpu_model, strlen(gpu_model), false);

    for (size_t i = 0; i < metrics->series_count; i++) {
        if (strcmp(metrics->series[i].job, job) == 0 && strcmp(metrics->series[i].gpu_model, gpu_model) == 0)
            return &metrics->series[i];
    }
    if (metrics->series_count > METRICS_SERIES_MAX)
        return &metrics->series[METRICS_SERIES_MAX];
    made = &metrics->series[metrics->series_count++];
    if (metrics->series_count > METRICS_SERIES_MAX) {
        job = other;
        snprintf(gpu_model, sizeof gpu_model, "%s", other);
    }
    snprintf(made->job, sizeof made->job, "%s", job);
    snprintf(made->gpu_model, sizeof made->gpu_model, "%s", gpu_model);
    return made;
}

/* A sum over attempts begins at 0 and stays there if no energy is known, since no training takes none. */
static bool is_known(double energy_j)
{
    return isfinite(energy_j) && energy_j > 0.0;
}

/* Counts a trial's end, or energy that it took after its end. */
static void count_trial(struct metrics *metrics, const struct serve_note *note)
{
    struct series *series = find_series(metrics, note->job, note->gpu_model);

    if (note->ended && note->left && note->outcome == TRIAL_CRASHED)
        series->left++;
    else if (note->ended)
        series->trials[note->outcome]++;
    if (!is_known(note->energy_j))
        return;
    series->energy_known = true;
    series->energy_j += note->energy_j;
}

/* Their energy is not counted here: what is reported of them later holds all of it. */
static void count_expired(struct metrics *metrics, const struct serve_note *note)
{
    for (size_t i = 0; i < note->expired.count; i++)
        find_series(metrics, note->job, note->expired.of[i].gpu_model)->trials[TRIAL_EXPIRED] +=
            note->expired.of[i].trials;
}

static void count_decision(struct metrics *metrics, double seconds)
{
    for (size_t i = 0; i < BOUNDS; i++) {
        if (seconds <= bounds_s[i]) {
            metrics->within[i]++;
            break;
        }
    }
    metrics->decisions++;
    metrics->decision_s += seconds;
}

void metrics_count(struct metrics *metrics, const struct serve_note *note, double seconds)
{
    pthread_mutex_lock(&metrics->lock);
    if (note->decided)
        count_decision(metrics, seconds);
    if ((note->ended || is_known(note->energy_j)) && note->outcome < TRIAL_OUTCOME_COUNT)
        count_trial(metrics, note);
    count_expired(metrics, note);
    pthread_mutex_unlock(&metrics->lock);
}

static void put_labels(struct buffer *text, const struct series *series)
{
    buffer_puts(text, "training_job=\"");
    prometheus_label(text, series->job);
    if (series->gpu_model[0] != '\0') {
        buffer_puts(text, "\",gpu_model=\"");
        prometheus_label(text, series->gpu_model);
    }
    buffer_puts(text, "\"}");
}

static void write_outcome(const struct series *series, const char *outcome, uint64_t trials,
                          struct buffer *text)
{
    if (trials == 0)
        return;
    buffer_printf(text, "%s{outcome=\"%s\",", families[TRIALS].key, outcome);
    put_labels(text, series);
    buffer_printf(text, " %llu\n", (unsigned long long)trials);
}

static void write_trials(const struct metrics *metrics, struct buffer *text)
{
    prometheus_head(text, &families[TRIALS]);
    for (size_t i = 0; i < metrics->series_count; i++) {
        const struct series *series = &metrics->series[i];

        for (size_t outcome = 0; outcome < TRIAL_OUTCOME_COUNT; outcome++)
            write_outcome(series, job_outcome_name((enum trial_outcome)outcome), series->trials[outcome],
                          text);
        write_outcome(series, "left", series->left, text);
    }
}

static void write_energy(const struct metrics *metrics, struct buffer *text)
{
    char number[NUMBER_TEXT_MAX];

    prometheus_head(text, &families[ENERGY]);
    for (size_t i = 0; i < metrics->series_count; i++) {
        if (!metrics->series[i].energy_known)
            continue;
        buffer_printf(text, "%s{", families[ENERGY].key);
        put_labels(text, &metrics->series[i]);
        buffer_printf(text, " %s\n", number_format(metrics->series[i].energy_j, number));
    }
}

static void write_decisions(const struct metrics *metrics, struct buffer *text)
{
    const char *name = families[DECISION].key;
    char number[NUMBER_TEXT_MAX];
    uint64_t within = 0;

    prometheus_head(text, &families[DECISION]);
    for (size_t i = 0; i < BOUNDS; i++) {
        within += metrics->within[i];
        buffer_printf(text, "%s_bucket{le=\"%s\"} %llu\n", name, number_format(bounds_s[i], number),
                      (unsigned long long)within);
    }
    buffer_printf(text, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)metrics->decisions);
    buffer_printf(text, "%s_sum %s\n", name, number_format(metrics->decision_s, number));
    buffer_printf(text, "%s_count %llu\n", name, (unsigned long long)metrics->decisions);
}

void metrics_write(struct metrics *metrics, struct buffer *text)
{
    pthread_mutex_lock(&metrics->lock);
    write_trials(metrics, text);
    write_energy(metrics, text);
    write_decisions(metrics, text);
    pthread_mutex_unlock(&metrics->lock);
}
