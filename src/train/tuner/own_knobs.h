/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_OWN_KNOBS_H
#define FLYBALL_TRAIN_TUNER_OWN_KNOBS_H

#include <flyball/tuner.h>

/*
 * The tuner's knobs where the caller brings none: the limits of the meter's GPUs, or their clocks, with
 * lock, guard and journal, and never on somebody else's GPU (knob/knob.h).
 *
 *     struct own_knobs *knobs;
 *
 *     own_knobs_open(meter, FLY_TUNER_POWER_LIMIT, &knobs, out_error);
 *     options.turner = &own_knobs_turner;
 *     options.turner_data = knobs;
 *     ...
 *     own_knobs_close(knobs);
 *
 * The meter has to outlive them. After fork the child's copy is inert.
 */
struct own_knobs;
extern const struct fly_turner own_knobs_turner;

/*
 * FLY_EUNSUPPORTED without a GPU to turn, and the codes of knob_open and knob_may_turn: one GPU
 * that is not ours is enough, for all run at one limit. The text says what would help.
 */
int own_knobs_open(struct fly_meter *meter, enum fly_tuner_knob knob, struct own_knobs **out_knobs,
                   struct fly_error *out_error);

/* What was turned is turned back. Accepts NULL. */
void own_knobs_close(struct own_knobs *knobs);

#endif
