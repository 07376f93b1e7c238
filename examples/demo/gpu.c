/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/gpu.h"

#include <math.h>
#include <stdio.h>

#include "demo/portable.h"

static const double idle_w = 70.0, busy_w = 250.0, sample_s = 2.5e-3, step_s = 40e-3, half_busy_batch = 8.0;

const char gpu_shape_name[] = "v100-like";

struct fly_virtual_work gpu_work(double clock_share, double samples, uint32_t batch_size, double limit_w)
{
    double wanted_w = idle_w + (busy_w - idle_w) * batch_size / (batch_size + half_busy_batch);
    double full_clock_s = samples * (sample_s + step_s / batch_size), clock = 1.0;
    bool capped = limit_w < wanted_w;

    if (capped)
        clock = same_exp(same_log((limit_w - idle_w) / (wanted_w - idle_w)) / 3.0);
    return (struct fly_virtual_work){.time_s = full_clock_s * clock_share / clock +
                                               full_clock_s * (1.0 - clock_share),
                                     .power_w = capped ? limit_w : wanted_w,
                                     .busy = true,
                                     .capped = capped};
}

static int gpu_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    *out_range =
        (struct fly_turner_range){.lowest = GPU_LOWEST_W, .highest = GPU_HIGHEST_W, .step = GPU_LIMIT_STEP_W};
    return 0;
}

static int gpu_set(void *data, double setting, struct fly_error *out_error)
{
    if (setting >= GPU_LOWEST_W && setting <= GPU_HIGHEST_W) {
        ((struct gpu *)data)->limit_w = setting;
        return 0;
    }
    if (out_error != NULL) {
        out_error->code = FLY_EUSAGE;
        snprintf(out_error->text, sizeof out_error->text, "limit %g W: the GPU takes %d to %d W", setting,
                 GPU_LOWEST_W, GPU_HIGHEST_W);
    }
    return FLY_EUSAGE;
}

static int gpu_standing(void *data, double *out_setting, struct fly_error *out_error)
{
    (void)out_error;
    *out_setting = ((const struct gpu *)data)->limit_w;
    return 0;
}

const struct fly_turner gpu_turner = {.range = gpu_range, .set = gpu_set, .standing = gpu_standing};

int gpu_open(struct gpu *gpu, double clock_share, struct fly_error *out_error)
{
    *gpu = (struct gpu){.clock_share = clock_share, .limit_w = GPU_HIGHEST_W};
    return fly_meter_open_virtual("Emulated v100-like", idle_w, &gpu->meter, out_error);
}

void gpu_close(struct gpu *gpu)
{
    fly_meter_close(gpu->meter);
}
