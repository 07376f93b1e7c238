/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series of Prometheus, at most so many. A row's energy goes to its owner's series; without one it goes to
 * what is left out, and stays there if there is room later: a counter must not fall. When the last row of a
 * series goes, its energy is among that of series that ended.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/share/share_private.h"

/* Series that each GPU has besides those of owners: idle, unobserved, left_out, ended, and powers. */
enum { OF_A_GPU = 6, FAMILIES = 2 };

static void fill(struct share_series *series, size_t gpu, enum usage_kind kind, const struct owner *owner)
{
    *series = (struct share_series){.gpu = gpu, .kind = kind, .power_w = NAN};
    if (owner->user[0] == '\0' && owner->uid_known)
        snprintf(series->user, sizeof series->user, "%u", (unsigned)owner->uid);
    else
        snprintf(series->user, sizeof series->user, "%s", owner->user);
    snprintf(series->training_job, sizeof series->training_job, "%s", owner->training_job);
    snprintf(series->slurm_job, sizeof series->slurm_job, "%s", owner->slurm_job);
    snprintf(series->pod, sizeof series->pod, "%s", owner->pod[0] != '\0' ? owner->pod : owner->pod_uid);
    snprintf(series->pod_namespace, sizeof series->pod_namespace, "%s", owner->pod_namespace);
    snprintf(series->container, sizeof series->container, "%s", owner->container);
}

static bool is_same(const struct share_series *one, const struct share_series *other)
{
    return one->gpu == other->gpu && one->kind == other->kind && strcmp(one->user, other->user) == 0 &&
           strcmp(one->training_job, other->training_job) == 0 &&
           strcmp(one->slurm_job, other->slurm_job) == 0 && strcmp(one->pod, other->pod) == 0 &&
           strcmp(one->pod_namespace, other->pod_namespace) == 0 &&
           strcmp(one->container, other->container) == 0;
}

static size_t room(const struct share *share)
{
    size_t taken = OF_A_GPU * share->gpu_count, most = share->options.series;

    return most > taken ? (most - taken) / FAMILIES : 0;
}

/* Returns the place of that series, made if there is room; SHARE_NO_GROUP if there is none. */
static uint32_t find_or_make(struct share *share, const struct share_series *wanted)
{
    size_t used = 0, free_place = share->series_count;

    for (size_t i = 0; i < share->series_count; i++) {
        if (share->series[i].rows == 0) {
            free_place = free_place == share->series_count ? i : free_place;
            continue;
        }
        used++;
        if (is_same(&share->series[i], wanted))
            return (uint32_t)i;
    }
    if (used >= room(share))
        return SHARE_NO_GROUP;
    share->series[free_place] = *wanted;
    share->series_count += free_place == share->series_count;
    return (uint32_t)free_place;
}

/* Groups are stored as their place and 1, so that a fresh row has none. */
static void join(struct share_gpu *gpu, struct ledger_row *row, enum usage_kind kind,
                 const struct owner *owner)
{
    struct share_series wanted;
    uint32_t place;

    fill(&wanted, gpu->gpu, kind, owner);
    place = find_or_make(gpu->share, &wanted);
    row->group = place == SHARE_NO_GROUP ? SHARE_NO_GROUP : place + 1;
    if (place != SHARE_NO_GROUP)
        gpu->share->series[place].rows++;
}

static void count(struct share_gpu *gpu, struct ledger_row *row)
{
    int64_t more_uj = row->energy_uj - row->told_uj;

    if (row->group == SHARE_NO_GROUP)
        gpu->left_out_uj += more_uj;
    else
        gpu->share->series[row->group - 1].energy_uj += more_uj;
    row->told_uj = row->energy_uj;
}

void series_settle(struct share_gpu *gpu, bool also)
{
    struct share *share = gpu->share;

    for (size_t i = 0; i < gpu->ledger.count; i++) {
        struct ledger_row *row = &gpu->ledger.rows[i];
        const struct share_process *process = row->group == 0 ? people_of(share, row->process) : NULL;

        if (process != NULL && (process->named || also))
            join(gpu, row, USAGE_PROCESS, &process->owner);
        if (row->group != 0)
            count(gpu, row);
    }
    for (size_t i = 0; i < gpu->ledger.set_count; i++) {
        struct ledger_set *set = &gpu->ledger.sets[i];
        struct owner owner;

        if (set->row.group == 0 && (i > 0 || set->row.energy_uj > 0) &&
            (people_common(share, set, &owner) || also))
            join(gpu, &set->row, USAGE_SHARED, &owner);
        if (set->row.group != 0)
            count(gpu, &set->row);
    }
    gpu->left_out_uj += gpu->ledger.others.energy_uj - gpu->ledger.others.told_uj;
    gpu->ledger.others.told_uj = gpu->ledger.others.energy_uj;
}

