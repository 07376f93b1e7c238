/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GPU_FIT_H
#define FLYBALL_MODEL_GPU_FIT_H

#include <stddef.h>

#include <flyball/error.h>
#include <flyball/power_profile.h>

#include "model/gpu_model.h"

/*
 * Fits the model of a GPU (gpu_model.h) to a power profile that was measured: which board and which
 * work would have given it.
 *
 *     struct gpu_fit fit;
 *
 *     code = gpu_fit_of(points, count, &fit, out_error);
 *     point = gpu_fit_at(&fit, 150.0);      the same work under 150 W
 *
 * Nine parameters are chosen such that the errors of time and of energy at all limits are small:
 * static power, voltage floor and lowest clock of the board; wanted power and nature of the work.
 * The error counts as a logarithm, and more than with its square where it exceeds what the profile's
 * own scatter explains. Where the points leave a parameter open, a usual value is preferred, so the
 * parameters by themselves are no measurements. Within the limits of the profile the fit says
 * what was measured, less its scatter; outside it is a guess. Deterministic: simplex searches from
 * fixed starts, some 13,000 evaluations. Pure; thread-safe.
 */
enum { GPU_FIT_POINTS_MIN = 3, GPU_FIT_POINTS_MAX = 256 };

struct gpu_fit {
    struct gpu_shape shape; /* its name is NULL, its idle power the static one; limits as measured */
    struct gpu_nature nature;
    double wanted_w;     /* at full clock, in the heaviest phase */
    double full_clock_s; /* time of what the points' time is of, at full clock */
};

/*
 * How far a profile is from one that a board could have: the largest share by which a higher limit
 * takes longer than a lower one, or draws less; and by which limits differ at all that are too high
 * to bind, half as high again as the greatest power.
 */
struct gpu_scatter {
    double time, power;
};

/*
 * FLY_EUSAGE for fewer than GPU_FIT_POINTS_MIN limits or more than GPU_FIT_POINTS_MAX points, for a
 * number that is not finite and above 0, and for a limit that occurs twice. The points may be in any
 * order; power is that of one GPU.
 */
int gpu_fit_of(const struct fly_power_point *points, size_t count, struct gpu_fit *out_fit,
               struct fly_error *out_error);

/* What the fit says of a limit. */
struct fly_power_point gpu_fit_at(const struct gpu_fit *fit, double limit_w);

struct gpu_scatter gpu_fit_scatter(const struct fly_power_point *points, size_t count);

#endif
