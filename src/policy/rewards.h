/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_REWARDS_H
#define FLYBALL_POLICY_REWARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

/*
 * The rewards observed of one batch size: how many, their mean and their population variance, of
 * all or of the newest `window`. Adding one costs the same however many came before (Welford,
 * "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962); with a window
 * it costs a pass over the window.
 */
struct rewards {
    uint64_t seen;
    double mean;     /* of the rewards that count */
    double variance; /* divided by the number of rewards, not by one less */
    double squares;  /* sum of squared distances from the mean; unused with a window */
    double *ring;    /* the newest `window`, or NULL */
    uint32_t window; /* 0: all count */
};

/* Returns whether the arena had room for the window. */
bool rewards_init(struct rewards *rewards, uint32_t window, struct arena *arena);

void rewards_add(struct rewards *rewards, double reward);

/*
 * Write the rewards as bytes, and read them back into rewards just initialised with the same
 * window; false for impossible bytes.
 */
void rewards_save(const struct rewards *rewards, struct buffer *bytes);
bool rewards_load(struct rewards *rewards, struct bytes_reader *bytes);

/* Returns how many rewards count. */
static inline uint64_t rewards_count(const struct rewards *rewards)
{
    return rewards->window > 0 && rewards->seen > rewards->window ? rewards->window : rewards->seen;
}

#endif
