/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_GRID_TRUTH_H
#define FLYBALL_SIM_CARBON_GRID_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid/grid_answer.h"

/*
 * What a simulation accounts with: the actual figures of the grid, without gaps.
 *
 * Where the record has none, the published forecast of that period stands in, else the
 * line between the neighbours, and after its end the value a day before; `known` says
 * that a value is none of these. Decisions never see it, except those of `foresight`.
 * Immutable once made.
 */
struct truth_period {
    int64_t start_s, end_s;
    double value;
    bool known;
};

struct grid_truth {
    struct truth_period *periods; /* owned; one after the other */
    size_t count;
};

/* From the first actual period to `beyond_s` after the last. FLY_EDATA without two values, FLY_ENOMEM. */
int grid_truth_init(struct grid_truth *truth, const struct grid_answer *answer, int64_t beyond_s,
                    const char *name, struct fly_error *out_error);
void grid_truth_deinit(struct grid_truth *truth);

/* The index of the period that holds a moment; the last one after the end. */
size_t grid_truth_find(const struct grid_truth *truth, double time_s);

#endif
