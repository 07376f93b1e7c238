/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_AHEAD_H
#define FLYBALL_TRAIN_CARBON_CARBON_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "grid/outlook.h"
#include "policy/carbon/carbon_plan.h"
#include "train/carbon/carbon_keeper.h"

/*
 * The grid's figures as a keeper gives them out, and what they say of the time ahead. All
 * zero to begin with; moments are since 1970.
 */
struct carbon_ahead {
    const struct grid_answer *answers[CARBON_SIGNALS]; /* the keeper's */
    uint64_t mark;                                     /* of what a forecast looks at in them */
    struct grid_outlook outlook;
};

void carbon_ahead_deinit(struct carbon_ahead *ahead);

/* Whether other figures have come; the same ones again ask for no new plan. */
bool carbon_ahead_take(struct carbon_ahead *ahead, struct carbon_keeper *keeper, double date_s);

/*
 * Fills in a question's outlook up to its deadline, in seconds of which `share` are spent in steps:
 * time in which others work goes by without work.
 */
void carbon_ahead_look(struct carbon_ahead *ahead, const struct carbon_objective *objective, double date_s,
                       double share, struct carbon_question *question);

/* What is thought of the current period's intensity; NAN. */
double carbon_ahead_intensity(const struct carbon_ahead *ahead, double date_s);

/* The mean of the past week's actual values of a figure; NAN. */
double carbon_ahead_reference(const struct carbon_ahead *ahead, int signal, double date_s);

#endif
