/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_METRICS_H
#define FLYBALL_SERVE_METRICS_H

#include <flyball/error.h>

#include "base/buffer.h"
#include "serve/route_family.h"
#include "shapes/meaning.h"

/*
 * Figures about trials and decisions since this service started, for Prometheus. The log in the
 * store is the authority; these figures are for graphs, count one instance only, and begin at 0
 * with it.
 *
 * Trials have the labels outcome, training_job and gpu_model; their energy has the last two.
 * Unknown figures are absent: a trial without a known energy adds nothing to the energy, and a
 * job without any known energy has no such series. An unknown GPU model has no label. After
 * METRICS_SERIES_MAX pairs of a job and a GPU model, others are counted as
 * training_job="(other)", which is no valid name of a job.
 */
enum { METRICS_SERIES_MAX = 500 };

struct metrics;

extern const struct quantities metrics_quantities;

int metrics_new(struct metrics **out_metrics, struct fly_error *out_error);
void metrics_free(struct metrics *metrics); /* accepts NULL */

/* Counts an answer that was sent, by its note. `seconds` is how long making it took. Thread-safe. */
void metrics_count(struct metrics *metrics, const struct serve_note *note, double seconds);

/* Appends all figures in Prometheus' text format. Thread-safe. */
void metrics_write(struct metrics *metrics, struct buffer *text);

#endif
