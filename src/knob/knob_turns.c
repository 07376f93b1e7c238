/* SPDX-License-Identifier: Apache-2.0 */
/* The turns that a session has not put back: its own record, and those of the journal and the guard. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/apart.h"
#include "base/thread/fork_guard.h"
#include "knob/debt.h"
#include "knob/knob_private.h"

/* How long a session, and a training in the same program with it, waits for the journal's disk. */
static const double journal_patience_s = 5.0;

int knob_check_fork(const struct knob *knob, struct fly_error *out_error)
{
    if (knob->generation == fork_generation())
        return 0;
    return error_set(
        out_error, FLY_ESTATE,
        "the knobs were opened by the parent of this process, which alone turns them; open them here "
        "once it has closed them");
}

int knob_look(const struct knob *knob, struct knob_gpu *gpu, bool may_trust, struct fly_error *out_error)
{
    struct turnable_options options = knob->others;
    struct mono_time now = mono_now();
    int code;

    gpu->leaned = may_trust && gpu->is_free && mono_elapsed_s(gpu->looked, now) < knob->trusted_s;
    options.begins = !knob->begun;
    options.overrules |= gpu->leaned; /* the operator's lock is looked at all the same */
    code = turnable_check(&options, gpu->device, out_error);
    if (!gpu->leaned)
        gpu->looked = now;
    gpu->is_free = code == 0;
    return code;
}

struct turn *knob_turn_of(struct knob_gpu *gpu, enum quantity quantity)
{
    for (size_t i = 0; i < gpu->entry.turn_count; i++) {
        if (gpu->entry.turns[i].quantity == quantity)
            return &gpu->entry.turns[i];
    }
    return NULL;
}

bool knob_owes(const struct knob *knob, const struct knob_gpu *gpu, enum quantity quantity,
               const struct setting *now, struct turn *out_debt)
{
    return debt_find(knob->directory, gpu->device->info.uuid, quantity, out_debt) &&
           (setting_is_clock(quantity) || turn_stands_on(gpu->device, out_debt, now));
}

bool knob_has_turn_besides(const struct knob_gpu *gpu, enum quantity quantity)
{
    for (size_t i = 0; i < gpu->entry.turn_count; i++) {
        if (gpu->entry.turns[i].quantity != quantity)
            return true;
    }
    return false;
}

/* What is written to the journal: a copy, since a disk may hold the writer up for longer than the session. */
struct writing {
    char directory[RUNTIME_PATH_MAX];
    enum journal_kind kind;
    struct journal_entry entry;
    struct fly_error error;
    int code;
};

static void write_now(void *of)
{
    struct writing *writing = of;

    writing->code = journal_write(writing->directory, writing->kind, &writing->entry, &writing->error);
}

static int is_silent(struct knob *knob, struct fly_error *out_error)
{
    knob->silent = true;
    return error_set(out_error, FLY_EBUSY,
                     "the disk with the journal '%s' does not answer, so nothing is turned; see the kernel's "
                     "log, or name another directory in FLYBALL_RUNTIME_DIR",
                     knob->directory);
}

int knob_write_entry(struct knob *knob, const struct knob_gpu *gpu, enum quantity quantity,
                     struct fly_error *out_error)
{
    struct writing *writing = knob->silent ? NULL : calloc(1, sizeof *writing);
    int code;

    if (knob->silent)
        return is_silent(knob, out_error);
    if (writing == NULL)
        return error_no_memory(out_error);
    memcpy(writing->directory, knob->directory, sizeof writing->directory);
    writing->kind = journal_kind_of(knob->kind, quantity);
    writing->entry = gpu->entry;
    if (!apart_run(write_now, free, writing, journal_patience_s))
        return is_silent(knob, out_error);
    code = writing->code;
    if (code < 0)
        error_set(out_error, code, "%s", writing->error.text);
    free(writing);
    return code;
}

int knob_drop_turn(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity,
                   struct fly_error *out_error)
{
    struct turn *turn = knob_turn_of(gpu, quantity);
    int code;

    if (turn == NULL)
        return 0;
    gpu->entry.turn_count--;
    memmove(turn, turn + 1, (size_t)(&gpu->entry.turns[gpu->entry.turn_count] - turn) * sizeof *turn);
    code = knob_write_entry(knob, gpu, quantity, out_error);
    /* A guard that has ended has nothing to forget. */
    guard_forget(&knob->guard, gpu->device->info.uuid, quantity, NULL);
    return code;
}
