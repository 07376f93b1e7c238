/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_KEEPER_H
#define FLYBALL_TRAIN_CARBON_CARBON_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/meter.h>

#include "base/clock.h"
#include "train/account/carbon_ledger.h"

/*
 * Keeps the account of a training that follows the grid, and its figures, in two threads, so that no step
 * waits. One cuts the meter's energy at every border of five minutes and writes it to the ledger. The other
 * reads the grid's figures, from the cache at once and from the network when they are due, and hands them
 * over when they have come.
 *
 *     carbon_keeper_open(&options, &keeper, out_error);
 *     carbon_keeper_limit(keeper, limit_w);        a limit stands from now on
 *     carbon_keeper_steps(keeper, 40);             so many more steps
 *     if (carbon_keeper_take(keeper, answers)) ...
 *     carbon_keeper_close(keeper, &summary);       writes the last slice; waits for no network
 *
 * The energy is that of one window of the meter, which stays open and is read again and again, so the slices
 * add up to it (carbon_slicer.h, carbon_counter.h). The meter's `synchronize` is not called. A slice whose
 * GPU energy is not known has null.
 *
 * The threads block all signals. When the ledger cannot be written, the text says why, and figures still
 * come. After a fork the child's copy does nothing. One thread, the training's, calls the functions. It waits
 * for the disk only in open and close, half a second at most for the ledger and two seconds in open for the
 * grid's cache, and never for the network or longer than a reading of the meter.
 */
struct carbon_keeper;

struct carbon_keeper_options {
    const struct clock *clock; /* NULL: clock_real. Without threads if virtual: see carbon_keeper_turn */
    struct fly_meter *meter;   /* borrowed; NULL: energy is not known */
    const char *directory;     /* of ledgers; NULL: the user's own; copied */
    struct ledger_head head;   /* start_s and host are filled in */
    bool cached_only;          /* never asks the network */
    bool rests;                /* counts nothing until carbon_keeper_go */
    double goodbye_s; /* how long to wait for a disk to take the first line, and the last; 0: half a second */
};

/* Opens a keeper. Returns FLY_EUSAGE for an impossible source, FLY_ENOMEM; nothing else is an error here. */
int carbon_keeper_open(const struct carbon_keeper_options *options, struct carbon_keeper **out_keeper,
                       struct fly_error *out_error);

/*
 * For programs that run one after the other under one account, from the first start to the last end: a
 * program starts now; a program has ended. Energy used while the keeper rests counts once it goes on; energy
 * used after the last end does not. Steps told while it rests count as done before.
 */
void carbon_keeper_go(struct carbon_keeper *keeper);
void carbon_keeper_rest(struct carbon_keeper *keeper);

/* A limit stands from now on (NAN: not known): cuts off what was before, for the thread to write. */
void carbon_keeper_limit(struct carbon_keeper *keeper, double limit_w);
void carbon_keeper_steps(struct carbon_keeper *keeper, uint64_t steps);
/* Adds a power profile, measured or read from a file, to the account, which compares with it. */
void carbon_keeper_profile(struct carbon_keeper *keeper, const struct fly_power_point *points, size_t count);

/*
 * Whether figures have come since the last call. If so, stores them in out_answers, NULL for a signal without
 * a source or without figures. The keeper owns them; they stay until the next call. Never blocks.
 */
bool carbon_keeper_take(struct carbon_keeper *keeper, const struct grid_answer *out_answers[CARBON_SIGNALS]);

/* Does what the threads would have done by now: for tests, with a clock that has no threads. */
void carbon_keeper_turn(struct carbon_keeper *keeper);

struct carbon_keeper_summary {
    char path[LEDGER_PATH_MAX];    /* of the ledger; "" for none */
    char text[FLY_ERROR_TEXT_MAX]; /* why there is none, or why figures are missing or old; "" for neither */
    double energy_j;               /* of the GPUs, as written; NAN: partly unknown, or nothing written yet */
    uint64_t slices;
};
struct carbon_keeper_summary carbon_keeper_look(struct carbon_keeper *keeper);

/*
 * Writes the last slice and frees the keeper. If the disk does not answer within half a second, the thread is
 * left running by itself (base/thread/thread_group.h). Accepts NULL.
 */
void carbon_keeper_close(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary);

#endif
