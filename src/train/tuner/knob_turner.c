/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/knob_turner.h"

#include <math.h>

#include "base/error.h"

static const double mw_per_w = 1e3;

/* Of the highest limit: where a driver names no lowest one, no lower limit is tried. */
static const double lowest_tried_fraction = 0.3;

static int read_w(const struct device *gpu, enum quantity quantity, double *out_w,
                  struct fly_error *out_error)
{
    struct device_reading reading;
    const struct reading *value = &reading.values[quantity];

    device_read(gpu, &clock_real, QUANTITY_BIT(quantity), &reading);
    if (value->state != READING_OK)
        return error_set(out_error, value->state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED : FLY_EREAD,
                         "GPU %u: its %s is not known: %s", gpu->info.index, quantity_facts[quantity].title,
                         reading_state_clause(value->state));
    *out_w = (double)value->value / mw_per_w;
    return 0;
}

/* The range of limits that all GPUs accept. */
static int range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct knob_turner *turner = data;
    struct fly_turner_range common = {.lowest = 0, .highest = INFINITY};

    for (size_t i = 0; i < turner->count; i++) {
        double lowest_w = 0, highest_w = 0;
        int result = read_w(turner->devices[i], QUANTITY_POWER_LIMIT_MIN, &lowest_w, out_error);

        if (result == 0)
            result = read_w(turner->devices[i], QUANTITY_POWER_LIMIT_MAX, &highest_w, out_error);
        if (result < 0)
            return result;
        common.lowest = fmax(common.lowest, lowest_w);
        common.highest = fmin(common.highest, highest_w);
    }
    if (!(common.lowest <= common.highest) || !isfinite(common.highest))
        return error_set(out_error, FLY_EUNSUPPORTED, "there is no limit that all of the GPUs take");
    if (common.lowest <= 0.0)
        common.lowest = lowest_tried_fraction * common.highest;
    turner->highest_power_w = common.highest;
    *out_range = common;
    return 0;
}

static int set(void *data, double limit_w, struct fly_error *out_error)
{
    struct knob_turner *turner = data;
    int64_t limits_mw[DEVICES_MAX] = {0};
    struct fly_error error;
    int result;

    for (size_t i = 0; i < turner->count; i++)
        limits_mw[i] = knob_turner_leaves(turner, i) ? 0 : llround(limit_w * mw_per_w);
    turner->turns++;
    result = knob_set(turner->knob, limits_mw, &error);
    if (turner->fault == 0)
        turner->fault = result;
    if (result < 0 && out_error != NULL)
        *out_error = error;
    return result;
}

static int standing(void *data, double *out_limit_w, struct fly_error *out_error)
{
    const struct knob_turner *turner = data;
    double first_w = NAN, other_w = NAN;
    size_t first = turner->count;

    for (size_t i = 0; i < turner->count; i++) {
        int result = 0;

        if (knob_turner_leaves(turner, i))
            continue;
        result = read_w(turner->devices[i], QUANTITY_POWER_LIMIT, &other_w, out_error);
        if (result < 0)
            return result;
        if (first == turner->count) {
            first = i;
            first_w = other_w;
        }
        if (other_w != first_w)
            return error_set(out_error, FLY_ESTATE,
                             "the limits of GPU %u and GPU %u differ, %g and %g W; give them one, or choose "
                             "GPUs with -i",
                             turner->devices[first]->info.index, turner->devices[i]->info.index, first_w,
                             other_w);
    }
    *out_limit_w = first_w;
    return 0;
}

const struct fly_turner knob_turner = {.range = range, .set = set, .standing = standing};
