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
    *pruning = (struct pruning){.count = count, .rounds = PRUNING_ROUNDS};
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

/* Returns the nearest candidate below or above; `count` if there is none. */
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

/* Goes on with `next` in this direction; or upwards from the start; or with the next round. */
static void move_on(struct pruning *pruning, size_t next)
{
    if (next == pruning->count && !pruning->upwards) {
        pruning->upwards = true;
        next = neighbour(pruning, pruning->start, true);
    }
    if (next == pruning->count)
        round_end(pruning);
    else
        pruning->awaited = next;
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
    move_on(pruning, next);
}

void pruning_exclude(struct pruning *pruning, size_t first)
{
    for (size_t i = first; i < pruning->count; i++)
        pruning->candidate[i] = pruning->good[i] = false;
    /*
     * This may end a round, and the next round may begin with a size that reached its target before
     * and is now excluded.
     */
    while (!pruning_over(pruning) && pruning->awaited >= first)
        move_on(pruning, pruning->upwards ? pruning->count : neighbour(pruning, pruning->awaited, false));
}

void pruning_drop(struct pruning *pruning, size_t batch)
{
    pruning->candidate[batch] = pruning->good[batch] = false;
    while (!pruning_over(pruning) && !pruning->candidate[pruning->awaited])
        move_on(pruning, neighbour(pruning, pruning->awaited, pruning->upwards));
}

void pruning_save(const struct pruning *pruning, struct buffer *bytes)
{
    bytes_put_u64(bytes, pruning->round);
    bytes_put_u64(bytes, pruning->upwards);
    bytes_put_u64(bytes, pruning->exhausted);
    bytes_put_u64(bytes, pruning->start);
    bytes_put_u64(bytes, pruning->awaited);
    bytes_put_u64(bytes, pruning->best);
    bytes_put_double(bytes, pruning->best_cost_j);
    for (size_t i = 0; i < pruning->count; i++)
        bytes_put_u64(bytes, (uint64_t)pruning->candidate[i] << 1 | pruning->good[i]);
}

bool pruning_load(struct pruning *pruning, struct bytes_reader *bytes)
{
    pruning->round = (unsigned)bytes_up_to(bytes, pruning->rounds);
    pruning->upwards = bytes_bool(bytes);
    pruning->exhausted = bytes_bool(bytes);
    pruning->start = (size_t)bytes_up_to(bytes, pruning->count - 1);
    pruning->awaited = (size_t)bytes_up_to(bytes, pruning->count - 1);
    pruning->best = (size_t)bytes_up_to(bytes, pruning->count - 1);
    pruning->best_cost_j = bytes_double(bytes);
    for (size_t i = 0; i < pruning->count; i++) {
        uint64_t marks = bytes_up_to(bytes, 3);

        pruning->candidate[i] = (marks & 2) != 0;
        pruning->good[i] = (marks & 1) != 0;
    }
    return !bytes->failed;
}
