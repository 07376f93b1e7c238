/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_PRUNING_H
#define FLYBALL_POLICY_PRUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/bytes.h"

/*
 * Exploration by pruning (You et al., NSDI '23, section 4.4): in each of two
 * rounds the batch sizes are tried from the default downwards and then upwards;
 * a size that does not reach its target ends its direction. Sizes that reached
 * it are the next round's candidates, the cheapest of them its default; those
 * left after the last round are the survivors.
 *
 * A plain value over indices of batch sizes; deterministic.
 */
enum { PRUNING_ROUNDS = 2 };

struct pruning {
    size_t count; /* batch sizes */
    unsigned rounds;
    bool *candidate;
    bool *good;     /* reached its target in this round */
    unsigned round; /* `rounds` when exploration is over */
    bool upwards;
    bool exhausted; /* a round ended without one good size */
    size_t start;   /* the round's default */
    size_t awaited; /* the size to try, until `round` is `rounds` or `exhausted` */
    size_t best;    /* cheapest good size of this round */
    double best_cost_j;
};

/* Begins with all `count` sizes as candidates, for PRUNING_ROUNDS. Returns whether the arena had room. */
bool pruning_init(struct pruning *pruning, size_t count, size_t start, struct arena *arena);

static inline bool pruning_over(const struct pruning *pruning)
{
    return pruning->round == pruning->rounds || pruning->exhausted;
}

/* The awaited size was tried: it reached its target at this cost, or did not. */
void pruning_observe(struct pruning *pruning, bool reached, double cost_j);

/* The sizes from `first` on are no candidates any more; unlike a failure, that does not end the way down. */
void pruning_exclude(struct pruning *pruning, size_t first);

/* That size is no candidate any more; the way goes on behind it. */
void pruning_drop(struct pruning *pruning, size_t batch);

/* As bytes, and back into one just initialised alike; false for what cannot be. */
void pruning_save(const struct pruning *pruning, struct buffer *bytes);
bool pruning_load(struct pruning *pruning, struct bytes_reader *bytes);

#endif
