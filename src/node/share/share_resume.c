/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on record becomes rows again. The file of what goes on says up to which end (serial) its sums
 * include rows that ended; later ends, written before a crash, come on top. So no energy counts twice, and
 * what the record does not know is unobserved: the watch's total has it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/share/share_keep.h"

enum { ARENA_MAX = 128 << 20, SAVED_MAX = 1 << 18 };

/* ---- reading ---- */

/* Parsed again, since the line's own memory is that of the visit. */
static int keep_line(struct share *share, const char *text, size_t length, bool is_end)
{
    struct saved_line *saved;
    char *copy;

    if (share->saved_count == share->saved_room) {
        size_t room = share->saved_room == 0 ? 64 : 2 * share->saved_room;
        struct saved_line *more = room <= SAVED_MAX ? realloc(share->saved, room * sizeof *more) : NULL;

        if (more == NULL)
            return FLY_ENOMEM;
        share->saved = more;
        share->saved_room = room;
    }
    saved = &share->saved[share->saved_count];
    *saved = (struct saved_line){.length = length, .is_end = is_end};
    copy = arena_alloc(&share->arena, length + 1, 1);
    if (copy == NULL)
        return FLY_ENOMEM;
    memcpy(copy, text, length);
    saved->text = copy;
    if (shape_read_text(&shape_usage_line, copy, length, SHAPE_LENIENT, &share->arena, &saved->line, NULL,
                        NULL) < 0)
        return 0;
    share->saved_count++;
    if (saved->line.serial > share->serial)
        share->serial = saved->line.serial;
    return 0;
}

static int visit_now(void *state, const struct usage_line *line, const char *text, size_t length)
{
    (void)line;
    return keep_line(state, text, length, false);
}

/* Returns up to which end the sums of a GPU go. */
static uint64_t serial_of(const struct share *share, const char *uuid)
{
    for (size_t i = 0; i < share->saved_count; i++) {
        const struct usage_line *line = &share->saved[i].line;

        if (!share->saved[i].is_end && strcmp(line->what, "gpu") == 0 && strcmp(line->row.uuid, uuid) == 0)
            return line->serial;
    }
    return 0;
}

static bool is_kept(const struct share *share, const struct usage_line *line)
{
    int64_t now_ms = clock_real.date(clock_real.state).ns / 1000000;

    return (double)(now_ms - line->row.ended_unix_ms) <= share->options.keep_s * 1e3;
}

static int visit_end(void *state, const struct usage_line *line, const char *text, size_t length)
{
    struct share *share = state;

    if (strcmp(line->what, "end") != 0 ||
        (!is_kept(share, line) && line->serial <= serial_of(share, line->row.uuid)))
        return 0;
    return keep_line(share, text, length, true);
}

void resume_read(struct share *share)
{
    size_t bad = 0, more = 0;
    struct fly_error error = {.text = "it has more lines than there is memory for"};
    int code;

    arena_init(&share->arena, ARENA_MAX);
    if (share->record == NULL)
        return;
    code = share_record_read_now(share->record, visit_now, share, &bad, &error);
    if (code == 0)
        code = share_record_read_ended(share->record, visit_end, share, &more, &error);
    if (code < 0)
        share_say(share, true, "who used the GPUs before is not all known: %s", error.text);
    if (bad + more > 0)
        share_say(share, true, "%zu lines of the record of who used the GPUs are damaged, and left out",
                  bad + more);
}

/* ---- processes ---- */

static void copy_text(char *to, size_t size, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;

    length = length < size ? length : size - 1;
    if (text != NULL)
        memcpy(to, text, length);
    to[length] = '\0';
}
#define COPY_TEXT(owner, member, row, from) copy_text((owner)->member, sizeof(owner)->member, (row)->from)

