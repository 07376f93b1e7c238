/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GPU_MODEL_H
#define FLYBALL_MODEL_GPU_MODEL_H

#include <stdbool.h>

#include <flyball/power_profile.h>

/*
 * The power-and-step-time model of a GPU: (batch size, power limit, load) -> watts and seconds,
 * for when no GPU is at hand. Nothing that it says was measured; gpu_fit.h fits it to what was.
 *
 *     const struct gpu_shape *shape = gpu_shape_find("v100-like");
 *     struct fly_power_point epoch = gpu_work(shape, &load, 50000.0, 64, 150.0);
 *
 * A batch of b wants
 *
 *     D = idle + (busy - idle) * b / (b + half_busy_batch)         watts
 *
 * Of this a part S, the static power, is drawn at any clock: the idle power, and what the board's
 * static power is above it in proportion to the work. The rest is dynamic: it grows with clock and
 * voltage as C V^2 f. The voltage follows the clock down to the voltage floor f0; below it the
 * voltage no longer falls. At the clock f, relative to the highest,
 *
 *     S = idle + (static - idle) * (D - idle) / (busy - idle)      watts
 *     P(f) = S + (D - S) * f * max(f, f0)^2                        watts
 *
 * Under a limit below D the GPU runs at the clock at which P(f) is the limit: the cube root above
 * the floor, a straight line below it, on which the clock goes to 0 as the limit nears S. So
 * energy over the limit has its least value at the floor or above it, and a low limit costs time
 * and energy. A GPU does not run below its lowest clock; a limit that would need less is exceeded.
 *
 * A lower clock stretches the time of the work by
 *
 *     clock_share / f + (1 - clock_share) * max(1, memory_clock / f)
 *
 * since a part waits for the clock always, and the rest, which waits for memory, only where the
 * clock is below memory_clock. Work may have lighter phases, each as long as the others, that want
 * from D down to 1 - power_spread of its dynamic part; the limit binds in some of them only.
 * And it may wait for input for a share wait_share of its time, at static power; of this wait a slower
 * clock uses up wait_hidden before the work takes longer.
 *
 * Monotone: a higher limit never takes longer, and without waits never draws less. A larger batch
 * never draws less, and never takes longer for the same samples as long as the limit is not below
 * D. Pure; thread-safe; the same bits on every machine.
 */
struct gpu_shape {
    const char *name;
    double idle_w;   /* drawn without work; below lowest_limit_w */
    double static_w; /* of the busiest work; idle_w or more, below lowest_limit_w */
    double busy_w;   /* wanted by the largest batches */
    double lowest_limit_w;
    double highest_limit_w;
    double limit_step_w; /* between the limits worth trying */
    double floor_clock;  /* f0; 0: the voltage falls with the clock all the way */
    double lowest_clock; /* to which a limit brings it; 0: none */
};

/* How work answers to the clock. All shares are 0 .. 1; 0 leaves the effect out. */
struct gpu_nature {
    double clock_share;  /* of the time at full clock that any lower clock stretches */
    double memory_clock; /* relative clock below which the rest stretches too */
    double power_spread; /* of the dynamic power, between the heaviest phase and the lightest */
    double wait_share;   /* of the time at full clock; below 1 */
    double wait_hidden;  /* of the wait */
};

/* The work that runs on a GPU. */
struct gpu_load {
    double sample_s;        /* time of a sample at full clock, > 0 */
    double step_s;          /* time of a step besides its samples, at full clock, >= 0 */
    double half_busy_batch; /* the batch size that wants half of the dynamic power, > 0 */
    struct gpu_nature nature;
};

/*
 * All shapes, ended by a NULL name.
 *
 *     v100-like   limits of 100 .. 250 W in steps of 25 W and up to 250 W drawn, as in the V100 traces
 *                 published with Zeus (You et al., NSDI '23); S is 70 W and the voltage has no floor.
 *                 Simulations of made-up traces rest on it, so it never changes. Of the 47 pairs of
 *                 job and batch size there that draw 100 W or more, with the best clock_share of each
 *                 pair, the worst slowdown is 5.7 % off in the median and 19 % at most; the shares of
 *                 DeepSpeech2 lie between 0.3 and 1.
 *
 * The others carry the figures of real boards, so that limits and counters look as they do there.
 * The highest limit is the board power of NVIDIA's data sheet. The lowest is what drivers report
 * on such boards, according to published logs of nvidia-smi; no data sheet states it. `busy_w` is
 * assumed to reach the highest limit.
 *
 *     name        board                 data sheet        lowest limit
 *     v100        V100 PCIe             250 W             100 W, as in the traces above
 *     v100-sxm2   V100 SXM2             300 W             150 W
 *     a40         A40                   300 W             100 W
 *     a100        A100 SXM4 80 GB       400 W             100 W
 *     h100        H100 SXM5 80 GB       700 W             200 W
 *     h200        H200 SXM5 141 GB      700 W             200 W, as of an H100
 *     gh200       GPU of a GH200        900 W, a log      200 W, as of an H100
 *     b200        B200 SXM6 180 GB      1000 W            200 W, assumed
 *
 * Static power and voltage floor of v100 and a40 are near the middle of the fits to recorded
 * trainings (docs/howto/emulator.md); those of the others, idle powers, lowest clocks and steps are assumed.
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
 * above idle_w, and above static_w for a shape without a lowest clock.
 */
double gpu_clock(const struct gpu_shape *shape, double wanted_w, double limit_w);

/* Returns P(f): the power of work that wants `wanted_w` at full clock, at the relative clock `clock`. */
double gpu_power_w(const struct gpu_shape *shape, double wanted_w, double clock);

/* Returns S: the static power of work that wants `wanted_w`. */
double gpu_static_w(const struct gpu_shape *shape, double wanted_w);

/* What bounds the clock of work that wants `wanted_w`. */
struct gpu_bounds {
    double wanted_w, limit_w;
    double ceiling; /* relative clock that locks or heat allow, above 0 and at most 1 */
};

/* How work runs within bounds. */
struct gpu_pace {
    double power_w;  /* mean */
    double clock;    /* mean over the time */
    double slowdown; /* time, relative to that at full clock: 1 or more */
    bool capped;     /* the limit holds the clock down, in some phase at least */
};
struct gpu_pace gpu_pace_of(const struct gpu_shape *shape, const struct gpu_nature *nature,
                            const struct gpu_bounds *bounds);

/*
 * Returns the mean power and the time of `samples` samples in batches of `batch_size`; limit_w
 * as for gpu_clock.
 */
struct fly_power_point gpu_work(const struct gpu_shape *shape, const struct gpu_load *load, double samples,
                                double batch_size, double limit_w);

#endif
