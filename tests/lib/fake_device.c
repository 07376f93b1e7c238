/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity == 0 ? 1024 : 2 * *capacity;
    array = realloc(array, *capacity * size);
    if (array == NULL)
        abort();
    return array;
}

void fake_load_init(struct fake_load *load)
{
    *load = (struct fake_load){0};
}

void fake_load_deinit(struct fake_load *load)
{
    free(load->start_s);
    free(load->power_w);
    free(load->energy_j);
}

void fake_load_add(struct fake_load *load, double duration_s, double power_w)
{
    size_t last = load->count - 1, capacity = load->capacity;
    double energy_j = 0.0;

    if (load->count > 0)
        energy_j = load->energy_j[last] + load->power_w[last] * (load->end_s - load->start_s[last]);
    load->start_s = grow(load->start_s, load->count, &capacity, sizeof(double));
    capacity = load->capacity;
    load->power_w = grow(load->power_w, load->count, &capacity, sizeof(double));
    capacity = load->capacity;
    load->energy_j = grow(load->energy_j, load->count, &capacity, sizeof(double));
    load->capacity = capacity;
    load->start_s[load->count] = load->end_s;
    load->power_w[load->count] = power_w;
    load->energy_j[load->count] = energy_j;
    load->count++;
    load->end_s += duration_s;
}