static void owner_of(const struct usage_line *line, bool over, struct owner *out_owner)
{
    const struct usage_row *row = &line->row;

    *out_owner = (struct owner){.pid = (pid_t)row->pid,
                                .sight = OWNER_SEEN,
                                .uid_known = row->uid >= 0,
                                .uid = row->uid >= 0 ? (uid_t)row->uid : 0,
                                .start_ticks = over ? 0 : line->start_ticks};
    for (int i = 0; row->runtime != NULL && i < OWNER_RUNTIME_COUNT; i++) {
        if (strcmp(owner_runtime_word((enum owner_runtime)i), row->runtime) == 0)
            out_owner->runtime = (enum owner_runtime)i;
    }
    COPY_TEXT(out_owner, user, row, user);
    COPY_TEXT(out_owner, command, row, command);
    COPY_TEXT(out_owner, cgroup, row, cgroup);
    COPY_TEXT(out_owner, container_id, row, container_id);
    COPY_TEXT(out_owner, slurm_job, row, slurm_job);
    COPY_TEXT(out_owner, slurm_step, row, slurm_step);
    COPY_TEXT(out_owner, pod_uid, row, pod_uid);
    COPY_TEXT(out_owner, pod, row, pod);
    COPY_TEXT(out_owner, pod_namespace, row, pod_namespace);
    COPY_TEXT(out_owner, container, row, container);
    COPY_TEXT(out_owner, training_job, row, training_job);
}

static bool is_that(const struct share_process *process, const struct usage_line *line)
{
    return process->number != 0 && process->owner.pid == (pid_t)line->row.pid &&
           process->started_unix_ms == line->row.started_unix_ms;
}

/* A process on several GPUs is one; after a restart of the machine it has ended. */
static struct share_process *person_of(struct share *share, const struct usage_line *line)
{
    bool over = line->boot == NULL || strcmp(line->boot, share->boot) != 0 || line->start_ticks == 0;
    struct share_process *made;
    struct owner owner;

    for (size_t i = 0; i < share->process_count; i++) {
        if (is_that(&share->processes[i], line))
            return &share->processes[i];
    }
    owner_of(line, over, &owner);
    made = people_add(share, &owner);
    if (made == NULL)
        return NULL;
    made->started_unix_ms = line->row.started_unix_ms;
    made->ended_unix_ms = line->row.ended_unix_ms != 0 ? line->row.ended_unix_ms : line->unix_ms;
    made->named = true;
    made->over = over;
    return made;
}

/* ---- rows ---- */

static double known_or_0(double value)
{
    return isfinite(value) && value >= 0.0 ? value : 0.0;
}

static struct ledger_row row_of(const struct usage_line *line, uint64_t process)
{
    const struct usage_row *row = &line->row;

    return (struct ledger_row){.process = process,
                               .energy_uj = row->energy_uj,
                               .half_width_uj = known_or_0(row->half_width_j) * 1e6,
                               .time_s = known_or_0(row->time_s),
                               .shared_s = known_or_0(row->shared_s),
                               .began_unix_ms =
                                   row->started_unix_ms > 0 ? row->started_unix_ms : line->unix_ms,
                               .ended_unix_ms = row->ended_unix_ms,
                               .told_uj = row->energy_uj};
}

static void resume_process(struct share_gpu *gpu, const struct usage_line *line)
{
    struct share_process *process = person_of(gpu->share, line);
    struct ledger_row saved = row_of(line, process != NULL ? process->number : LEDGER_OTHERS);

    if (saved.ended_unix_ms == 0)
        saved.ended_unix_ms = line->unix_ms;
    if (process == NULL)
        ledger_resume_row(&gpu->ledger, &gpu->ledger.others, &saved);
    else
        (void)ledger_resume_process(&gpu->ledger, &saved);
}

/* A set one of whose processes is not known any more is that of all others. */
static void resume_set(struct share_gpu *gpu, const struct usage_line *line)
{
    struct ledger_set set = {.row = row_of(line, 0)};

    for (size_t i = 0; i < line->row.sharer_count && i < LEDGER_SHARERS_MAX; i++) {
        const struct share_process *process = people_find(gpu->share, (pid_t)line->row.sharers[i], 0);

        if (process == NULL) {
            set.count = 0;
            break;
        }
        set.processes[set.count++] = process->number;
    }
    (void)ledger_resume_set(&gpu->ledger, &set);
}

