/* SPDX-License-Identifier: Apache-2.0 */
/* What the watch tells Prometheus. What is unavailable has no series. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/harmless.h"
#include "http/prometheus.h"
#include "node/watch/watch_private.h"

/* A figure of a device; NAN: unavailable. */
typedef double figure(const struct watch_device *device, const struct watch_sample *sample);

static double value_of(const struct watch_sample *sample, enum quantity quantity, double factor)
{
    const struct reading *reading = sample == NULL ? NULL : &sample->reading.values[quantity];

    return reading != NULL && reading->state == READING_OK ? (double)reading->value * factor : NAN;
}

#define READ_FIGURE(name, quantity, factor)                                                  \
    static double name(const struct watch_device *device, const struct watch_sample *sample) \
    {                                                                                        \
        (void)device;                                                                        \
        return value_of(sample, quantity, factor);                                           \
    }
READ_FIGURE(limit_w, QUANTITY_POWER_LIMIT, 1e-3)
READ_FIGURE(enforced_w, QUANTITY_POWER_LIMIT_ENFORCED, 1e-3)
READ_FIGURE(default_w, QUANTITY_POWER_LIMIT_DEFAULT, 1e-3)
READ_FIGURE(temperature_c, QUANTITY_TEMPERATURE, 1.0)
READ_FIGURE(clock_hz, QUANTITY_CLOCK_GPU, 1e6)
READ_FIGURE(memory_clock_hz, QUANTITY_CLOCK_MEMORY, 1e6)
READ_FIGURE(use_ratio, QUANTITY_UTILIZATION, 1e-2)
READ_FIGURE(memory_use_ratio, QUANTITY_UTILIZATION_MEMORY, 1e-2)
#undef READ_FIGURE

#define TOLD_FIGURE(name, value)                                                             \
    static double name(const struct watch_device *device, const struct watch_sample *sample) \
    {                                                                                        \
        (void)device, (void)sample;                                                          \
        return value;                                                                        \
    }
TOLD_FIGURE(power_w, sample == NULL ? NAN : watch_power_w(&sample->reading))
TOLD_FIGURE(energy_j, (double)device->total.energy_uj * 1e-6)
TOLD_FIGURE(unobserved_j, (double)device->total.unobserved_uj * 1e-6)
TOLD_FIGURE(unknown_s, device->total.unknown_s)
TOLD_FIGURE(resets, (double)device->total.resets)
TOLD_FIGURE(idle_s, device->shares.idle_known_s > 0.0 ? device->shares.idle_s : NAN)
TOLD_FIGURE(capped_s, device->shares.throttle_known_s > 0.0 ? device->shares.capped_s : NAN)
TOLD_FIGURE(heat_s, device->shares.throttle_known_s > 0.0 ? device->shares.heat_s : NAN)
TOLD_FIGURE(brake_s, device->shares.throttle_known_s > 0.0 ? device->shares.brake_s : NAN)
TOLD_FIGURE(up, device->present &&sample != NULL ? 1.0 : 0.0)
#undef TOLD_FIGURE

static const struct family {
    struct meaning meaning;
    figure *of;
} families[] = {
    {{"flyball_gpu_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Energy of the GPU, going on over restarts of the daemon, the driver and the machine."},
     energy_j},
    {{"flyball_gpu_energy_unobserved_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Part of that energy that was drawn while nobody watched."},
     unobserved_j},
    {{"flyball_gpu_energy_unknown_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time whose energy is not in the total, because the GPU has no counter and nobody watched."},
     unknown_s},
    {{"flyball_gpu_energy_resets_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "How often the energy counter fell, as when the driver is loaded."},
     resets},
    {{"flyball_gpu_power_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power of the GPU."}, power_w},
    {{"flyball_gpu_power_limit_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit as it was set."},
     limit_w},
    {{"flyball_gpu_power_limit_enforced_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Power limit after all limiters."},
     enforced_w},
    {{"flyball_gpu_power_limit_default_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Power limit by default."},
     default_w},
    {{"flyball_gpu_temperature_celsius", "", MEANING_REAL, 0, "C", MEANING_GAUGE, "Temperature of the GPU."},
     temperature_c},
    {{"flyball_gpu_clock_hertz", "", MEANING_REAL, 0, "Hz", MEANING_GAUGE, "Clock of its processors."},
     clock_hz},
    {{"flyball_gpu_memory_clock_hertz", "", MEANING_REAL, 0, "Hz", MEANING_GAUGE, "Clock of its memory."},
     memory_clock_hz},
    {{"flyball_gpu_utilization_ratio", "", MEANING_REAL, 0, NULL, MEANING_GAUGE,
      "Share of the time with work on the GPU."},
     use_ratio},
    {{"flyball_gpu_memory_utilization_ratio", "", MEANING_REAL, 0, NULL, MEANING_GAUGE,
      "Share of the time in which its memory was read or written."},
     memory_use_ratio},
    {{"flyball_gpu_idle_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time without any work on the GPU, since the daemon began."},
     idle_s},
    {{"flyball_gpu_throttled_power_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time in which the power limit held the GPU back, since the daemon began."},
     capped_s},
    {{"flyball_gpu_throttled_heat_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time in which heat held the GPU back, since the daemon began."},
     heat_s},
    {{"flyball_gpu_throttled_brake_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time in which a brake from outside the board held the GPU back, since the daemon began."},
     brake_s},
    {{"flyball_gpu_up", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
      "1 if the GPU answers, 0 if it hangs, was lost, or its driver was released."},
     up},
};
const struct quantities watch_quantities = {"a GPU that flyballd watches", QUANTITIES_IN(families, meaning)};

static void write_label(struct buffer *text, const char *name, const char *value)
{
    char harmless[DEVICE_TEXT_MAX];

    snprintf(harmless, sizeof harmless, "%s", value);
    harmless_make(harmless, strlen(harmless), false);
    buffer_printf(text, ",%s=\"", name);
    prometheus_label(text, harmless);
    buffer_puts(text, "\"");
}

static const char *source_of(const struct device_info *info)
{
    return info->emulated ? "emulated" : info->estimated ? "estimated" : "measured";
}

static void write_series(struct buffer *text, const struct family *family, const struct watch_device *device,
                         size_t gpu, double value)
{
    buffer_printf(text, "%s{gpu=\"%zu\"", family->meaning.key, gpu);
    write_label(text, "uuid", device->info.uuid);
    write_label(text, "model", device->info.name);
    write_label(text, "source", source_of(&device->info));
    if (family->meaning.type == MEANING_WHOLE)
        buffer_printf(text, "} %.0f\n", value);
    else
        buffer_printf(text, "} %.6f\n", value);
}

void watch_write_metrics(struct watch *watch, struct buffer *text)
{
    size_t count = watch_gpu_count(watch);

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        bool begun = false;

        for (size_t gpu = 0; gpu < count; gpu++) {
            struct watch_device device;
            struct watch_sample sample;
            bool answers = watch_latest(watch, gpu, &sample, NULL) == 0;
            double value;

            watch_look(watch, gpu, &device);
            value = families[i].of(&device, answers ? &sample : NULL);
            if (!isfinite(value))
                continue;
            if (!begun)
                prometheus_head(text, &families[i].meaning);
            begun = true;
            write_series(text, &families[i], &device, gpu, value);
        }
    }
}
