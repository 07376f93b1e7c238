/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes sessions. */
#include "knob/knob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "knob/debt.h"
#include "knob/gpu_lock.h"
#include "knob/knob_defaults.h"
#include "knob/knob_private.h"
#include "knob/repair.h"
#include "knob/stranger.h"

static void read_previous(struct knob_gpu *gpu)
{
    struct setting limit = {.number = 0}, workloads = {.number = 0}, level = {.number = KNOB_NO_LEVEL};

    setting_read(gpu->device, QUANTITY_POWER_LIMIT, &limit);
    setting_read(gpu->device, QUANTITY_WORKLOADS, &workloads);
    gpu->report.previous_mw = limit.number;
    gpu->report.workloads_before = workloads.workloads;
    setting_read(gpu->device, QUANTITY_PERFORMANCE_LEVEL, &level);
    gpu->report.level_before = level.number;
    gpu->report.level = gpu->report.level_found = KNOB_NO_LEVEL;
}

/* Repairs what an earlier session left in one of the two files. */
static int repair_left(const struct knob *knob, struct knob_gpu *gpu, const struct knob_options *options,
                       enum journal_kind kind)
{
    struct knob_report *report = &gpu->report;
    size_t length = strlen(report->repaired);
    struct repair repair;

    if (!journal_exists(knob->directory, kind, gpu->device->info.uuid))
        return 0;
    repair_gpu(knob->directory, options, gpu->device, kind, &repair);
    if (repair.end != REPAIR_OWED)
        snprintf(report->repaired + length, sizeof report->repaired - length, "%s%.191s",
                 length > 0 ? "; " : "", repair.text);
    /* What is owed holds up nobody, and is put back with what this session turns. */
    if (repair.end != REPAIR_FAILED || kind == JOURNAL_OWED ||
        (repair.may_be_owed && debt_keep_entry(knob->directory, gpu->device->info.uuid, kind, NULL) == 0))
        return 0;
    return error_set(&report->error, FLY_ESTATE, "%s", repair.text);
}

/* Takes the lock, repairs, and checks whether others use the GPU; the report says what was found. */
static int open_gpu(struct knob *knob, struct knob_gpu *gpu, const struct knob_options *options)
{
    struct fly_error *error = &gpu->report.error;
    int code = 0;

    if (gpu->device->backend->set != NULL)
        code = stranger_lock_take(knob->directory, options, gpu->device, &gpu->lock, error);
    for (int kind = JOURNAL_TURNED; code == 0 && gpu->lock >= 0 && kind <= JOURNAL_OWED; kind++)
        code = repair_left(knob, gpu, options, (enum journal_kind)kind);
    read_previous(gpu);
    if (code == 0)
        code = knob_look(knob, gpu, false, error);
    return code;
}

/* Adopts the turns of a file that an earlier kept session left, except those that do not stand any more. */
static void adopt_file(const struct knob *knob, struct knob_gpu *gpu, enum journal_kind kind)
{
    struct journal_entry kept;

    if (journal_read(knob->directory, kind, gpu->device->info.uuid, &kept, NULL) < 0 ||
        !journal_is_of_this_boot(&kept))
        return;
    if (kept.daemon[0] != '\0')
        memcpy(gpu->entry.daemon, kept.daemon, SITE_PLACE_MAX);
    for (size_t i = 0; i < kept.turn_count && gpu->entry.turn_count < TURNS_MAX; i++) {
        const struct turn *turn = &kept.turns[i];
        struct setting now;

        if (turn->quantity != QUANTITY_PERSISTENCE &&
            (setting_read(gpu->device, turn->quantity, &now) != READING_OK ||
             !turn_stands_on(gpu->device, turn, &now)))
            continue;
        if (knob_turn_of(gpu, turn->quantity) == NULL)
            gpu->entry.turns[gpu->entry.turn_count++] = *turn;
    }
}

/*
 * Adopts what an earlier kept session left, if its setting is still in force; it knows what was set
 * before all kept sessions.
 */
static void adopt_kept(const struct knob *knob, struct knob_gpu *gpu)
{
    adopt_file(knob, gpu, JOURNAL_KEPT);
    adopt_file(knob, gpu, JOURNAL_KEPT_2);
    if (knob_has_turn_besides(gpu, QUANTITY_PERSISTENCE))
        gpu->report.state = KNOB_TURNED;
    else
        gpu->entry.turn_count = 0;
    gpu->report.persistence_turned = knob_turn_of(gpu, QUANTITY_PERSISTENCE) != NULL;
}

