/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_KEEPER_PRIVATE_H
#define FLYBALL_TRAIN_CARBON_CARBON_KEEPER_PRIVATE_H

#include "base/thread/thread_group.h"
#include "train/account/carbon_counter.h"
#include "train/carbon/carbon_feed.h"
#include "train/carbon/carbon_keeper.h"

/*
 * The inside of carbon_keeper.h: the training's thread calls carbon_keeper.c, the keeper's own thread runs
 * carbon_keeper_thread.c. They share one lock, held at most for a reading of the meter. Only the keeper's
 * thread writes to the disk; what it has not written yet waits in the slicer.
 */

struct carbon_keeper {
    const struct clock *clock;
    double goodbye_s;
    bool threaded;
    struct carbon_feed *feed; /* owned */
    /* Used by the writer only: the thread, or the owner when there is none. */
    struct carbon_ledger ledger;
    struct ledger_head head;
    char *directory; /* owned; NULL: the user's own */

    struct thread_group group; /* its lock guards what follows */
    bool to_write;
    bool opened; /* the ledger is open, or cannot be: `path` or `trouble` says so */
    char path[LEDGER_PATH_MAX];
    struct carbon_counter count;
    struct fly_power_point points[CARBON_POINTS_MAX]; /* still to be written; point_count 0: none */
    size_t point_count;
    uint64_t profiles, written, refused;
    double written_j;
    char trouble[FLY_ERROR_TEXT_MAX]; /* with the ledger; "" for none */
};

/* Makes the ledger. */
void keeper_open_ledger(struct carbon_keeper *keeper);

/* Writes all that can be written; the rest waits. */
void keeper_write_all(struct carbon_keeper *keeper);

/* Cuts at the borders that have passed, and writes. */
void keeper_turn(struct carbon_keeper *keeper);

/* Starts the thread; false when the system allows none. */
bool keeper_start_thread(struct carbon_keeper *keeper);

/* Frees all but the feed of a struct carbon_keeper. */
void keeper_free(void *of);

#endif
