/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/curve.h"

#include <math.h>

#include "base/math/portable_math.h"

size_t curve_positions(uint64_t recurrences, size_t most, uint64_t *positions)
{
    size_t dense = most / 2, sparse = most - dense;
    double ratio = portable_log((double)recurrences / (double)dense);

    if (recurrences <= most) {
        for (size_t i = 0; i < recurrences; i++)
            positions[i] = i + 1;
        return recurrences;
    }
    for (size_t i = 0; i < dense; i++)
        positions[i] = i + 1;
    for (size_t i = 1; i < sparse; i++) {
        double at = floor((double)dense * portable_exp(ratio * (double)i / (double)sparse));
        uint64_t next = positions[dense + i - 2] + 1;

        positions[dense + i - 1] = at > (double)next ? (uint64_t)at : next;
    }
    positions[most - 1] = recurrences;
    return most;
}

bool curve_init(struct curve *curve, struct arena *arena, const uint64_t *positions, size_t count,
                enum curve_extent extent)
{
    *curve = (struct curve){.positions = positions, .count = count};
    curve->regret = arena_alloc(arena, count, sizeof curve->regret[0]);
    if (extent == CURVE_TOTALS) {
        curve->totals = arena_alloc(arena, count, sizeof curve->totals[0]);
        curve->dear = arena_alloc(arena, count, sizeof curve->dear[0]);
        curve->slowness = arena_alloc(arena, count, sizeof curve->slowness[0]);
    }
    if (extent == CURVE_KNOBS) {
        curve->batch = arena_alloc(arena, count, sizeof curve->batch[0]);
        curve->limit_w = arena_alloc(arena, count, sizeof curve->limit_w[0]);
    }
    return curve->regret != NULL &&
           (extent != CURVE_TOTALS ||
            (curve->totals != NULL && curve->dear != NULL && curve->slowness != NULL)) &&
           (extent != CURVE_KNOBS || (curve->batch != NULL && curve->limit_w != NULL));
}

void curve_take(struct curve *curve, const struct curve_sample *sample)
{
    size_t at = curve->taken;

    if (at == curve->count || curve->positions[at] != sample->completed)
        return;
    curve->regret[at] = sample->regret;
    if (curve->totals != NULL) {
        curve->totals[at] = *sample->totals;
        curve->dear[at] = (uint8_t)sample->dear;
        curve->slowness[at] = sample->slowness;
    }
    if (curve->batch != NULL) {
        curve->batch[at] = (uint32_t)sample->last->batch;
        curve->limit_w[at] = sample->last->power_limit_w;
    }
    curve->taken++;
}
