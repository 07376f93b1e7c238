/* SPDX-License-Identifier: Apache-2.0 */
/* A meter of a GPU that the caller computes, with a clock that only fly_meter_pass moves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "meter/meter_handle.h"

struct virtual_gpu {
    struct clock clock;
    int64_t now_ns;
    double energy_uj;
    struct fly_virtual_work work; /* since the last pass; time_s is not looked at */
};

static struct mono_time virtual_now(void *state)
{
    return (struct mono_time){((const struct virtual_gpu *)state)->now_ns};
}

static struct wall_time virtual_date(void *state)
{
    (void)state;
    return clock_real.date(clock_real.state);
}

static void virtual_sleep_until(void *state, struct mono_time when)
{
    struct virtual_gpu *gpu = state;

    if (when.ns <= gpu->now_ns)
        return;
    gpu->energy_uj += gpu->work.power_w * 1e-3 * (double)(when.ns - gpu->now_ns);
    gpu->now_ns = when.ns;
}

static void answer(struct reading *values, quantity_set wanted, enum quantity quantity, int64_t value)
{
    if (wanted & QUANTITY_BIT(quantity))
        values[quantity] = (struct reading){.value = value, .state = READING_OK};
}

static void virtual_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    const struct virtual_gpu *gpu = device->state;

    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    answer(values, wanted, QUANTITY_ENERGY, llround(gpu->energy_uj));
    answer(values, wanted, QUANTITY_POWER_INSTANT, llround(gpu->work.power_w * 1e3));
    answer(values, wanted, QUANTITY_UTILIZATION, gpu->work.busy ? 100 : 0);
    answer(values, wanted, QUANTITY_THROTTLE, gpu->work.capped ? THROTTLE_POWER_CAP : 0);
}

static void virtual_close(struct device *device)
{
    free(device->state);
}

static const struct device_backend virtual_backend = {.name = "virtual",
                                                      .title = "a GPU that the program computes",
                                                      .kind = DEVICE_GPU,
                                                      .close = virtual_close,
                                                      .read = virtual_read};

static int check_work(const struct fly_virtual_work *work, struct fly_error *out_error)
{
    if (work->time_s >= 0.0 && work->time_s <= 1e9 && work->power_w >= 0.0 && work->power_w <= 1e6)
        return 0;
    return error_set(out_error, FLY_EUSAGE, "%g s at %g W are out of range; give 0 to 1e9 s and 0 to 1e6 W",
                     work->time_s, work->power_w);
}

int fly_meter_open_virtual(const char *name, double idle_w, struct fly_meter **out_meter,
                           struct fly_error *out_error)
{
    struct device_info info = {
        .kind = DEVICE_GPU,
        .uuid = "GPU-virtual",
        .minor = -1,
        .emulated = true,
        .sensor = {
            .counter_period_s = 1e-6, .power_period_s = 1e-6, .power_window_s = 1e-6, .source = "computed"}};
    struct virtual_gpu *gpu = calloc(1, sizeof *gpu);
    struct device_list *list = calloc(1, sizeof *list);
    int code = gpu != NULL && list != NULL ? 0 : error_no_memory(out_error);

    if (code == 0)
        code = check_work(&(struct fly_virtual_work){.power_w = idle_w}, out_error);
    if (code == 0) {
        gpu->work.power_w = idle_w;
        gpu->clock = (struct clock){.name = "virtual",
                                    .now = virtual_now,
                                    .date = virtual_date,
                                    .sleep_until = virtual_sleep_until,
                                    .state = gpu};
        snprintf(info.name, sizeof info.name, "%s", name);
        code = device_list_add(list, &virtual_backend, &info, gpu, out_error);
    }
    if (code == 0)
        code = meter_new(
            &(struct meter_parts){
                .devices = list, .clock = &gpu->clock, .threadless = true, .sample_hz = 2.0},
            out_meter, out_error);
    if (code < 0) {
        free(list);
        free(gpu);
        return code;
    }
    (*out_meter)->owned = list;
    return 0;
}

int fly_meter_pass(struct fly_meter *meter, const struct fly_virtual_work *work, struct fly_error *out_error)
{
    const struct device *device = meter->devices->devices;
    struct virtual_gpu *gpu = device->state;
    struct mono_time until;

    if (meter->devices->count != 1 || device->backend != &virtual_backend)
        return error_set(out_error, FLY_ESTATE,
                         "time of this meter passes by itself; open one with fly_meter_open_virtual");
    if (check_work(work, out_error) < 0)
        return FLY_EUSAGE;
    until = mono_after_s(virtual_now(gpu), work->time_s);
    gpu->work = *work;
    while (meter_next_sample(meter).ns <= until.ns) {
        virtual_sleep_until(gpu, meter_next_sample(meter));
        meter_sample(meter);
    }
    virtual_sleep_until(gpu, until);
    return 0;
}
