/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POWER_KNOB_H
#define FLYBALL_POWER_KNOB_H

#include <flyball/error.h>
#include <flyball/meter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One power limit for all GPUs of a meter, and bounds of their clocks, for programs that decide themselves
 * which.
 *
 *     struct fly_power_knob *knob;
 *     double lowest_w, highest_w;
 *
 *     if (fly_power_knob_open(meter, &knob, &error) < 0)
 *         ...
 *     fly_power_knob_range(knob, &lowest_w, &highest_w, &error);
 *     fly_power_knob_set(knob, 0.7 * highest_w, &error);
 *     train();
 *     fly_power_knob_close(knob);
 *
 * What stood at the open is put back by the close, and by a guard process if this process is killed
 * (docs/howto/power.md). A GPU that somebody else controls is never turned: each GPU has a lock. To find the
 * best limit, use flyball/tuner.h.
 *
 * One thread at a time per handle. After fork the child's copy is inert: its functions return FLY_ESTATE, and
 * closing it only frees memory.
 */
struct fly_power_knob;

/*
 * Takes the GPUs of the meter, and sets nothing. FLY_EUNSUPPORTED for a meter without GPUs or with one whose
 * limit cannot be set, FLY_EPERM without the permission, FLY_ESTATE for a GPU that somebody else controls,
 * FLY_ENOMEM; the text says what would help. The meter is borrowed: close it later.
 */
FLY_API int fly_power_knob_open(struct fly_meter *meter, struct fly_power_knob **out_knob,
                                struct fly_error *out_error);

/*
 * The lowest and the highest limit that all the GPUs take, in W. FLY_EREAD, FLY_EUNSUPPORTED if there is
 * none.
 */
FLY_API int fly_power_knob_range(struct fly_power_knob *knob, double *out_lowest_w, double *out_highest_w,
                                 struct fly_error *out_error);

/*
 * Sets the limit of each GPU, in W: all of them, or none. FLY_EUSAGE outside a GPU's range, FLY_EPERM,
 * FLY_ESTATE if somebody else has changed one, FLY_EREAD, FLY_EWRITE for the journal.
 */
FLY_API int fly_power_knob_set(struct fly_power_knob *knob, double limit_w, struct fly_error *out_error);

/* The limit in force, in W. FLY_ESTATE if the GPUs differ, FLY_EREAD. */
FLY_API int fly_power_knob_limit(struct fly_power_knob *knob, double *out_limit_w,
                                 struct fly_error *out_error);

/*
 * Holds a clock of each GPU between a floor and a ceiling, in MHz: all GPUs, or none. 0: no floor, no
 * ceiling; with neither, what this knob holds is lifted. The close lifts it, too. FLY_EUSAGE for a clock that
 * a GPU cannot be held to, FLY_EUNSUPPORTED where its driver has no floors or does not hold the memory's
 * clock, FLY_EPERM, FLY_ESTATE if somebody else has set its clocks, as far as the GPU shows it, and for a
 * knob that follows steps.
 */
FLY_API int fly_power_knob_hold_clock(struct fly_power_knob *knob, enum fly_clock clock, uint32_t floor_mhz,
                                      uint32_t ceiling_mhz, struct fly_error *out_error);

/*
 * For a training: from now on a limit stands only while steps come, as a tuner's does. After give_back_s
 * without one (0: the usual of struct fly_tuner_options; INFINITY: never) a thread of the knob's puts the
 * limits of the open back and releases the GPUs, so that others can turn them, until the next step. What is
 * set meanwhile is only noted, and `range` and `limit` answer as of then. Say so before the first set:
 * FLY_ESTATE afterwards, FLY_EUSAGE for a time below 0, and the errors of `range`.
 */
FLY_API int fly_power_knob_follow_steps(struct fly_power_knob *knob, double give_back_s,
                                        struct fly_error *out_error);

/*
 * A step begins. Returns 1 if the limits had been given back, and sets what was set last again; else 0. Where
 * another program has changed a limit or holds a GPU by now, FLY_ESTATE and the errors of `open`, and nothing
 * is set.
 */
FLY_API int fly_power_knob_step_begin(struct fly_power_knob *knob, struct fly_error *out_error);

/* No step comes for now: gives back at once. FLY_ESTATE for a knob that follows no steps. */
FLY_API int fly_power_knob_give_back(struct fly_power_knob *knob, struct fly_error *out_error);

/* Puts the limits of the open back, unless somebody else has changed them since. Accepts NULL. */
FLY_API void fly_power_knob_close(struct fly_power_knob *knob);

#ifdef __cplusplus
}
#endif

#endif
