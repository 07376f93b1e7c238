/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CARBON_GRID_TRUTH_H
#define FLYBALL_SIM_CARBON_GRID_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid/grid_answer.h"

/*
 * The grid's actual figures without gaps, which a simulation accounts with. Where the record has
 * no value, it takes the published forecast of that period, else the line between the neighbours;
 * after the record's end, the value a day before. `known` says that a value is none of these.
 * Only the decisions of `foresight` use it. Immutable once made.
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

/*
 * Covers the first actual period up to `beyond_s` after the last; of an answer without actual values the
 * published ones. FLY_EDATA without any value, FLY_ENOMEM.
 */
int grid_truth_init(struct grid_truth *truth, const struct grid_answer *answer, int64_t beyond_s,
                    const char *name, struct fly_error *out_error);
void grid_truth_deinit(struct grid_truth *truth);

/* Returns the index of the period that holds a moment; after the end, the last one. */
size_t grid_truth_find(const struct grid_truth *truth, double time_s);

#endif
