/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_OWN_KNOBS_H
#define FLYBALL_TRAIN_TUNER_OWN_KNOBS_H

#include <flyball/tuner.h>

#include "knob/knob.h"

/*
 * The tuner's own knobs, for callers that bring none: they turn the power limits and the clocks of the
 * meter's GPUs, with lock, guard and journal, and never turn a GPU that somebody else controls (knob/knob.h).
 *
 *     struct own_knobs *knobs;
 *
 *     own_knobs_open(meter, &knobs, out_error);
 *     options.turner = &own_limit_turner;      or own_clock_turner, own_workload_turner
 *     options.turner_data = knobs;
 *     ...
 *     own_knobs_close(knobs);
 *
 * The meter must outlive the knobs. After a fork the child's copy does nothing.
 */
struct own_knobs;
extern const struct fly_turner own_limit_turner, own_clock_turner, own_workload_turner;

/*
 * Opens the knobs of all GPUs. Returns FLY_EUNSUPPORTED when there is no GPU to turn, and the codes of
 * knob_open and knob_may_turn: one GPU that may not be turned is enough to fail, since all GPUs run at one
 * limit. The error text says what would help.
 */
int own_knobs_open(struct fly_meter *meter, struct own_knobs **out_knobs, struct fly_error *out_error);

/*
 * For struct idle_options, with the knobs as data. Opens them again, with the errors of own_knobs_open; puts
 * back what was turned and releases the GPUs, after which no turner may be called before the next
 * own_knobs_take.
 */
int own_knobs_take(void *data, struct fly_error *out_error);
void own_knobs_give_back(void *data);

/* Leaves the GPUs alone that this says, in the meter's order; borrowed. */
void own_knobs_leave_alone(struct own_knobs *knobs, const bool *left_alone);

/* Holds a clock of all GPUs; as knob_set_clocks. */
int own_knobs_hold_clock(struct own_knobs *knobs, enum quantity quantity, struct clock_range range,
                         struct fly_error *out_error);

/* Puts back what was turned. Accepts NULL. */
void own_knobs_close(struct own_knobs *knobs);

#endif
