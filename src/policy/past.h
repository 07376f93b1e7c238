/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PAST_H
#define FLYBALL_POLICY_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "policy/event.h"

/*
 * What was observed elsewhere of the batch sizes of a job: on other hardware, before the job was
 * revised, or by another job. It is brought to a job as an event, by value, so that the job's log
 * alone says what it knew (EVENT_PAST_BROUGHT in event.h).
 *
 * Epochs to the target are independent of the hardware and of what a joule is worth. The cost of
 * an epoch is not, but its shape over batch sizes is similar: only that is used.
 */

/* What differs between there and here. */
enum past_kind {
    PAST_HARDWARE, /* the GPUs alone: what reached its target there does so here */
    PAST_REVISION, /* the script, the data or the hyper-parameters */
    PAST_JOB,      /* it was another job, which the user named */
    PAST_KINDS
};

/* What trials of one batch size showed. */
struct past_tally {
    uint64_t reached;      /* runs that reached their target */
    double mean;           /* of their log epochs */
    double squares;        /* the sum of squared distances of their log epochs from that mean */
    uint64_t stopped;      /* runs that were stopped before */
    double stopped_epochs; /* the most epochs of one of those */
    uint64_t failed;       /* runs that had all their epochs */
    double log_epoch_cost; /* NAN: not known */
};

extern const struct past_tally past_tally_none;

extern const struct bytes_row past_tally_rows[]; /* for bytes_put_rows */
#define PAST_TALLY_ROWS past_tally_rows, 7

/* Adds a trial that ended after so many epochs; one that shows nothing of its batch size is left out. */
void past_tally_take(struct past_tally *tally, enum trial_outcome outcome, double epochs,
                     uint32_t max_epochs);

/* Adds what another tally has of the same batch size; its cost is taken where there is none yet. */
void past_tally_add(struct past_tally *tally, const struct past_tally *more);

/*
 * Returns the log cost of an epoch at its cheapest power limit, from a profile with so many units of work
 * in an epoch; NAN if one is not known. Costs count by eta and max_power_w, as in flyball/cost.h.
 */
double past_log_epoch_cost(const struct fly_power_point *points, size_t count, double units_per_epoch,
                           double eta, double max_power_w);

/* Returns whether a trial was taken in, or a cost. */
bool past_tally_shows(const struct past_tally *tally);

/* Returns whether some trials could have shown it. */
bool past_tally_possible(const struct past_tally *tally);

struct past_batch {
    size_t batch; /* index into job_spec.batches */
    struct past_tally tally;
};

struct past_brought {
    enum past_kind kind;
    const struct past_batch *batches; /* borrowed; each batch size at most once */
    size_t count;
};

#endif