static void open_gpus(struct knob *knob, const struct device *const *devices,
                      const struct knob_options *options)
{
    for (size_t i = 0; i < knob->count; i++) {
        struct knob_gpu *gpu = &knob->gpus[i];

        gpu->device = devices[i];
        gpu->lock = -1;
        journal_begin(devices[i]->info.uuid, knob_program(options), &gpu->entry);
        gpu->report.state = open_gpu(knob, gpu, options) == 0 ? KNOB_UNTURNED : KNOB_DENIED;
        if (knob->kind == JOURNAL_KEPT && gpu->report.state == KNOB_UNTURNED)
            adopt_kept(knob, gpu);
        if (gpu->report.state == KNOB_DENIED) {
            gpu_lock_release(gpu->lock);
            gpu->lock = -1;
        }
    }
}

static bool any_to_turn(const struct knob *knob)
{
    for (size_t i = 0; i < knob->count; i++) {
        if (knob->gpus[i].report.state != KNOB_DENIED)
            return true;
    }
    return false;
}

static int start_guard(struct knob *knob, const struct knob_options *options, struct fly_error *out_error)
{
    struct guard_options guard = {.path = options->guard_path,
                                  .nvml_path = options->nvml_path,
                                  .amdsmi_path = options->amdsmi_path,
                                  .directory = knob->directory,
                                  .site = &knob->site};
    int code = guard_start(&guard, &knob->guard, out_error);

    for (size_t i = 0; i < knob->count && code == 0; i++) {
        const struct knob_gpu *gpu = &knob->gpus[i];

        if (gpu->report.state != KNOB_DENIED)
            code = guard_hold(&knob->guard, &gpu->device->info, gpu->lock, out_error);
    }
    return code;
}

int knob_open(const struct knob_options *options, const struct device *const *devices, size_t count,
              struct knob **out_knob, struct fly_error *out_error)
{
    struct knob *knob;
    int code;

    if (count > DEVICES_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "%zu GPUs are more than %d; turn the knobs of fewer at a time", count, DEVICES_MAX);
    knob = calloc(1, sizeof *knob + count * sizeof knob->gpus[0]);
    if (knob == NULL)
        return error_no_memory(out_error);
    knob->guard.socket = -1;
    site_init(options->daemon, &knob->site);
    knob->generation = fork_generation();
    knob->others = knob_others(options);
    knob->trusted_s = options->trusted_s;
    knob->kind = options->kept ? JOURNAL_KEPT : JOURNAL_TURNED;
    code = options->daemon == NULL ? site_check_environment(out_error) : 0;
    if (code == 0)
        code = runtime_directory_find(options->runtime_directory, knob->directory, out_error);
    if (code == 0) {
        knob->count = count;
        knob->begun = options->resumes;
        open_gpus(knob, devices, options);
        knob->begun = true;
        if (!options->kept && any_to_turn(knob))
            code = start_guard(knob, options, out_error);
    }
    if (code < 0)
        knob_close(knob, NULL);
    else
        *out_knob = knob;
    return code;
}

int knob_may_turn(const struct knob *knob, size_t place, struct fly_error *out_error)
{
    const struct knob_report *report = &knob->gpus[place].report;
    int code = knob_check_fork(knob, out_error);

    if (code < 0 || report->error.code == 0)
        return code;
    return error_set(out_error, report->error.code, "%s", report->error.text);
}

void knob_allow(struct knob *knob, const pid_t *allowed, size_t count, bool overrules)
{
    knob->others.allowed = allowed;
    knob->others.allowed_count = count;
    knob->others.overrules = overrules;
    for (size_t i = 0; i < knob->count; i++)
        knob->gpus[i].is_free = false;
}

int knob_watch_fd(const struct knob *knob)
{
    return knob_check_fork(knob, NULL) < 0 ? -1 : knob->guard.socket;
}

pid_t knob_guard_pid(const struct knob *knob)
{
    return knob->guard.pid;
}

const struct site *knob_site(const struct knob *knob)
{
    return &knob->site;
}

const struct knob_report *knob_report(const struct knob *knob, size_t place)
{
    return &knob->gpus[place].report;
}

void knob_close(struct knob *knob, struct knob_report *out_reports)
{
    if (knob == NULL)
        return;
    if (knob_check_fork(knob, NULL) == 0) {
        if (knob->kind == JOURNAL_TURNED)
            knob_restore(knob, NULL);
        guard_end(&knob->guard);
        for (size_t i = 0; i < knob->count; i++)
            gpu_lock_release(knob->gpus[i].lock);
    }
    for (size_t i = 0; i < knob->count && out_reports != NULL; i++)
        out_reports[i] = knob->gpus[i].report;
    free(knob);
}
