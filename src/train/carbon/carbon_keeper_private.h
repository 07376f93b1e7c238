/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_KEEPER_PRIVATE_H
#define FLYBALL_TRAIN_CARBON_CARBON_KEEPER_PRIVATE_H

#include <pthread.h>

#include "train/account/carbon_counter.h"
#include "train/carbon/carbon_feed.h"
#include "train/carbon/carbon_keeper.h"

/*
 * The inside of carbon_keeper.h: carbon_keeper.c is what the training's thread calls,
 * carbon_keeper_thread.c the keeper's own. They meet at one lock, which is held for a look at the meter at
 * most. Only the own thread writes to the disk; what it has not written yet waits in the slicer.
 */

struct carbon_keeper {
    uint64_t forks;
    const struct clock *clock;
    bool threaded;
    pthread_t thread;
    struct carbon_feed *feed; /* owned */
    char path[LEDGER_PATH_MAX];
    struct carbon_ledger ledger; /* of whoever writes: the thread, or without one the owner */

    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t wake;
    bool stopping, to_write;
    bool ended, left; /* the thread has; nobody waits for that */
    struct carbon_counter count;
    struct fly_power_point points[CARBON_POINTS_MAX]; /* to be written; none: point_count 0 */
    size_t point_count;
    uint64_t profiles, written, refused;
    double written_j;
    char trouble[FLY_ERROR_TEXT_MAX]; /* with the ledger; "" for none */
};

/* All that can be written; where something cannot, the rest waits. */
void keeper_write_all(struct carbon_keeper *keeper);

/* Cuts at the borders that have passed, and writes. */
void keeper_turn(struct carbon_keeper *keeper);

/* False where the system lets no thread be started. */
bool keeper_start_thread(struct carbon_keeper *keeper);

/*
 * With the lock held, which is given back: lets the thread write the last line. False where the disk holds it
 * up: then it is left to itself, the keeper is its own, and the summary says so.
 */
bool keeper_end_thread(struct carbon_keeper *keeper, struct carbon_keeper_summary *out_summary);

/* Without the feed. */
void keeper_free(struct carbon_keeper *keeper);

#endif
