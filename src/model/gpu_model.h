/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GPU_MODEL_H
#define FLYBALL_MODEL_GPU_MODEL_H

#include <flyball/power_profile.h>

/*
 * The power-and-step-time model of a GPU: (batch size, power limit, load) -> watts and seconds,
 * for when no GPU is at hand. Nothing that it says was measured.
 *
 *     const struct gpu_shape *shape = gpu_shape_find("v100-like");
 *     struct fly_power_point epoch = gpu_work(shape, &load, 50000.0, 64, 150.0);
 *
 * A batch of b wants
 *
 *     D = idle + (busy - idle) * b / (b + half_busy_batch)         watts
 *
 * and the GPU draws the lesser of D and the limit P. Dynamic power grows about with the cube of
 * the clock, since the voltage follows the frequency. So under a limit below D the GPU runs at
 * the relative clock
 *
 *     f = ((P - idle) / (D - idle))^(1/3)
 *
 * which slows the share of the work that waits for the clock; memory and input keep their speed.
 * n samples take
 *
 *     n * (sample_s + step_s / b) * (clock_share / f + 1 - clock_share)   seconds
 *
 * Accuracy: the V100 power traces published with Zeus (You et al., NSDI '23; 100 .. 250 W in
 * steps of 25 W) have 47 pairs of job and batch size that draw 100 W or more. With idle 70 W and
 * the best clock_share of each pair, the worst slowdown of a pair is 5.7 % off in the median and
 * 19 % at most; the shares of its DeepSpeech2 lie between 0.3 and 1. The model has the right
 * shape; it does not replace measuring.
 *
 * Monotone: a higher limit never takes longer and never draws less. A larger batch never draws
 * less, and never takes longer for the same samples as long as the limit is not below D. Pure;
 * thread-safe; the same bits on every machine.
 */
struct gpu_shape {
    const char *name;
    double idle_w; /* drawn without work, at working clocks; below lowest_limit_w */
    double busy_w; /* wanted by the largest batches */
    double lowest_limit_w;
    double highest_limit_w;
    double limit_step_w; /* between the limits worth trying */
};

/* The work that runs on a GPU. */
struct gpu_load {
    double sample_s;        /* time of a sample at full clock, > 0 */
    double step_s;          /* time of a step besides its samples, at full clock, >= 0 */
    double half_busy_batch; /* the batch size that wants half of the dynamic power, > 0 */
    double clock_share;     /* share of the time at full clock that a lower clock stretches; 0 .. 1 */
};

/*
 * All shapes, ended by a NULL name.
 *
 *     v100-like   limits of 100 .. 250 W in steps of 25 W and up to 250 W drawn, as
 *                 in the traces above (100 .. 250 W set, up to 228 W seen); idle
 *                 70 W stands for what work draws beside its clock: 60 .. 90 W fit
 *                 the slowdowns about as well, though the lightest job draws 35 W
 *
 * The others carry the figures of real boards, so that limits and counters look as they do there.
 * The highest limit is the board power of NVIDIA's data sheet. The lowest is what drivers report
 * on such boards, according to published logs of nvidia-smi; no data sheet states it. `busy_w` is
 * assumed to reach the highest limit; `idle_w` and the steps are assumed.
 *
 *     name        board                 data sheet        lowest limit
 *     v100        V100 PCIe             250 W             100 W, as in the traces above
 *     v100-sxm2   V100 SXM2             300 W             150 W
 *     a40         A40                   300 W             100 W
 *     a100        A100 SXM4 80 GB       400 W             100 W
 *     h100        H100 SXM5 80 GB       700 W             200 W
 */
extern const struct gpu_shape gpu_shapes[];

/* Returns the shape of that name, or NULL. */
const struct gpu_shape *gpu_shape_find(const char *name);

/* The power limits of a shape: lowest, lowest + step, ..., up to the highest. */
unsigned gpu_limit_count(const struct gpu_shape *shape);
double gpu_limit_w(const struct gpu_shape *shape, unsigned index);

/* Returns D: the power that a batch of `batch_size` draws without a limit. */
double gpu_wanted_w(const struct gpu_shape *shape, const struct gpu_load *load, double batch_size);

/*
 * Returns f: the relative clock, above 0 and at most 1, of work that wants `wanted_w`; limit_w
 * above idle_w.
 */
double gpu_clock(const struct gpu_shape *shape, double wanted_w, double limit_w);

/*
 * Returns the mean power and the time of `samples` samples in batches of `batch_size`; limit_w
 * above idle_w.
 */
struct fly_power_point gpu_work(const struct gpu_shape *shape, const struct gpu_load *load, double samples,
                                double batch_size, double limit_w);

#endif
