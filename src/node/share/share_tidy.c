/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that get rows, and those that are forgotten since they need not be kept. */
#include <string.h>

#include "base/clock.h"
#include "node/share/share_private.h"

enum { MS_PER_S = 1000 };

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
    series_sweep(share);
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
    }
    *place = (struct share_process){.number = ++share->last_number,
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
    if (process != NULL && process->ended_unix_ms != 0)
        forget(share, process);
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

/* Notes when a process was last on any GPU. Returns false if it has a row that is not in the record yet. */
static bool note_end(struct share *share, struct share_process *process, int64_t now_unix_ms)
{
    int64_t ended_unix_ms = 0;
    bool there = false, logged = true, any = false;

    for (size_t i = 0; i < share->gpu_count; i++) {
        const struct ledger_row *row = ledger_find(&share->gpus[i]->ledger, process->number);

        if (row == NULL)
            continue;
        any = true;
        there = there || row->ended_unix_ms == 0;
        logged = logged && row->logged;
        if (row->ended_unix_ms > ended_unix_ms)
            ended_unix_ms = row->ended_unix_ms;
    }
    if (!any && process->ended_unix_ms == 0)
        ended_unix_ms = now_unix_ms;
    if (any || process->ended_unix_ms == 0)
        process->ended_unix_ms = there ? 0 : ended_unix_ms;
    return logged;
}

void people_tidy(struct share *share)
{
    int64_t now_ms = clock_real.date(clock_real.state).ns / 1000000;
    int64_t before_unix_ms = now_ms - (int64_t)(share->options.keep_s * MS_PER_S);

    for (size_t i = 0; i < share->process_count; i++) {
        struct share_process *process = &share->processes[i];
        bool recorded;

        if (process->number == 0)
            continue;
        recorded = note_end(share, process, now_ms) || share->record == NULL;
        if (recorded && is_over_since(process, before_unix_ms) &&
            !job_goes_on(share, process, before_unix_ms))
            forget(share, process);
    }
}
