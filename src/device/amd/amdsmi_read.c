/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of one GPU. The library answers several quantities with one call, so each row of the
 * table has a question and the quantities that it answers.
 */
#include "device/amd/amdsmi_read.h"

#include <math.h>
#include <string.h>

enum { MW_PER_W = 1000, UW_PER_MW = 1000, MC_PER_C = 1000, PERCENT_MAX = 100 };

static const quantity_set card_figures =
    QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
    QUANTITY_BIT(QUANTITY_POWER_AVERAGE) | QUANTITY_BIT(QUANTITY_POWER_LIMIT) |
    QUANTITY_BIT(QUANTITY_POWER_LIMIT_DEFAULT) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) |
    QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX);

static struct reading good(int64_t value)
{
    return (struct reading){.value = value, .state = READING_OK};
}

static struct reading unsupported(void)
{
    return (struct reading){.state = READING_UNSUPPORTED};
}

static void put(struct reading *values, quantity_set wanted, enum quantity quantity, struct reading reading)
{
    if ((wanted & QUANTITY_BIT(quantity)) != 0)
        values[quantity] = reading;
}

/* Returns a figure of 32 bits, or that it is absent. */
static struct reading figure(uint32_t value, int64_t scale)
{
    return value == AMDSMI_NOTHING_32 || value == AMDSMI_NOTHING_16 ? unsupported() : good(value * scale);
}

/* Returns whether the call exists and succeeded; otherwise writes the reason into `values`. */
static bool asked(amdsmi_status status, quantity_set wanted, struct reading *values)
{
    struct reading failed = amdsmi_failed_reading(status);

    if (status == AMDSMI_SUCCESS)
        return true;
    readings_fail(values, wanted, failed.state, failed.code);
    return false;
}

#define HAS(gpu, slot, wanted, values) \
    ((gpu)->library->call.slot != NULL || (readings_fail(values, wanted, READING_MISSING, 0), false))

/* The kernel's driver counts in 2^-16 J, which the library rounds to 15.3 uJ: 0.3 % too much. */
static double exact_uj(float uj_per_tick)
{
    const double unit = 1e6 / 65536.0;

    return fabs((double)uj_per_tick - unit) < 0.05 ? unit : (double)uj_per_tick;
}

static void ask_energy(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    uint64_t ticks = 0, ns = 0;
    float uj_per_tick = 0.0F;
    double energy_uj;

    if (!HAS(gpu, energy, wanted, values) ||
        !asked(gpu->library->call.energy(gpu->handle, &ticks, &uj_per_tick, &ns), wanted, values))
        return;
    energy_uj = (double)ticks * exact_uj(uj_per_tick);
    if (ticks == UINT64_MAX || !(energy_uj >= 0.0 && energy_uj < 0x1p63) || uj_per_tick == 0.0F)
        put(values, wanted, QUANTITY_ENERGY, unsupported());
    else
        put(values, wanted, QUANTITY_ENERGY, good((int64_t)energy_uj));
}

static uint32_t word_at(const struct amdsmi_space *space, size_t offset)
{
    uint32_t word;

    memcpy(&word, space->bytes + offset, sizeof word);
    return word;
}

static void ask_power(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    const struct amdsmi_layout *layout = gpu->library->layout;
    struct amdsmi_space space;

    memset(space.bytes, 0xFF, layout->power_bytes);
    if (!HAS(gpu, power, wanted, values) ||
        !asked(gpu->library->call.power(gpu->handle, space.bytes), wanted, values))
        return;
    put(values, wanted, QUANTITY_POWER_INSTANT, figure(word_at(&space, layout->power_now), MW_PER_W));
    put(values, wanted, QUANTITY_POWER_AVERAGE, figure(word_at(&space, layout->power_average), MW_PER_W));
}

/* Converts microwatts; a highest limit of zero means that the GPU has no limits. */
static struct reading limit(uint64_t value_uw, uint64_t highest_uw)
{
    if (highest_uw == 0 || highest_uw == UINT64_MAX || value_uw > highest_uw)
        return unsupported();
    return good((int64_t)(value_uw / UW_PER_MW));
}

static void ask_limits(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    struct amdsmi_space space = {{0}};
    struct amdsmi_power_cap cap;

    if (!HAS(gpu, power_cap, wanted, values) ||
        !asked(gpu->library->call.power_cap(gpu->handle, AMDSMI_POWER_SENSOR, space.bytes), wanted, values))
        return;
    memcpy(&cap, space.bytes, sizeof cap);
    put(values, wanted, QUANTITY_POWER_LIMIT, limit(cap.now, cap.highest));
    put(values, wanted, QUANTITY_POWER_LIMIT_DEFAULT, limit(cap.standard, cap.highest));
    put(values, wanted, QUANTITY_POWER_LIMIT_MIN, limit(cap.lowest, cap.highest));
    put(values, wanted, QUANTITY_POWER_LIMIT_MAX, limit(cap.highest, cap.highest));
}