void series_leave(struct share_gpu *gpu, struct ledger_row *row)
{
    series_settle(gpu, true);
    row->group = 0;
}

static void recount(struct share *share, const struct ledger_row *row)
{
    if (row->group != 0 && row->group != SHARE_NO_GROUP)
        share->series[row->group - 1].rows++;
}

void series_sweep(struct share *share)
{
    for (size_t i = 0; i < share->series_count; i++)
        share->series[i].rows = 0;
    for (size_t i = 0; i < share->gpu_count; i++) {
        const struct ledger *ledger = &share->gpus[i]->ledger;

        for (size_t k = 0; k < ledger->count; k++)
            recount(share, &ledger->rows[k]);
        for (size_t k = 0; k < ledger->set_count; k++)
            recount(share, &ledger->sets[k].row);
    }
    for (size_t i = 0; i < share->series_count; i++) {
        struct share_series *series = &share->series[i];

        if (series->rows > 0 || series->gpu >= share->gpu_count)
            continue;
        share->gpus[series->gpu]->ended_uj += series->energy_uj;
        series->energy_uj = 0;
    }
}

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text != NULL ? text : "");
}

void series_resume(struct share_gpu *gpu, const struct usage_row *row)
{
    struct share_series wanted = {.gpu = gpu->gpu, .kind = row->kind, .power_w = NAN};
    uint32_t place;

    copy_text(wanted.user, sizeof wanted.user, row->user);
    copy_text(wanted.training_job, sizeof wanted.training_job, row->training_job);
    copy_text(wanted.slurm_job, sizeof wanted.slurm_job, row->slurm_job);
    copy_text(wanted.pod, sizeof wanted.pod, row->pod);
    copy_text(wanted.pod_namespace, sizeof wanted.pod_namespace, row->pod_namespace);
    copy_text(wanted.container, sizeof wanted.container, row->container);
    place = find_or_make(gpu->share, &wanted);
    if (place == SHARE_NO_GROUP) {
        gpu->ended_uj += row->energy_uj;
        return;
    }
    gpu->share->series[place].energy_uj += row->energy_uj;
    gpu->share->series[place].rows += gpu->share->series[place].rows == 0;
}

/* ---- owners without a series ---- */

static uint64_t mix_text(uint64_t hash, const char *text)
{
    static const uint64_t prime = 1099511628211u;

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * prime;
    return (hash ^ 0x100) * prime;
}

/* Two owners that would have one series have one hash. */
static uint64_t hash_of(const struct owner *owner)
{
    static const uint64_t basis = 14695981039346656037u;
    struct share_series series;
    uint64_t hash;

    fill(&series, 0, USAGE_PROCESS, owner);
    hash = mix_text(basis, series.user);
    hash = mix_text(hash, series.training_job);
    hash = mix_text(hash, series.slurm_job);
    hash = mix_text(hash, series.pod);
    hash = mix_text(hash, series.pod_namespace);
    return mix_text(hash, series.container);
}

static int by_hash(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static size_t count_left_out(struct share_gpu *gpu)
{
    uint64_t hashes[LEDGER_ROWS_MAX];
    size_t count = 0, owners = 0;

    for (size_t i = 0; i < gpu->ledger.count; i++) {
        const struct ledger_row *row = &gpu->ledger.rows[i];
        const struct share_process *process;

        if (row->group != SHARE_NO_GROUP || row->ended_unix_ms != 0)
            continue;
        process = people_of(gpu->share, row->process);
        if (process != NULL)
            hashes[count++] = hash_of(&process->owner);
    }
    if (count > 1)
        qsort(hashes, count, sizeof hashes[0], by_hash);
    for (size_t i = 0; i < count; i++)
        owners += i == 0 || hashes[i] != hashes[i - 1];
    return owners;
}

size_t series_left_out(const struct share *share)
{
    size_t left_out = 0;

    for (size_t i = 0; i < share->gpu_count; i++)
        left_out += count_left_out(share->gpus[i]);
    return left_out;
}
