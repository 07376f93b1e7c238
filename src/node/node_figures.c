/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_figures.h"

#include <inttypes.h>

#include "base/number.h"
#include "http/prometheus.h"

enum family { LEASES, TURNED, BUSY, LOST };
static const struct meaning families[] = {
    [LEASES] = {"flyball_gpu_leases", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
                "Leases of the GPU's knobs."},
    [TURNED] = {"flyball_gpu_turned", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
                "1 while a knob of the GPU stands elsewhere than before its leases, else 0."},
    [BUSY] = {"flyball_gpu_turning_seconds", "", MEANING_REAL, 0, "s", MEANING_GAUGE,
              "For how long the driver call that turns a knob has lasted; 0: there is none."},
    [LOST] = {"flyball_audit_lines_lost_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
              "Lines of the audit log that could not be written."},
};
const struct quantities node_quantities = {"what flyballd lends", QUANTITIES(families)};

static double value_of(enum family family, const struct leases_gpu *hand)
{
    return family == LEASES ? (double)hand->leases : family == TURNED ? (double)hand->turned : hand->busy_s;
}

static void write_family(struct daemon *daemon, enum family family, struct buffer *text)
{
    size_t count = watch_gpu_count(daemon->watch);
    char number[NUMBER_TEXT_MAX];

    prometheus_head(text, &families[family]);
    for (size_t gpu = 0; gpu < count && gpu < daemon->hands; gpu++) {
        struct leases_gpu hand;
        struct device_info info;

        leases_look(daemon->leases, gpu, &hand);
        watch_gpu_info(daemon->watch, gpu, &info);
        buffer_printf(text, "%s{gpu=\"%u\",uuid=\"", families[family].key, info.index);
        prometheus_label(text, info.uuid);
        buffer_printf(text, "\"} %s\n", number_format(value_of(family, &hand), number));
    }
}

void node_figures_write(struct daemon *daemon, struct buffer *text)
{
    for (enum family family = LEASES; family <= BUSY; family++)
        write_family(daemon, family, text);
    if (daemon->audit == NULL)
        return;
    prometheus_head(text, &families[LOST]);
    buffer_printf(text, "%s %" PRIu64 "\n", families[LOST].key, audit_lost(daemon->audit));
}
