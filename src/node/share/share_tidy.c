/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that get rows, and those that are forgotten since they need not be kept. */
#include <string.h>

#include "base/clock.h"
#include "node/share/share_private.h"

enum { MS_PER_S = 1000 };

/* Afterwards series have to be swept. */
static void forget(struct share *share, struct share_process *process)
{
    for (size_t i = 0; i < share->gpu_count; i++) {
        struct share_gpu *gpu = share->gpus[i];
        struct ledger_row *row = ledger_find(&gpu->ledger, process->number);

        if (row == NULL)
            continue;
        series_leave(gpu, row);
        ledger_fold(&gpu->ledger, process->number);
    }
    process->number = 0;
}

static struct share_process *longest_ended(struct share *share)
{
    struct share_process *found = NULL;

    for (size_t i = 0; i < share->process_count; i++) {
        struct share_process *process = &share->processes[i];

        if (process->number != 0 && process->ended_unix_ms != 0 &&
            (found == NULL || process->ended_unix_ms < found->ended_unix_ms))
            found = process;
    }
    return found;
}

/* Places are used from the first on, so that memory beyond those in use is never touched. */
static struct share_process *free_place(struct share *share)
{
    struct share_process *places = share->processes;

    for (size_t i = 0; places != NULL && i < share->process_count; i++) {
        if (places[i].number == 0)
            return &places[i];
    }
    return places != NULL && share->process_count < SHARE_PROCESSES_MAX ? &places[share->process_count++]
                                                                        : NULL;
}

struct share_process *people_add(struct share *share, const struct owner *owner)
{
    struct share_process *place = free_place(share);

    if (place == NULL) {
        place = longest_ended(share);
        if (place == NULL)
            return NULL;
        forget(share, place);
        series_sweep(share);
    }
    *place = (struct share_process){.number = ++share->numbers * SHARE_PROCESSES_MAX +
                                              (uint64_t)(place - share->processes),
                                    .owner = *owner,
                                    .passive = strncmp(owner->command, "nvidia-cuda-mps", 15) == 0};
    return place;
}

void people_make_room(struct share_gpu *gpu)
{
    struct share *share = gpu->share;
    const struct ledger_row *oldest = NULL;
    struct share_process *process;

    if (gpu->ledger.count < gpu->ledger.maximum)
        return;
    for (size_t i = 0; i < gpu->ledger.count; i++) {
        const struct ledger_row *row = &gpu->ledger.rows[i];

        if (row->ended_unix_ms != 0 && (oldest == NULL || row->ended_unix_ms < oldest->ended_unix_ms))
            oldest = row;
    }
    process = oldest != NULL ? people_of(share, oldest->process) : NULL;
    if (process == NULL || process->ended_unix_ms == 0)
        return;
    forget(share, process);
    series_sweep(share);
}

/* ---- who need not be kept ---- */

static bool is_same(const char *one, const char *other)
{
    return one[0] != '\0' && strcmp(one, other) == 0;
}

static bool is_same_job(const struct owner *one, const struct owner *other)
{
    return is_same(one->slurm_job, other->slurm_job) || is_same(one->pod_uid, other->pod_uid) ||
           (is_same(one->training_job, other->training_job) && one->uid == other->uid);
}

static bool is_over_since(const struct share_process *process, int64_t before_unix_ms)
{
    return process->ended_unix_ms != 0 && process->ended_unix_ms < before_unix_ms;
}

static bool job_goes_on(const struct share *share, const struct share_process *process,
                        int64_t before_unix_ms)
{
    for (size_t i = 0; i < share->process_count; i++) {
        const struct share_process *other = &share->processes[i];

        if (other->number != 0 && !is_over_since(other, before_unix_ms) &&
            is_same_job(&process->owner, &other->owner))
            return true;
    }
    return false;
}

static void look_at_row(struct share *share, const struct ledger_row *row)
{
    struct share_process *process = people_of(share, row->process);

    if (process == NULL)
        return;
    process->rows.any = true;
    process->rows.there = process->rows.there || row->ended_unix_ms == 0;
    process->rows.logged = process->rows.logged && row->logged;
    if (row->ended_unix_ms > process->rows.ended_unix_ms)
        process->rows.ended_unix_ms = row->ended_unix_ms;
}

static void look_at_rows(struct share *share)
{
    for (size_t i = 0; i < share->process_count; i++) {
        share->processes[i].rows.any = share->processes[i].rows.there = false;
        share->processes[i].rows.logged = true;
        share->processes[i].rows.ended_unix_ms = 0;
    }
    for (size_t i = 0; i < share->gpu_count; i++) {
        for (size_t k = 0; k < share->gpus[i]->ledger.count; k++)
            look_at_row(share, &share->gpus[i]->ledger.rows[k]);
    }
}

/* One without a row is between its first look and its first row, or among the others for lack of room. */
static void note_end(struct share_process *process, int64_t now_unix_ms)
{
    if (process->rows.any)
        process->ended_unix_ms = process->rows.there ? 0 : process->rows.ended_unix_ms;
    else if (process->ended_unix_ms == 0)
        process->ended_unix_ms = now_unix_ms;
}

void people_tidy(struct share *share)
{
    int64_t now_ms = clock_real.date(clock_real.state).ns / 1000000;
    int64_t before_unix_ms = now_ms - (int64_t)(share->options.keep_s * MS_PER_S);
    bool forgot = false;

    look_at_rows(share);
    for (size_t i = 0; i < share->process_count; i++) {
        if (share->processes[i].number != 0)
            note_end(&share->processes[i], now_ms);
    }
    for (size_t i = 0; i < share->process_count; i++) {
        struct share_process *process = &share->processes[i];
        bool recorded = process->rows.logged || share->record == NULL;

        if (process->number == 0 || !recorded || !is_over_since(process, before_unix_ms) ||
            job_goes_on(share, process, before_unix_ms))
            continue;
        forget(share, process);
        forgot = true;
    }
    if (forgot)
        series_sweep(share);
}