/* The step in which `t_s` lies. */
static size_t step_at(const struct fake_load *load, double t_s)
{
    size_t low = 0, high = load->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (load->start_s[middle] <= t_s)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double fake_load_energy_j(const struct fake_load *load, double t_s)
{
    size_t step = step_at(load, t_s);

    return load->energy_j[step] + load->power_w[step] * (t_s - load->start_s[step]);
}

double fake_load_power_w(const struct fake_load *load, double t_s)
{
    return load->power_w[step_at(load, t_s)];
}

static struct mono_time fake_clock_now(void *state)
{
    const struct fake_time *time = state;

    return (struct mono_time){time->now_ns};
}

static struct wall_time fake_clock_date(void *state)
{
    const struct fake_time *time = state;

    return (struct wall_time){1700000000000000000 + time->now_ns};
}

static void fake_clock_sleep_until(void *state, struct mono_time when)
{
    struct fake_time *time = state;

    if (time->now_ns < when.ns)
        time->now_ns = when.ns;
}

struct clock fake_clock(struct fake_time *time)
{
    return (struct clock){.name = "fake",
                          .now = fake_clock_now,
                          .date = fake_clock_date,
                          .sleep_until = fake_clock_sleep_until,
                          .state = time};
}

double fake_now_s(const struct fake_device *fake)
{
    if (fake->time != NULL)
        return (double)fake->time->now_ns * 1e-9;
    return mono_elapsed_s(fake->epoch, mono_now());
}

/* What the sensor says at its update `k`. */
static double published_w(const struct fake_device *fake, double k)
{
    double at_s = k * fake->power_period_s + fake->power_phase_s;

    return (fake_load_energy_j(fake->load, at_s) -
            fake_load_energy_j(fake->load, at_s - fake->power_window_s)) /
           fake->power_window_s;
}

static double power_w(const struct fake_device *fake, double t_s)
{
    return published_w(fake, floor((t_s - fake->power_phase_s) / fake->power_period_s));
}

/* The sum of power readings times their period, up to t. */
static double summed_j(struct fake_device *fake, double t_s)
{
    double updates = floor((t_s - fake->power_phase_s) / fake->power_period_s);
    size_t wanted = updates > 0.0 ? (size_t)updates : 0;

    while (fake->sum_count <= wanted) {
        double before_j = fake->sum_count > 0 ? fake->sums_j[fake->sum_count - 1] : 0.0;

        fake->sums_j = grow(fake->sums_j, fake->sum_count, &fake->sum_capacity, sizeof(double));
        fake->sums_j[fake->sum_count] =
            before_j + published_w(fake, (double)fake->sum_count) * fake->power_period_s;
        fake->sum_count++;
    }
    return fake->sums_j[wanted];
}

static int64_t energy_uj(struct fake_device *fake, double t_s)
{
    double until_s = fake->stuck_s > 0.0 ? fmin(t_s, fake->stuck_s) : t_s;
    double at_s = floor((until_s - fake->counter_phase_s) / fake->counter_period_s) * fake->counter_period_s +
                  fake->counter_phase_s;
    double energy_j = fake->counter_from_power ? summed_j(fake, at_s) : fake_load_energy_j(fake->load, at_s);

    if (fake->reset_s > 0.0 && t_s >= fake->reset_s)
        energy_j -= fake->counter_from_power ? summed_j(fake, fake->reset_s)
                                             : fake_load_energy_j(fake->load, fake->reset_s);
    else
        energy_j += (double)fake->counter_start_uj * 1e-6;
    if (fake->counter_gain > 0.0)
        energy_j *= fake->counter_gain;
    return (int64_t)floor(fmax(energy_j, 0.0) * 1e3) * 1000;
}

static void answer(struct reading *reading, enum reading_state fault, int64_t value)
{
    *reading = (struct reading){.value = fault == READING_NOT_READ ? value : 0,
                                .state = fault == READING_NOT_READ ? READING_OK : fault};
}

static void fake_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    struct fake_device *fake = device->state;
    double now_s = fake_now_s(fake);
    bool lost = fake->lost_s > 0.0 && now_s >= fake->lost_s;
    uint64_t modulus_uj = device->info.energy_modulus_uj;

    fake->reads++;
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if (wanted & QUANTITY_BIT(i))
            values[i].state = lost ? READING_LOST : READING_UNSUPPORTED;
    }
    if (fake->time != NULL)
        fake->time->now_ns += (int64_t)(fake->latency_s * 1e9);
    if (lost)
        return;
    if (wanted & QUANTITY_BIT(QUANTITY_ENERGY)) {
        int64_t value_uj = fake->counter_period_s > 0.0 ? energy_uj(fake, now_s) : 0;

        answer(&values[QUANTITY_ENERGY],
               fake->counter_period_s > 0.0 ? fake->energy_state : READING_UNSUPPORTED,
               modulus_uj > 0 ? value_uj % (int64_t)modulus_uj : value_uj);
    }
    if (wanted & QUANTITY_BIT(QUANTITY_POWER_INSTANT)) {
        fake->power_reads++;
        if (fake->power_period_s > 0.0)
            answer(&values[QUANTITY_POWER_INSTANT], fake->power_state,
                   (int64_t)llround(power_w(fake, now_s) * 1e3));
    }
    if (wanted & QUANTITY_BIT(QUANTITY_UTILIZATION))
        answer(&values[QUANTITY_UTILIZATION], fake->other_state, fake->utilization);
    if (wanted & QUANTITY_BIT(QUANTITY_THROTTLE))
        answer(&values[QUANTITY_THROTTLE], fake->other_state, fake->throttle);
    if (wanted & QUANTITY_BIT(QUANTITY_TEMPERATURE))
        answer(&values[QUANTITY_TEMPERATURE], fake->other_state, fake->temperature_c);
    if (wanted & QUANTITY_BIT(QUANTITY_POWER_LIMIT))
        answer(&values[QUANTITY_POWER_LIMIT], fake->other_state, 400000);
}

static void fake_close(struct device *device)
{
    (void)device;
}

const struct device_backend fake_backend = {
    .name = "fake", .title = "devices of a test", .kind = DEVICE_GPU, .close = fake_close, .read = fake_read};

void fake_list_add(struct device_list *list, struct fake_device *fake)
{
    struct device_info info = {.kind = DEVICE_GPU,
                               .minor = -1,
                               .sensor = {.counter_period_s = fake->counter_period_s,
                                          .power_period_s = fake->power_period_s,
                                          .power_window_s = fake->power_window_s,
                                          .counter_from_power = fake->counter_from_power,
                                          .gain_error = 0.05,
                                          .source = "a test"}};

    snprintf(info.name, sizeof info.name, "Fake %zu", list->count);
    snprintf(info.uuid, sizeof info.uuid, "GPU-fake-%zu", list->count);
    if (device_list_add(list, &fake_backend, &info, fake, NULL) < 0)
        abort();
}

void fake_device_deinit(struct fake_device *fake)
{
    free(fake->sums_j);
}
