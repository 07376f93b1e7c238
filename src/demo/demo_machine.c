/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/demo_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

static struct mono_time machine_now(void *state)
{
    return (struct mono_time){((const struct demo_machine *)state)->now_ns};
}

static struct wall_time machine_date(void *state)
{
    (void)state;
    return clock_real.date(clock_real.state);
}

static void machine_sleep_until(void *state, struct mono_time when)
{
    struct demo_machine *machine = state;

    if (when.ns <= machine->now_ns)
        return;
    machine->energy_uj += machine->power_w * 1e-3 * (double)(when.ns - machine->now_ns);
    machine->now_ns = when.ns;
}

static void answer(struct reading *values, quantity_set wanted, enum quantity quantity, int64_t value)
{
    if (wanted & QUANTITY_BIT(quantity))
        values[quantity] = (struct reading){.value = value, .state = READING_OK};
}

static void machine_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    const struct demo_machine *machine = device->state;

    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    answer(values, wanted, QUANTITY_ENERGY, llround(machine->energy_uj));
    answer(values, wanted, QUANTITY_POWER_INSTANT, llround(machine->power_w * 1e3));
    answer(values, wanted, QUANTITY_POWER_LIMIT, llround(machine->limit_w * 1e3));
    answer(values, wanted, QUANTITY_UTILIZATION, machine->power_w > machine->shape->idle_w ? 100 : 0);
    answer(values, wanted, QUANTITY_THROTTLE, machine->capped ? THROTTLE_POWER_CAP : 0);
}

static void machine_close_device(struct device *device)
{
    (void)device;
}

static const struct device_backend machine_backend = {.name = "demo",
                                                      .title = "the demo's GPU",
                                                      .kind = DEVICE_GPU,
                                                      .close = machine_close_device,
                                                      .read = machine_read};

static int machine_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    const struct gpu_shape *shape = ((const struct demo_machine *)data)->shape;

    (void)out_error;
    *out_range = (struct fly_turner_range){
        .lowest = shape->lowest_limit_w, .highest = shape->highest_limit_w, .step = shape->limit_step_w};
    return 0;
}

static int machine_set(void *data, double setting, struct fly_error *out_error)
{
    struct demo_machine *machine = data;

    if (!(setting >= machine->shape->lowest_limit_w && setting <= machine->shape->highest_limit_w))
        return error_set(out_error, FLY_EUSAGE, "limit %g W: the GPU takes %g to %g W", setting,
                         machine->shape->lowest_limit_w, machine->shape->highest_limit_w);
    machine->limit_w = setting;
    return 0;
}

static int machine_standing(void *data, double *out_setting, struct fly_error *out_error)
{
    (void)out_error;
    *out_setting = ((const struct demo_machine *)data)->limit_w;
    return 0;
}

const struct fly_turner demo_machine_turner = {
    .range = machine_range, .set = machine_set, .standing = machine_standing};

int demo_machine_open(struct demo_machine *machine, const struct gpu_shape *shape,
                      const struct gpu_load *load, struct fly_error *out_error)
{
    struct device_info info = {
        .kind = DEVICE_GPU,
        .uuid = "GPU-demo",
        .minor = -1,
        .emulated = true,
        .sensor = {
            .counter_period_s = 1e-6, .power_period_s = 1e-6, .power_window_s = 1e-6, .source = "the demo"}};
    int code;

    *machine = (struct demo_machine){
        .shape = shape, .load = load, .power_w = shape->idle_w, .limit_w = shape->highest_limit_w};
    machine->clock = (struct clock){.name = "demo",
                                    .now = machine_now,
                                    .date = machine_date,
                                    .sleep_until = machine_sleep_until,
                                    .state = machine};
    machine->list = calloc(1, sizeof *machine->list);
    if (machine->list == NULL)
        return error_no_memory(out_error);
    snprintf(info.name, sizeof info.name, "Emulated %s", shape->name);
    code = device_list_add(machine->list, &machine_backend, &info, machine, out_error);
    if (code == 0)
        code = meter_new(
            &(struct meter_parts){
                .devices = machine->list, .clock = &machine->clock, .threadless = true, .sample_hz = 2.0},
            &machine->meter, out_error);
    if (code < 0)
        free(machine->list);
    return code;
}

void demo_machine_close(struct demo_machine *machine)
{
    fly_meter_close(machine->meter);
    free(machine->list);
}

void demo_machine_work(struct demo_machine *machine, uint32_t batch_size, double samples)
{
    struct fly_power_point work =
        gpu_work(machine->shape, machine->load, samples, batch_size, machine->limit_w);
    struct mono_time until = mono_after_s(machine_now(machine), work.time_s);

    machine->power_w = work.power_w;
    machine->capped = gpu_wanted_w(machine->shape, machine->load, batch_size) > machine->limit_w;
    while (meter_next_sample(machine->meter).ns <= until.ns) {
        machine_sleep_until(machine, meter_next_sample(machine->meter));
        meter_sample(machine->meter);
    }
    machine_sleep_until(machine, until);
}
