/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_AHEAD_H
#define FLYBALL_TRAIN_CARBON_CARBON_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "grid/outlook.h"
#include "policy/carbon/carbon_plan.h"
#include "train/carbon/carbon_keeper.h"

/*
 * The grid's figures from a keeper, and what they say of the time ahead. Start with all zeros; moments are
 * seconds since 1970.
 */
struct carbon_ahead {
    const struct grid_answer *answers[CARBON_SIGNALS]; /* owned by the keeper */
    uint64_t mark;                                     /* checksum of what a forecast uses of them */
    struct grid_outlook outlook;
};

void carbon_ahead_deinit(struct carbon_ahead *ahead);

/* Takes the keeper's newest figures; returns whether they differ: the same figures need no new plan. */
bool carbon_ahead_take(struct carbon_ahead *ahead, struct carbon_keeper *keeper, double date_s);

/*
 * Fills in a question's outlook up to its deadline, in seconds spent in steps: steps take `share` of the
 * time, and the rest passes without work.
 */
void carbon_ahead_look(struct carbon_ahead *ahead, const struct carbon_objective *objective, double date_s,
                       double share, struct carbon_question *question);

/* The assumed intensity of the current period; NAN: not known. */
double carbon_ahead_intensity(const struct carbon_ahead *ahead, double date_s);

/* The mean of a figure's actual values in the past week; NAN: not known. */
double carbon_ahead_reference(const struct carbon_ahead *ahead, int signal, double date_s);

#endif