static void ask_clock(const struct amdsmi_gpu *gpu, enum amdsmi_clock_kind kind, quantity_set wanted,
                      struct reading *values)
{
    struct amdsmi_space space = {{0}};
    struct amdsmi_clock clock;

    if (!HAS(gpu, clock, wanted, values) ||
        !asked(gpu->library->call.clock(gpu->handle, kind, space.bytes), wanted, values))
        return;
    memcpy(&clock, space.bytes, sizeof clock);
    put(values, wanted, kind == AMDSMI_CLOCK_MEMORY ? QUANTITY_CLOCK_MEMORY : QUANTITY_CLOCK_GPU,
        figure(clock.now, 1));
    put(values, wanted, QUANTITY_CLOCK_GPU_MAX, figure(clock.highest, 1));
}

static void ask_graphics_clock(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    ask_clock(gpu, AMDSMI_CLOCK_GRAPHICS, wanted, values);
}

static void ask_memory_clock(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    ask_clock(gpu, AMDSMI_CLOCK_MEMORY, wanted, values);
}

static struct reading percent(uint32_t value)
{
    struct reading reading = figure(value, 1);

    if (reading.state == READING_OK && reading.value > PERCENT_MAX)
        reading.state = READING_FAILED;
    return reading;
}

static void ask_usage(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    struct amdsmi_space space = {{0}};
    struct amdsmi_usage usage;

    if (!HAS(gpu, usage, wanted, values) ||
        !asked(gpu->library->call.usage(gpu->handle, space.bytes), wanted, values))
        return;
    memcpy(&usage, space.bytes, sizeof usage);
    put(values, wanted, QUANTITY_UTILIZATION, percent(usage.graphics));
    put(values, wanted, QUANTITY_UTILIZATION_MEMORY, percent(usage.memory));
}

/*
 * Documented in degrees, but some versions of other programs read it as thousandths. Values from
 * 1000 on are taken as thousandths, since no GPU is that hot.
 */
static void ask_temperature(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    int64_t celsius = 0;

    if (!HAS(gpu, temperature, wanted, values) ||
        !asked(gpu->library->call.temperature(gpu->handle, AMDSMI_TEMPERATURE_HOTSPOT,
                                              AMDSMI_TEMPERATURE_CURRENT, &celsius),
               wanted, values))
        return;
    if (celsius == AMDSMI_NOTHING_16 || celsius == AMDSMI_NOTHING_32)
        put(values, wanted, QUANTITY_TEMPERATURE, unsupported());
    else
        put(values, wanted, QUANTITY_TEMPERATURE, good(celsius >= MC_PER_C ? celsius / MC_PER_C : celsius));
}

static const struct question {
    quantity_set answered;
    void (*ask)(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values);
} questions[] = {
    {QUANTITY_BIT(QUANTITY_ENERGY), ask_energy},
    {QUANTITY_BIT(QUANTITY_POWER_INSTANT) | QUANTITY_BIT(QUANTITY_POWER_AVERAGE), ask_power},
    {QUANTITY_BIT(QUANTITY_POWER_LIMIT) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_DEFAULT) |
         QUANTITY_BIT(QUANTITY_POWER_LIMIT_MIN) | QUANTITY_BIT(QUANTITY_POWER_LIMIT_MAX),
     ask_limits},
    {QUANTITY_BIT(QUANTITY_CLOCK_GPU) | QUANTITY_BIT(QUANTITY_CLOCK_GPU_MAX), ask_graphics_clock},
    {QUANTITY_BIT(QUANTITY_CLOCK_MEMORY), ask_memory_clock},
    {QUANTITY_BIT(QUANTITY_UTILIZATION) | QUANTITY_BIT(QUANTITY_UTILIZATION_MEMORY), ask_usage},
    {QUANTITY_BIT(QUANTITY_TEMPERATURE), ask_temperature},
};

void amdsmi_gpu_read(const struct amdsmi_gpu *gpu, quantity_set wanted, struct reading *values)
{
    quantity_set withheld = 0;

    if (gpu->elsewhere)
        withheld |= card_figures;
    if (gpu->counter_off)
        withheld |= QUANTITY_BIT(QUANTITY_ENERGY);
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    wanted &= ~withheld;
    amdsmi_library_lock(gpu->library);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        quantity_set part = wanted & questions[i].answered;

        if (part != 0)
            questions[i].ask(gpu, part, values);
    }
    amdsmi_library_unlock(gpu->library);
}
