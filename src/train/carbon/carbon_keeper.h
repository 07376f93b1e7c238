/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_KEEPER_H
#define FLYBALL_TRAIN_CARBON_CARBON_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/meter.h>

#include "base/clock.h"
#include "train/account/carbon_ledger.h"

/*
 * What stands beside a training that follows the grid, in two threads of its own, so that
 * no step waits: one cuts the meter's energy at every border of five minutes and writes it
 * to the ledger; the other reads the grid's figures anew, from the cache at once and from
 * the network when they are due, and gives them out when they have come.
 *
 *     carbon_keeper_open(&options, &keeper, out_error);
 *     carbon_keeper_limit(keeper, limit_w);        a limit stands from now on
 *     carbon_keeper_steps(keeper, 40);             so many more steps
 *     if (carbon_keeper_take(keeper, answers)) ...
 *     carbon_keeper_close(keeper, &summary);       writes the last slice; waits for no network
 *
 * Energy is that of one window of the meter, which stays open and is looked at; so slices add up to it
 * (carbon_slicer.h, carbon_energy.h), and the meter's `synchronize` is not called. A slice of which the
 * GPUs' energy is not known has null.
 *
 * Threads block all signals. Where the ledger cannot be written, the text says why, and figures
 * still come. After fork the child's copy is inert. Functions are for one thread, the
 * training's, which writes nothing to the disk but in open and close; none of them waits for the network or
 * longer than a reading of the meter.
 */
struct carbon_keeper;

struct carbon_keeper_options {
    const struct clock
        *clock; /* NULL: clock_real. With a virtual one there are no threads: see carbon_keeper_turn */
    struct fly_meter *meter; /* borrowed; NULL: energy is not known */
    const char *directory;   /* of ledgers; NULL: the user's own; copied */
    struct ledger_head head; /* start_s and host are filled in */
    bool cached_only;        /* never asks the network */
    bool rests;              /* until carbon_keeper_go */
};

/* FLY_EUSAGE for a source that cannot be one, FLY_ENOMEM; nothing else is an error here. */
int carbon_keeper_open(const struct carbon_keeper_options *options, struct carbon_keeper **out_keeper,
                       struct fly_error *out_error);

/*
 * Programs that run one after the other, of one account from the first start to the last end: one starts now,
 * and one has ended. What is used while it rests counts where it goes on, and what is used after the last end
 * does not; steps that are told meanwhile were done before.
 */
void carbon_keeper_go(struct carbon_keeper *keeper);
void carbon_keeper_rest(struct carbon_keeper *keeper);

/* A limit stands from now on (NAN: not known): what was before is cut off and written down. */
void carbon_keeper_limit(struct carbon_keeper *keeper, double limit_w);
void carbon_keeper_steps(struct carbon_keeper *keeper, uint64_t steps);
/* A power profile was measured, or taken from a file: the account compares with it. */
void carbon_keeper_profile(struct carbon_keeper *keeper, const struct fly_power_point *points, size_t count);

/*
 * Whether figures have come since this was asked last; then out_answers hold them, NULL where there is no
 * source or nothing is known. They are the keeper's, and stay until the next call of this. Never blocks.
 */
bool carbon_keeper_take(struct carbon_keeper *keeper, const struct grid_answer *out_answers[CARBON_SIGNALS]);

/* What one thread's turn would do by `now`: for a clock without threads, in tests. */
void carbon_keeper_turn(struct carbon_keeper *keeper);

struct carbon_keeper_summary {
    char path[LEDGER_PATH_MAX];    /* of the ledger; "" for none */
    char text[FLY_ERROR_TEXT_MAX]; /* why there is none, or why figures are missing or old; "" for nothing */
    double
        energy_j; /* of the GPUs, as written down; NAN: some of it is not known, or nothing is written yet */
    uint64_t slices;
};
struct carbon_keeper_summary carbon_keeper_look(struct carbon_keeper *keeper);

/* Writes the last slice. A disk that does not answer is waited for half a second, and the thread is then left
 * to itself (base/thread/left_threads.h). Accepts NULL. */
void carbon_keeper_close(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary);

#endif
