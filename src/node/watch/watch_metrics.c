/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watch tells Prometheus. All figures are taken under one hold of the lock, so that they are of
 * one moment, and written without it, so that nobody waits for a long text.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/harmless.h"
#include "http/prometheus.h"
#include "node/watch/watch_private.h"

/* A figure of a place, of its newest sample if that is fresh; NAN: unavailable. */
typedef double figure(const struct place *place, bool fresh);

#define READ_FIGURE(name, quantity, factor)                                                             \
    static double name(const struct place *place, bool fresh)                                           \
    {                                                                                                   \
        const struct reading *reading = &place->latest.reading.values[quantity];                        \
                                                                                                        \
        return fresh && reading->state == READING_OK ? (double)reading->value * (factor) : (double)NAN; \
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

static double power_w(const struct place *place, bool fresh)
{
    return fresh ? watch_power_w(&place->latest.reading) : NAN;
}

static double up(const struct place *place, bool fresh)
{
    return place->device != NULL && fresh ? 1.0 : 0.0;
}

static double call_s(const struct place *place, bool fresh)
{
    (void)fresh;
    return place_silent_s(place);
}

/* Totals go on, whether the device answers or not. */
#define TOTAL_FIGURE(name, is_known, value)                   \
    static double name(const struct place *place, bool fresh) \
    {                                                         \
        (void)fresh;                                          \
        return (is_known) ? (value) : (double)NAN;            \
    }
TOTAL_FIGURE(energy_j, place->total.counts || place->total.at.ns != 0 || place->total.energy_uj > 0,
             (double)place->total.energy_uj * 1e-6)
TOTAL_FIGURE(unobserved_j, true, (double)place->total.unobserved_uj * 1e-6)
TOTAL_FIGURE(unknown_s, true, place->total.unknown_s)
TOTAL_FIGURE(resets, true, (double)place->total.resets)
TOTAL_FIGURE(idle_j, place->shares.idle_known_s > 0.0, place->shares.idle_j)
TOTAL_FIGURE(idle_s, place->shares.idle_known_s > 0.0, place->shares.idle_s)
TOTAL_FIGURE(idle_known_s, place->shares.idle_known_s > 0.0, place->shares.idle_known_s)
TOTAL_FIGURE(capped_s, place->shares.throttle_known_s > 0.0, place->shares.capped_s)
TOTAL_FIGURE(heat_s, place->shares.throttle_known_s > 0.0, place->shares.heat_s)
TOTAL_FIGURE(brake_s, place->shares.throttle_known_s > 0.0, place->shares.brake_s)
TOTAL_FIGURE(held_s, place->shares.throttle_known_s > 0.0, place->shares.held_s)
TOTAL_FIGURE(throttle_known_s, place->shares.throttle_known_s > 0.0, place->shares.throttle_known_s)
#undef TOTAL_FIGURE

enum {
    SERIES_MAX = 4,
    KINDS_GPU = 1 << DEVICE_GPU,
    KINDS_CPU = 1 << DEVICE_CPU,
    KINDS_DRAM = 1 << DEVICE_DRAM
};

/* A family, whose devices have one series for each figure. */
static const struct family {
    struct meaning meaning;
    unsigned kinds; /* of the devices that have it */
    struct {
        figure *of;
        const char *label; /* of this series alone; NULL: none */
    } series[SERIES_MAX];
} families[] = {
    {{"flyball_gpu_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Energy of the GPU, going on over restarts of the daemon, the driver and the machine."},
     KINDS_GPU,
     {{energy_j, NULL}}},
    {{"flyball_gpu_energy_unobserved_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Part of that energy that was drawn while nobody watched."},
     KINDS_GPU,
     {{unobserved_j, NULL}}},
    {{"flyball_gpu_energy_unknown_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time whose energy is not in the total, because the GPU has no counter and nobody watched."},
     KINDS_GPU,
     {{unknown_s, NULL}}},
    {{"flyball_gpu_energy_resets_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "How often the energy counter fell, as when the driver is loaded."},
     KINDS_GPU,
     {{resets, NULL}}},
    {{"flyball_gpu_idle_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Part of that energy that was drawn without any work on the GPU, while somebody watched."},
     KINDS_GPU,
     {{idle_j, NULL}}},
    {{"flyball_gpu_power_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power of the GPU."},
     KINDS_GPU,
     {{power_w, NULL}}},
    {{"flyball_gpu_power_limit_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit as it was set."},
     KINDS_GPU,
     {{limit_w, NULL}}},
    {{"flyball_gpu_power_limit_enforced_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Power limit after all limiters."},
     KINDS_GPU,
     {{enforced_w, NULL}}},
    {{"flyball_gpu_power_limit_default_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE,
      "Power limit by default."},
     KINDS_GPU,
     {{default_w, NULL}}},
    {{"flyball_gpu_temperature_celsius", "", MEANING_REAL, 0, "C", MEANING_GAUGE, "Temperature of the GPU."},
     KINDS_GPU,
     {{temperature_c, NULL}}},
    {{"flyball_gpu_clock_hertz", "", MEANING_REAL, 0, "Hz", MEANING_GAUGE, "Clock of its processors."},
     KINDS_GPU,
     {{clock_hz, NULL}}},
    {{"flyball_gpu_memory_clock_hertz", "", MEANING_REAL, 0, "Hz", MEANING_GAUGE, "Clock of its memory."},
     KINDS_GPU,
     {{memory_clock_hz, NULL}}},
    {{"flyball_gpu_utilization_ratio", "", MEANING_REAL, 0, NULL, MEANING_GAUGE,
      "Share of the time with work on the GPU."},
     KINDS_GPU,
     {{use_ratio, NULL}}},
    {{"flyball_gpu_memory_utilization_ratio", "", MEANING_REAL, 0, NULL, MEANING_GAUGE,
      "Share of the time in which its memory was read or written."},
     KINDS_GPU,
     {{memory_use_ratio, NULL}}},
    {{"flyball_gpu_idle_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time without any work on the GPU."},
     KINDS_GPU,
     {{idle_s, NULL}}},
    {{"flyball_gpu_utilization_known_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time for which it is known whether there was work on the GPU."},
     KINDS_GPU,
     {{idle_known_s, NULL}}},
    {{"flyball_gpu_throttled_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time in which something held the GPU back, by reason: its power limit, heat, a brake from outside the "
      "board, or clocks that were set. Reasons may overlap."},
     KINDS_GPU,
     {{capped_s, "reason=\"power\""},
      {heat_s, "reason=\"heat\""},
      {brake_s, "reason=\"brake\""},
      {held_s, "reason=\"clocks\""}}},
    {{"flyball_gpu_throttle_known_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time for which it is known whether something held the GPU back."},
     KINDS_GPU,
     {{throttle_known_s, NULL}}},
    {{"flyball_gpu_driver_call_seconds", "", MEANING_REAL, 0, "s", MEANING_GAUGE,
      "For how long the driver call that reads the GPU has lasted; 0: there is none."},
     KINDS_GPU,
     {{call_s, NULL}}},
    {{"flyball_gpu_up", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
      "1 if the GPU answers, 0 if it hangs, was lost, or its driver was released."},
     KINDS_GPU,
     {{up, NULL}}},
    {{"flyball_cpu_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Energy of the CPU package, going on over restarts of the daemon and the machine."},
     KINDS_CPU,
     {{energy_j, NULL}}},
    {{"flyball_cpu_energy_unobserved_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Part of that energy that was drawn while nobody watched."},
     KINDS_CPU,
     {{unobserved_j, NULL}}},
    {{"flyball_dram_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "Energy of the memory of a CPU package, going on over restarts of the daemon and the machine."},
     KINDS_DRAM,
     {{energy_j, NULL}}},
};
enum { FAMILIES = sizeof families / sizeof families[0] };
const struct quantities watch_quantities = {"a device that flyballd watches",
                                            QUANTITIES_IN(families, meaning)};

/* ---- taking: under the lock ---- */

/* What is told of a device. */
struct row {
    char labels[WATCH_LABELS_MAX];
    double values[FAMILIES][SERIES_MAX];
};

static void add_label(struct buffer *text, const char *name, const char *value)
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

static void write_labels(const struct place *place, char labels[WATCH_LABELS_MAX])
{
    const struct device_info *info = &place->info;
    struct buffer text;

    buffer_init(&text, WATCH_LABELS_MAX - 1);
    if (info->kind == DEVICE_GPU)
        buffer_printf(&text, "gpu=\"%u\"", place->info.index);
    else
        buffer_printf(&text, "package=\"%u\"", info->index);
    add_label(&text, "uuid", info->uuid);
    add_label(&text, "model", info->name);
    add_label(&text, "source", source_of(info));
    snprintf(labels, WATCH_LABELS_MAX, "%s", text.error < 0 ? "" : text.data);
    buffer_deinit(&text);
}

static void take_row(const struct place *place, struct row *out_row)
{
    bool fresh = place_check_fresh(place, NULL) == 0;

    write_labels(place, out_row->labels);
    for (size_t i = 0; i < FAMILIES; i++) {
        bool has = (families[i].kinds >> place->info.kind & 1) != 0;

        for (size_t k = 0; k < SERIES_MAX && families[i].series[k].of != NULL; k++)
            out_row->values[i][k] = has ? families[i].series[k].of(place, fresh) : NAN;
    }
}

static size_t take_rows(struct watch *watch, struct row rows[PLACES_MAX])
{
    size_t count = 0;

    pthread_mutex_lock(&watch->group.lock);
    for (size_t i = 0; i < PLACES_MAX; i++) {
        if (watch->places[i].known)
            take_row(&watch->places[i], &rows[count++]);
    }
    pthread_mutex_unlock(&watch->group.lock);
    return count;
}

char *watch_labels(struct watch *watch, size_t gpu, char labels[WATCH_LABELS_MAX])
{
    labels[0] = '\0';
    pthread_mutex_lock(&watch->group.lock);
    if (gpu < watch->gpu_count)
        write_labels(&watch->places[gpu], labels);
    pthread_mutex_unlock(&watch->group.lock);
    return labels;
}

/* ---- writing: without it ---- */

static void write_family(struct buffer *text, size_t family, const struct row *rows, size_t count)
{
    const struct meaning *meaning = &families[family].meaning;
    int decimals = meaning->type == MEANING_WHOLE ? 0 : 6;
    bool begun = false;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < SERIES_MAX && families[family].series[k].of != NULL; k++) {
            const char *label = families[family].series[k].label;
            double value = rows[i].values[family][k];

            if (!isfinite(value))
                continue;
            if (!begun)
                prometheus_head(text, meaning);
            begun = true;
            buffer_printf(text, "%s{%s%s%s} %.*f\n", meaning->key, rows[i].labels, label != NULL ? "," : "",
                          label != NULL ? label : "", decimals, value);
        }
    }
}

void watch_write_metrics(struct watch *watch, struct buffer *text)
{
    struct row *rows = calloc(PLACES_MAX, sizeof *rows);
    size_t count;

    if (rows == NULL) {
        text->error = FLY_ENOMEM;
        return;
    }
    count = take_rows(watch, rows);
    for (size_t i = 0; i < FAMILIES; i++)
        write_family(text, i, rows, count);
    free(rows);
}
