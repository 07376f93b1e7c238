/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PRUNING_H
#define FLYBALL_POLICY_PRUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/bytes.h"

/*
 * Exploration by pruning (You et al., NSDI '23, section 4.4). In each of two rounds the batch
 * sizes are tried from the default downwards and then upwards; a size that does not reach its
 * target ends its direction. Sizes that reached their target are the candidates of the next
 * round, and the cheapest of them is its default. Those left after the last round are the
 * survivors.
 *
 * A plain value over indices of batch sizes; deterministic.
 */
enum { PRUNING_ROUNDS = 2 };

struct pruning {
    size_t count; /* batch sizes */
    unsigned rounds;
    bool *candidate;
    bool *good;     /* those that reached their target in this round */
    unsigned round; /* `rounds` when exploration is over */
    bool upwards;
    bool exhausted; /* a round ended without any good size */
    size_t start;   /* the round's default */
    size_t awaited; /* the size to try next, until `round` is `rounds` or `exhausted` is set */
    size_t best;    /* the cheapest good size of this round */
    double best_cost_j;
};

/* Begins with all `count` sizes as candidates, for PRUNING_ROUNDS. Returns whether the arena had room. */
bool pruning_init(struct pruning *pruning, size_t count, size_t start, struct arena *arena);

static inline bool pruning_over(const struct pruning *pruning)
{
    return pruning->round == pruning->rounds || pruning->exhausted;
}

/* Records that the awaited size reached its target at this cost, or did not reach it. */
void pruning_observe(struct pruning *pruning, bool reached, double cost_j);

/* Removes the sizes from `first` on from the candidates; unlike a failure, that does not end the way down. */
void pruning_exclude(struct pruning *pruning, size_t first);

/* Removes that size from the candidates; the search goes on with the size behind it. */
void pruning_drop(struct pruning *pruning, size_t batch);

/*
 * Write the state as bytes, and read it back into one initialised in the same way; false for
 * impossible bytes.
 */
void pruning_save(const struct pruning *pruning, struct buffer *bytes);
bool pruning_load(struct pruning *pruning, struct bytes_reader *bytes);

#endif
