/* SPDX-License-Identifier: Apache-2.0 */
/* Sets ceilings on the clock of all GPUs of a knob. The highest clock stands for no ceiling. */
#include <math.h>

#include "base/error.h"
#include "knob/ceiling.h"
#include "train/tuner/knob_turner.h"

static const double lowest_tried_fraction = 0.4;
enum { TRIED_MAX = 16, LEAST_STEP_MHZ = 60 };

/* The clocks of one GPU: lowest, highest, and the step between clocks near the highest. */
struct clocks {
    int64_t lowest_mhz, highest_mhz, step_mhz;
};

static int read_clocks(const struct device *gpu, struct clocks *out_clocks, struct fly_error *out_error)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;
    int code = device_clocks(gpu, clocks_mhz, DEVICE_CLOCKS_MAX, &count, out_error);

    if (code < 0)
        return code;
    if (count < 2)
        return error_set(out_error, FLY_EUNSUPPORTED, "GPU %u has one clock, and none to choose from",
                         gpu->info.index);
    *out_clocks = (struct clocks){clocks_mhz[count - 1], clocks_mhz[0], clocks_mhz[0] - clocks_mhz[1]};
    return 0;
}

/* The highest power limit of a GPU in W; 0: not known. */
static double highest_power_w(const struct device *gpu)
{
    struct device_reading reading;
    const struct reading *highest = &reading.values[QUANTITY_POWER_LIMIT_MAX];

    device_read(gpu, &clock_real, QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX), &reading);
    return highest->state == READING_OK ? (double)highest->value * 1e-3 : 0.0;
}

/* Chooses a multiple of the GPU's own step, so that the GPU has every clock that is tried. */
static double choose_step(const struct clocks *clocks)
{
    double span = (1.0 - lowest_tried_fraction) * (double)clocks->highest_mhz;
    double wanted = fmax(span / (TRIED_MAX - 1), LEAST_STEP_MHZ);

    return ceil(wanted / (double)clocks->step_mhz) * (double)clocks->step_mhz;
}

static int range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct knob_turner *turner = data;
    struct clocks common = {.lowest_mhz = 0, .highest_mhz = INT64_MAX};
    double power_w = INFINITY;

    for (size_t i = 0; i < turner->count; i++) {
        struct clocks clocks = {.step_mhz = 1};
        int code = read_clocks(turner->devices[i], &clocks, out_error);

        if (code < 0)
            return code;
        if (clocks.lowest_mhz > common.lowest_mhz)
            common.lowest_mhz = clocks.lowest_mhz;
        if (clocks.highest_mhz < common.highest_mhz) {
            common.highest_mhz = clocks.highest_mhz;
            common.step_mhz = clocks.step_mhz;
        }
        power_w = fmin(power_w, highest_power_w(turner->devices[i]));
    }
    if (turner->count == 0 || common.lowest_mhz > common.highest_mhz)
        return error_set(out_error, FLY_EUNSUPPORTED, "there is no clock that all of the GPUs have");
    turner->highest_mhz = common.highest_mhz;
    turner->highest_power_w = power_w;
    *out_range = (struct fly_turner_range){
        .lowest = (double)common.lowest_mhz,
        .highest = (double)common.highest_mhz,
        .step = choose_step(&common),
        .lowest_tried = lowest_tried_fraction * (double)common.highest_mhz,
        .highest_power_w = power_w,
    };
    return 0;
}

static int set(void *data, double ceiling_mhz, struct fly_error *out_error)
{
    struct knob_turner *turner = data;
    int64_t wanted_mhz = llround(ceiling_mhz), ceilings_mhz[DEVICES_MAX] = {0};
    struct fly_error error;
    int code;

    for (size_t i = 0; i < turner->count; i++)
        ceilings_mhz[i] = knob_turner_leaves(turner, i)       ? 0
                          : wanted_mhz >= turner->highest_mhz ? KNOB_NO_CEILING
                                                              : wanted_mhz;
    turner->turns++;
    turner->clock_turns++;
    code = knob_set_ceilings(turner->knob, ceilings_mhz, &error);
    if (turner->clock_fault == 0)
        turner->clock_fault = code;
    if (code < 0 && out_error != NULL)
        *out_error = error;
    return code;
}

/* The ceiling that was set, unless a GPU shows that it does not hold. */
static int standing(void *data, double *out_ceiling_mhz, struct fly_error *out_error)
{
    const struct knob_turner *turner = data;
    int64_t standing_mhz = turner->highest_mhz;

    for (size_t i = 0; i < turner->count; i++) {
        const struct knob_report *report = knob_report(turner->knob, i);
        int64_t clock_mhz = report->found_clock_mhz;

        if (report->state == KNOB_FOREIGN && clock_mhz == 0) /* another knob of it */
            return error_set(out_error, report->error.code, "%s", report->error.text);
        if (report->ceiling_mhz == 0 || knob_turner_leaves(turner, i))
            continue;
        standing_mhz = report->ceiling_mhz;
        if (clock_mhz != 0 ||
            !ceiling_may_stand(turner->devices[i], QUANTITY_CLOCK_CEILING, report->ceiling_mhz, &clock_mhz)) {
            standing_mhz = clock_mhz;
            break;
        }
    }
    *out_ceiling_mhz = (double)standing_mhz;
    return 0;
}

const struct fly_turner clock_turner = {.range = range, .set = set, .standing = standing};
