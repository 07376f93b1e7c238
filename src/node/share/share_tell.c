/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all ledgers as they are told: to clients, and to the record. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "node/share/share_private.h"

enum { ARENA_MAX = 64 << 20 };

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void tell_owner(const struct owner *owner, struct usage_row *row)
{
    row->uid = owner->uid_known ? (int64_t)owner->uid : -1;
    row->user = known(owner->user);
    row->command = known(owner->command);
    row->cgroup = known(owner->cgroup);
    row->runtime = owner->runtime != OWNER_RUNTIME_NONE ? owner_runtime_word(owner->runtime) : NULL;
    row->container_id = known(owner->container_id);
    row->slurm_job = known(owner->slurm_job);
    row->slurm_step = known(owner->slurm_step);
    row->pod_uid = known(owner->pod_uid);
    row->pod = known(owner->pod);
    row->pod_namespace = known(owner->pod_namespace);
    row->container = known(owner->container);
    row->training_job = known(owner->training_job);
}

void tell_rest(struct share_gpu *gpu, enum usage_kind kind, const struct ledger_row *row,
               struct usage_row *out_row)
{
    *out_row = (struct usage_row){
        .kind = kind,
        .gpu = gpu->info.index,
        .uuid = gpu->info.uuid,
        .uid = -1,
        .energy_j = (double)row->energy_uj / 1e6,
        .energy_uj = row->energy_uj,
        .half_width_j = ledger_half_width_uj(row) * 1e-6,
        .time_s = row->time_s,
        .shared_s = row->shared_s,
        .power_w = row->power_w,
        .memory_bytes = row->memory_bytes > INT64_MAX ? -1 : (int64_t)row->memory_bytes,
    };
}

void tell_process(struct share_gpu *gpu, const struct ledger_row *row, struct usage_row *out_row)
{
    const struct share_process *process = people_of(gpu->share, row->process);

    tell_rest(gpu, USAGE_PROCESS, row, out_row);
    out_row->ended_unix_ms = row->ended_unix_ms;
    if (row->energy_uj == 0 && row->shared_s > 0.0)
        out_row->energy_j = out_row->half_width_j = NAN;
    if (row->ended_unix_ms != 0)
        out_row->power_w = NAN;
    if (process == NULL)
        return;
    out_row->pid = (uint64_t)process->owner.pid;
    out_row->started_unix_ms = process->started_unix_ms;
    tell_owner(&process->owner, out_row);
}

/* Texts that sharers have in common are those of the first of them, which stay as long as he does. */
static void tell_common(struct share *share, const struct ledger_set *set, struct usage_row *row)
{
    const struct share_process *first = people_of(share, set->processes[0]);
    struct usage_row told = *row;
    struct owner common;

    people_common(share, set, &common);
    if (first == NULL)
        return;
    tell_owner(&first->owner, &told);
    row->uid = common.uid_known ? told.uid : -1;
    row->user = common.user[0] != '\0' ? told.user : NULL;
    row->command = common.command[0] != '\0' ? told.command : NULL;
    row->cgroup = common.cgroup[0] != '\0' ? told.cgroup : NULL;
    row->runtime = common.runtime != OWNER_RUNTIME_NONE ? told.runtime : NULL;
    row->container_id = common.container_id[0] != '\0' ? told.container_id : NULL;
    row->slurm_job = common.slurm_job[0] != '\0' ? told.slurm_job : NULL;
    row->slurm_step = common.slurm_step[0] != '\0' ? told.slurm_step : NULL;
    row->pod_uid = common.pod_uid[0] != '\0' ? told.pod_uid : NULL;
    row->pod = common.pod[0] != '\0' ? told.pod : NULL;
    row->pod_namespace = common.pod_namespace[0] != '\0' ? told.pod_namespace : NULL;
    row->container = common.container[0] != '\0' ? told.container : NULL;
    row->training_job = common.training_job[0] != '\0' ? told.training_job : NULL;
}

int tell_set(struct share_gpu *gpu, const struct ledger_set *set, struct arena *arena,
             struct usage_row *out_row)
{
    uint32_t *sharers = arena_alloc(arena, set->count + 1, sizeof *sharers);

    if (sharers == NULL)
        return FLY_ENOMEM;
    tell_rest(gpu, USAGE_SHARED, &set->row, out_row);
    for (size_t i = 0; i < set->count; i++) {
        const struct share_process *process = people_of(gpu->share, set->processes[i]);

        if (process != NULL)
            sharers[out_row->sharer_count++] = (uint32_t)process->owner.pid;
    }
    out_row->sharers = sharers;
    if (set->count > 0)
        tell_common(gpu->share, set, out_row);
    return 0;
}

/* ---- all of it, as a copy ---- */

