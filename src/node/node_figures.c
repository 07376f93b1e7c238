/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_figures.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/number.h"
#include "http/prometheus.h"

/* ---- of each GPU ---- */

#define GPU_FIGURE(name, value)                       \
    static double name(const struct leases_gpu *hand) \
    {                                                 \
        return (double)(value);                       \
    }
GPU_FIGURE(leases_of, hand->leases)
GPU_FIGURE(is_turned, hand->turned)
GPU_FIGURE(is_stuck, hand->stuck)
GPU_FIGURE(busy_s, hand->busy_s)
GPU_FIGURE(turns, hand->events[LEASES_TURNED])
GPU_FIGURE(failed_turns, hand->events[LEASES_TURN_FAILED])
GPU_FIGURE(restores, hand->events[LEASES_RESTORED])
GPU_FIGURE(failed_restores, hand->events[LEASES_RESTORE_FAILED])
GPU_FIGURE(foreign_changes, hand->events[LEASES_FOREIGN])
#undef GPU_FIGURE

enum { SERIES_MAX = 2 };

static const struct gpu_family {
    struct meaning meaning;
    struct {
        double (*of)(const struct leases_gpu *hand);
        const char *label; /* of this series alone; "": none */
    } series[SERIES_MAX];
} gpu_families[] = {
    {{"flyball_gpu_leases", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE, "Leases of the GPU's knobs."},
     {{leases_of, ""}}},
    {{"flyball_gpu_turned", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
      "1 while a knob of the GPU stands elsewhere than before its leases, else 0."},
     {{is_turned, ""}}},
    {{"flyball_gpu_stuck", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
      "1 while a knob of the GPU could not be put back, which is tried again, else 0."},
     {{is_stuck, ""}}},
    {{"flyball_gpu_turning_seconds", "", MEANING_REAL, 0, "s", MEANING_GAUGE,
      "For how long the driver call that turns a knob has lasted; 0: there is none."},
     {{busy_s, ""}}},
    {{"flyball_gpu_turns_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Knobs of the GPU that were turned for leases, by outcome: done or failed."},
     {{turns, ",outcome=\"done\""}, {failed_turns, ",outcome=\"failed\""}}},
    {{"flyball_gpu_restores_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "How often the GPU was put back, by outcome: done or failed. What failed is tried again."},
     {{restores, ",outcome=\"done\""}, {failed_restores, ",outcome=\"failed\""}}},
    {{"flyball_gpu_foreign_changes_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "How often another program turned a leased knob, whose value stayed."},
     {{foreign_changes, ""}}},
};
enum { GPU_FAMILIES = sizeof gpu_families / sizeof gpu_families[0] };
const struct quantities node_gpu_quantities = {"a GPU whose knobs flyballd lends",
                                               QUANTITIES_IN(gpu_families, meaning)};

struct gpu_row {
    char labels[WATCH_LABELS_MAX];
    struct leases_gpu hand;
};

static void write_gpus(const struct gpu_row *rows, size_t count, struct buffer *text)
{
    char number[NUMBER_TEXT_MAX];

    for (size_t family = 0; family < GPU_FAMILIES && count > 0; family++) {
        const struct gpu_family *of = &gpu_families[family];

        prometheus_head(text, &of->meaning);
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < SERIES_MAX && of->series[k].of != NULL; k++)
                buffer_printf(text, "%s{%s%s} %s\n", of->meaning.key, rows[i].labels, of->series[k].label,
                              number_format(of->series[k].of(&rows[i].hand), number));
        }
    }
}

static void take_gpus(struct daemon *daemon, struct buffer *text)
{
    size_t count = watch_gpu_count(daemon->watch);
    struct gpu_row *rows = calloc(count > 0 ? count : 1, sizeof *rows);

    for (size_t gpu = 0; rows != NULL && gpu < count; gpu++) {
        leases_look(daemon->leases, gpu, &rows[gpu].hand);
        watch_labels(daemon->watch, gpu, rows[gpu].labels);
    }
    if (rows != NULL)
        write_gpus(rows, count, text);
    else
        text->error = FLY_ENOMEM;
    free(rows);
}

/* ---- of the daemon ---- */

enum family { HELD, GRANTED, REFUSED, ENDED, LOST };
static const struct meaning families[] = {
    [HELD] = {"flyball_leases", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE, "Leases that are in force."},
    [GRANTED] = {"flyball_leases_granted_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
                 "Leases that were granted."},
    [REFUSED] = {"flyball_leases_refused_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
                 "Leases, and changes of leases, that were refused or failed, by reason."},
    [ENDED] = {"flyball_leases_ended_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
               "Leases that ended, by reason."},
    [LOST] = {"flyball_audit_lines_lost_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
              "Lines of the audit log that could not be written."},
};
const struct quantities node_quantities = {"flyballd and its leases", QUANTITIES(families)};

static void write_one(enum family family, uint64_t value, struct buffer *text)
{
    prometheus_head(text, &families[family]);
    buffer_printf(text, "%s %" PRIu64 "\n", families[family].key, value);
}

static void write_reason(enum family family, const char *reason, uint64_t value, struct buffer *text)
{
    buffer_printf(text, "%s{reason=\"%s\"} %" PRIu64 "\n", families[family].key, reason, value);
}

static void write_leases(struct daemon *daemon, struct buffer *text)
{
    struct leases_counts counts;

    leases_count(daemon->leases, &counts);
    write_one(HELD, counts.held, text);
    write_one(GRANTED, counts.granted, text);
    prometheus_head(text, &families[REFUSED]);
    for (int i = 0; i < LEASE_REFUSAL_COUNT; i++)
        write_reason(REFUSED, lease_refusal_word((enum lease_refusal)i), counts.refused[i], text);
    prometheus_head(text, &families[ENDED]);
    for (int i = 0; i < LEASE_END_COUNT; i++)
        write_reason(ENDED, lease_end_word((enum lease_end)i), counts.ended[i], text);
}

void node_figures_write(struct daemon *daemon, struct buffer *text)
{
    take_gpus(daemon, text);
    write_leases(daemon, text);
    if (daemon->audit != NULL)
        write_one(LOST, audit_lost(daemon->audit), text);
    own_energy_write(&daemon->own, daemon->watch, text);
}
