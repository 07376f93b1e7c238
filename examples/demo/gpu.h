/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_GPU_H
#define FLYBALL_EXAMPLES_DEMO_GPU_H

#include <flyball/meter.h>
#include <flyball/tuner.h>

/*
 * The GPU that the demo trains on: seconds and watts of a load far heavier than the network, about
 * that of a large convolutional one. In virtual time, so that the same steps give the same figures.
 *
 * A batch of b wants
 *
 *     D = idle + (busy - idle) * b / (b + half_busy_batch)         watts
 *
 * and takes sample_s * b + step_s. Under a limit L below D the GPU draws L and runs at the clock
 * ((L - idle) / (D - idle))^(1/3), which stretches clock_share of the time. Limits, powers and a
 * clock_share of 0.65 are like those of DeepSpeech2 on a V100, in the traces published with Zeus
 * (You et al., NSDI '23). `flyball sim` and the emulator have the whole model.
 */
enum { GPU_LIMITS = 7, GPU_LOWEST_W = 100, GPU_HIGHEST_W = 250, GPU_LIMIT_STEP_W = 25 };

extern const char gpu_shape_name[];

/* Returns how so many samples in batches of that size are worked on under a limit. Pure. */
struct fly_virtual_work gpu_work(double clock_share, double samples, uint32_t batch_size, double limit_w);

/* One such GPU: its meter, and its limit, which gpu_turner sets. For one thread. */
struct gpu {
    double clock_share; /* of the load */
    double limit_w;
    struct fly_meter *meter; /* owned */
};

/* Sets the limit; its data is the GPU. */
extern const struct fly_turner gpu_turner;

int gpu_open(struct gpu *gpu, double clock_share, struct fly_error *out_error);
void gpu_close(struct gpu *gpu);

#endif
