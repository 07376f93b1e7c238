/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_METRICS_H
#define FLYBALL_SERVE_METRICS_H

#include <flyball/error.h>

#include "base/buffer.h"
#include "serve/routes.h"
#include "shapes/meaning.h"

/*
 * What this service has seen of trials and decisions since it started, for Prometheus. The log
 * in the store is what counts; these are figures for graphs, of one instance, and begin at 0 with it.
 *
 * Trials have the labels outcome, training_job and gpu_model, their energy the last two.
 *
 * What is not known is not there: a trial whose energy nobody told adds nothing to the
 * energy, and a job of which no energy is known has no such series. A GPU model that
 * is not known has no label. After METRICS_SERIES_MAX pairs of a job and a GPU model,
 * others are counted as training_job="(other)", which is no job's name.
 */
enum { METRICS_SERIES_MAX = 500 };

struct metrics;

extern const struct quantities metrics_quantities;

int metrics_new(struct metrics **out_metrics, struct fly_error *out_error);
void metrics_free(struct metrics *metrics); /* accepts NULL */

/* An answer was sent: what it was about; `seconds`: what making it took. Thread-safe. */
void metrics_count(struct metrics *metrics, const struct serve_note *note, double seconds);

/* Appends all of it in Prometheus' text format. Thread-safe. */
void metrics_write(struct metrics *metrics, struct buffer *text);

#endif
