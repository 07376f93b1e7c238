/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pruning.h"

#include <math.h>
#include <string.h>

static void round_begin(struct pruning *pruning, size_t start)
{
    memset(pruning->good, 0, pruning->count * sizeof pruning->good[0]);
    pruning->start = pruning->awaited = start;
    pruning->upwards = false;
    pruning->best_cost_j = INFINITY;
}

bool pruning_init(struct pruning *pruning, size_t count, size_t start, struct arena *arena)
{
    *pruning = (struct pruning){.count = count};
    pruning->candidate = arena_alloc(arena, count, sizeof pruning->candidate[0]);
    pruning->good = arena_alloc(arena, count, sizeof pruning->good[0]);
    if (pruning->candidate == NULL || pruning->good == NULL)
        return false;
    memset(pruning->candidate, true, count * sizeof pruning->candidate[0]);
    round_begin(pruning, start);
    return true;
}

static void round_end(struct pruning *pruning)
{
    memcpy(pruning->candidate, pruning->good, pruning->count * sizeof pruning->good[0]);
    if (isinf(pruning->best_cost_j)) {
        pruning->exhausted = true;
        return;
    }
    pruning->round++;
    round_begin(pruning, pruning->best);
}

/* The nearest candidate below or above; `count` when there is none. */
static size_t neighbour(const struct pruning *pruning, size_t from, bool upwards)
{
    if (upwards) {
        while (++from < pruning->count && !pruning->candidate[from])
            continue;
        return from;
    }
    while (from-- > 0) {
        if (pruning->candidate[from])
            return from;
    }
    return pruning->count;
}

void pruning_observe(struct pruning *pruning, bool reached, double cost_j)
{
    size_t next = pruning->count;

    if (reached) {
        pruning->good[pruning->awaited] = true;
        if (cost_j < pruning->best_cost_j) {
            pruning->best_cost_j = cost_j;
            pruning->best = pruning->awaited;
        }
        next = neighbour(pruning, pruning->awaited, pruning->upwards);
    }
    if (next == pruning->count && !pruning->upwards) {
        pruning->upwards = true;
        next = neighbour(pruning, pruning->start, true);
    }
    if (next == pruning->count)
        round_end(pruning);
    else
        pruning->awaited = next;
}