static void resume_line(struct share_gpu *gpu, const struct usage_line *line, int64_t *ended_uj)
{
    const struct usage_row *row = &line->row;
    const struct ledger_row saved = row_of(line, 0);
    struct ledger_row *rests[USAGE_KIND_COUNT] = {[USAGE_PROCESS] = &gpu->ledger.others,
                                                  [USAGE_IDLE] = &gpu->ledger.idle,
                                                  [USAGE_UNOBSERVED] = &gpu->ledger.unobserved};

    if (strcmp(line->what, "gpu") == 0) {
        gpu->ledger.floor_w = line->idle_w;
        gpu->left_out_uj = line->left_out_uj;
        *ended_uj = line->ended_uj;
    } else if (strcmp(line->what, "series") == 0) {
        series_resume(gpu, row);
    } else if (row->kind == USAGE_PROCESS && row->pid != 0) {
        resume_process(gpu, line);
    } else if (rests[row->kind] != NULL) {
        ledger_resume_row(&gpu->ledger, rests[row->kind], &saved);
    }
}

/* An end, in the order of the record; `serial` is the last one that the sums of the GPU have. */
static void resume_end(struct share_gpu *gpu, const struct usage_line *line, uint64_t serial,
                       int64_t *ended_uj)
{
    struct share_process *process = person_of(gpu->share, line);
    struct ledger_row *row = process != NULL ? ledger_find(&gpu->ledger, process->number) : NULL;
    struct ledger_row saved = row_of(line, process != NULL ? process->number : 0);
    bool is_new = line->serial > serial;

    if (process == NULL || (row != NULL && !row->logged && !is_new))
        return;
    if (row != NULL) {
        saved.energy_uj = saved.energy_uj > row->energy_uj ? saved.energy_uj - row->energy_uj : 0;
        saved.half_width_uj = fmax(0.0, saved.half_width_uj - row->half_width_uj);
        saved.time_s = fmax(0.0, saved.time_s - row->time_s);
        saved.shared_s = fmax(0.0, saved.shared_s - row->shared_s);
    }
    saved.told_uj = is_new ? 0 : saved.energy_uj;
    if (!is_new)
        *ended_uj -= saved.energy_uj;
    row = ledger_resume_process(&gpu->ledger, &saved);
    row->logged = true;
}

/* Energy of rows that ended is in series that ended, as far as no series has it. */
static void resume_series(struct share_gpu *gpu)
{
    struct share *share = gpu->share;
    int64_t left_uj = gpu->ledger.energy_uj - gpu->ledger.idle.energy_uj - gpu->ledger.unobserved.energy_uj;

    series_settle(gpu, true);
    for (size_t i = 0; i < share->series_count; i++) {
        if (share->series[i].rows > 0 && share->series[i].gpu == gpu->gpu)
            left_uj -= share->series[i].energy_uj;
    }
    left_uj -= gpu->left_out_uj;
    gpu->ended_uj = left_uj > 0 ? left_uj : 0;
    if (left_uj < 0)
        gpu->left_out_uj = gpu->left_out_uj + left_uj > 0 ? gpu->left_out_uj + left_uj : 0;
    series_sweep(share);
}

static bool is_of(const struct saved_line *saved, const struct share_gpu *gpu)
{
    return !saved->taken && strcmp(saved->line.row.uuid, gpu->info.uuid) == 0;
}

void resume_gpu(struct share_gpu *gpu)
{
    struct share *share = gpu->share;
    uint64_t serial = serial_of(share, gpu->info.uuid);
    struct ledger_row rest = {.process = 0};
    int64_t ended_uj = 0;

    for (int sets = 0; sets < 2; sets++) {
        for (size_t i = 0; i < share->saved_count; i++) {
            struct saved_line *saved = &share->saved[i];
            bool is_set = strcmp(saved->line.what, "row") == 0 && saved->line.row.kind == USAGE_SHARED;

            if (saved->is_end || !is_of(saved, gpu) || is_set != (sets == 1))
                continue;
            if (is_set)
                resume_set(gpu, &saved->line);
            else
                resume_line(gpu, &saved->line, &ended_uj);
            saved->taken = true;
        }
    }
    for (size_t i = 0; i < share->saved_count; i++) {
        if (!share->saved[i].is_end || !is_of(&share->saved[i], gpu))
            continue;
        resume_end(gpu, &share->saved[i].line, serial, &ended_uj);
        share->saved[i].taken = true;
    }
    rest.energy_uj = rest.told_uj = ended_uj > 0 ? ended_uj : 0;
    ledger_resume_row(&gpu->ledger, &gpu->ledger.others, &rest);
    resume_series(gpu);
}
