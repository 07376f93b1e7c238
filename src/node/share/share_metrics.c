/* SPDX-License-Identifier: Apache-2.0 */
/* What the account tells Prometheus. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/harmless.h"
#include "http/prometheus.h"
#include "node/share/share_private.h"

enum family { ENERGY, POWER, LEFT_OUT };

static const struct meaning families[] = {
    [ENERGY] = {"flyball_gpu_attributed_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
                "Energy of the GPU by who drew it. The sum over a GPU's series is what its meter counted."},
    [POWER] = {"flyball_gpu_attributed_power_watts", "", MEANING_REAL, 0, "W", MEANING_GAUGE,
               "Power of the GPU by who draws it now."},
    [LEFT_OUT] = {"flyball_attribution_series_left_out", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
                  "Owners on GPUs that have no series of their own, since there are too many."},
};
const struct quantities share_quantities = {"who uses a GPU", QUANTITIES(families)};

static void write_label(struct buffer *text, const char *name, const char *value)
{
    char harmless[OWNER_POD_MAX];

    snprintf(harmless, sizeof harmless, "%s", value);
    harmless_make(harmless, strlen(harmless), false);
    buffer_printf(text, ",%s=\"", name);
    prometheus_label(text, harmless);
    buffer_puts(text, "\"");
}

static void write_series(struct buffer *text, enum family family, const struct share_gpu *gpu,
                         const char *kind, const struct share_series *owner, double value)
{
    static const struct share_series nobody = {.rows = 0};
    const struct share_series *of = owner != NULL ? owner : &nobody;
    const struct device_info *info = &gpu->info;

    buffer_printf(text, "%s{gpu=\"%u\"", families[family].key, info->index);
    write_label(text, "uuid", info->uuid);
    write_label(text, "model", info->name);
    write_label(text, "source", usage_source_word(info->emulated, info->estimated));
    write_label(text, "kind", kind);
    write_label(text, "user", of->user);
    write_label(text, "training_job", of->training_job);
    write_label(text, "slurm_job", of->slurm_job);
    write_label(text, "workload_pod", of->pod);
    write_label(text, "workload_namespace", of->pod_namespace);
    write_label(text, "workload_container", of->container);
    buffer_printf(text, "} %.6f\n", value);
}

/* ---- energy ---- */

static double joules(int64_t energy_uj)
{
    return (double)energy_uj / 1e6;
}

static void write_energies(struct share *share, struct buffer *text)
{
    prometheus_head(text, &families[ENERGY]);
    for (size_t i = 0; i < share->series_count; i++) {
        const struct share_series *series = &share->series[i];

        if (series->rows > 0)
            write_series(text, ENERGY, share->gpus[series->gpu], usage_kind_word(series->kind), series,
                         joules(series->energy_uj));
    }
    for (size_t i = 0; i < share->gpu_count; i++) {
        const struct share_gpu *gpu = share->gpus[i];
        const struct ledger *ledger = &gpu->ledger;

        write_series(text, ENERGY, gpu, "idle", NULL, joules(ledger->idle.energy_uj));
        write_series(text, ENERGY, gpu, "unobserved", NULL, joules(ledger->unobserved.energy_uj));
        if (gpu->left_out_uj > 0)
            write_series(text, ENERGY, gpu, "left_out", NULL, joules(gpu->left_out_uj));
        if (gpu->ended_uj > 0)
            write_series(text, ENERGY, gpu, "ended", NULL, joules(gpu->ended_uj));
    }
}

/* ---- power ---- */

static void add_power(struct share *share, const struct ledger_row *row)
{
    struct share_series *series;

    if (row->group == 0 || row->group == SHARE_NO_GROUP || row->ended_unix_ms != 0 || !isfinite(row->power_w))
        return;
    series = &share->series[row->group - 1];
    series->power_w = isfinite(series->power_w) ? series->power_w + row->power_w : row->power_w;
}

static void sum_powers(struct share *share)
{
    for (size_t i = 0; i < share->series_count; i++)
        share->series[i].power_w = NAN;
    for (size_t i = 0; i < share->gpu_count; i++) {
        const struct ledger *ledger = &share->gpus[i]->ledger;

        for (size_t k = 0; k < ledger->count; k++)
            add_power(share, &ledger->rows[k]);
        for (size_t k = 0; k < ledger->set_count; k++)
            add_power(share, &ledger->sets[k].row);
    }
}

static void write_powers(struct share *share, struct buffer *text)
{
    sum_powers(share);
    prometheus_head(text, &families[POWER]);
    for (size_t i = 0; i < share->series_count; i++) {
        const struct share_series *series = &share->series[i];

        if (series->rows > 0 && isfinite(series->power_w))
            write_series(text, POWER, share->gpus[series->gpu], usage_kind_word(series->kind), series,
                         series->power_w);
    }
    for (size_t i = 0; i < share->gpu_count; i++) {
        const struct ledger *ledger = &share->gpus[i]->ledger;

        if (isfinite(ledger->idle.power_w))
            write_series(text, POWER, share->gpus[i], "idle", NULL, ledger->idle.power_w);
        if (isfinite(ledger->unobserved.power_w))
            write_series(text, POWER, share->gpus[i], "unobserved", NULL, ledger->unobserved.power_w);
    }
}

void share_write_metrics(struct share *share, struct buffer *text)
{
    pthread_mutex_lock(&share->group.lock);
    if (share->gpu_count > 0) {
        write_energies(share, text);
        write_powers(share, text);
    }
    prometheus_head(text, &families[LEFT_OUT]);
    buffer_printf(text, "%s %zu\n", families[LEFT_OUT].key, series_left_out(share));
    pthread_mutex_unlock(&share->group.lock);
}