static bool is_there(const struct ledger_row *row)
{
    return row->energy_uj > 0 || row->time_s > 0.0;
}

static size_t count_rows(const struct share *share)
{
    size_t count = 0;

    for (size_t i = 0; i < share->gpu_count; i++)
        count += share->gpus[i]->ledger.count + share->gpus[i]->ledger.set_count + 3;
    return count;
}

static int copy_text(struct arena *arena, const char **text)
{
    if (*text == NULL)
        return 0;
    *text = arena_strdup(arena, *text);
    return *text != NULL ? 0 : FLY_ENOMEM;
}

/* What is told while the lock is held becomes the copy's own. */
static int copy_texts(struct arena *arena, const char *uuid, struct usage_row *row)
{
    const char **const texts[] = {&row->user,         &row->command,     &row->cgroup,
                                  &row->container_id, &row->slurm_job,   &row->slurm_step,
                                  &row->pod_uid,      &row->pod,         &row->pod_namespace,
                                  &row->container,    &row->training_job};
    int code = 0;

    row->uuid = uuid;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && code == 0; i++)
        code = copy_text(arena, texts[i]);
    return code;
}

static int copy_gpu(struct share_gpu *gpu, struct arena *arena, struct usage_gpu *out_gpu)
{
    const struct device_info *info = &gpu->info;

    *out_gpu = (struct usage_gpu){
        .gpu = info->index,
        .uuid = arena_strdup(arena, info->uuid),
        .name = arena_strdup(arena, info->name),
        .source = usage_source_word(info->emulated, info->estimated),
        .energy_j = (double)gpu->ledger.energy_uj / 1e6,
        .energy_uj = gpu->ledger.energy_uj,
        .idle_w = gpu->ledger.floor_w,
        .unix_ms = gpu->counted_unix_ms,
    };
    return out_gpu->uuid != NULL && out_gpu->name != NULL ? 0 : FLY_ENOMEM;
}

static int copy_rows(struct share_gpu *gpu, const char *uuid, struct share_told *told)
{
    const struct ledger *ledger = &gpu->ledger;
    int code = 0;

    for (size_t i = 0; i < ledger->count && code == 0; i++) {
        struct usage_row *row = &told->rows[told->row_count++];

        tell_process(gpu, &ledger->rows[i], row);
        code = copy_texts(told->arena, uuid, row);
    }
    if (is_there(&ledger->others))
        tell_rest(gpu, USAGE_PROCESS, &ledger->others, &told->rows[told->row_count++]);
    for (size_t i = 0; i < ledger->set_count && code == 0; i++) {
        struct usage_row *row = &told->rows[told->row_count];

        if (!is_there(&ledger->sets[i].row))
            continue;
        code = tell_set(gpu, &ledger->sets[i], told->arena, row);
        told->row_count++;
        if (code == 0)
            code = copy_texts(told->arena, uuid, row);
    }
    tell_rest(gpu, USAGE_IDLE, &ledger->idle, &told->rows[told->row_count++]);
    tell_rest(gpu, USAGE_UNOBSERVED, &ledger->unobserved, &told->rows[told->row_count++]);
    return code;
}

static int copy(struct share *share, struct share_told *told)
{
    int code = 0;

    told->gpus = arena_alloc(told->arena, share->gpu_count + 1, sizeof *told->gpus);
    told->rows = arena_alloc(told->arena, count_rows(share) + 1, sizeof *told->rows);
    if (told->gpus == NULL || told->rows == NULL)
        return FLY_ENOMEM;
    for (size_t i = 0; i < share->gpu_count && code == 0; i++) {
        size_t first = told->row_count;

        code = copy_gpu(share->gpus[i], told->arena, &told->gpus[told->gpu_count++]);
        if (code == 0)
            code = copy_rows(share->gpus[i], told->gpus[i].uuid, told);
        for (size_t k = first; k < told->row_count; k++)
            told->rows[k].uuid = told->gpus[i].uuid;
    }
    return code;
}

int share_tell(struct share *share, struct share_told *out_told, struct fly_error *out_error)
{
    struct share_told told = {.arena = calloc(1, sizeof *told.arena)};
    int code;

    if (told.arena == NULL)
        return error_no_memory(out_error);
    arena_init(told.arena, ARENA_MAX);
    pthread_mutex_lock(&share->group.lock);
    code = copy(share, &told);
    pthread_mutex_unlock(&share->group.lock);
    if (code < 0) {
        share_told_free(&told);
        return error_no_memory(out_error);
    }
    *out_told = told;
    return 0;
}

void share_told_free(struct share_told *told)
{
    if (told->arena != NULL)
        arena_deinit(told->arena);
    free(told->arena);
    told->arena = NULL;
}
