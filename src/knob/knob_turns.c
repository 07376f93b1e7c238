/* SPDX-License-Identifier: Apache-2.0 */
/* The turns that a session has not put back: its own record, and those of the journal and the guard. */
#include <string.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "knob/debt.h"
#include "knob/knob_private.h"

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

int knob_write_entry(struct knob *knob, const struct knob_gpu *gpu, enum quantity quantity,
                     struct fly_error *out_error)
{
    int code = FLY_EBUSY;

    if (!knob->silent)
        code = journal_write(knob->directory, journal_kind_of(knob->kind, quantity), &gpu->entry, out_error);
    knob->silent = code == FLY_EBUSY;
    return knob->silent ? runtime_directory_silent(knob->directory, out_error) : code;
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
