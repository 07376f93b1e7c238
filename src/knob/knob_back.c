/* SPDX-License-Identifier: Apache-2.0 */
/* Puts back what a session turned, and detects changes by others. */
#include "base/error.h"
#include "knob/ceiling.h"
#include "knob/debt.h"
#include "knob/knob_private.h"

static void say_foreign(struct knob_gpu *gpu, int64_t found_mw)
{
    gpu->report.state = KNOB_FOREIGN;
    gpu->report.found_mw = found_mw;
    error_set(
        &gpu->report.error, FLY_ESTATE,
        "the power limit of GPU %u was changed by another program to %g W, after it was set to %g W here; it "
        "is left at that, and was %g W before: find out who else turns it",
        gpu->device->info.index, (double)found_mw * 1e-3, (double)gpu->report.set_mw * 1e-3,
        (double)gpu->report.previous_mw * 1e-3);
}

static void say_foreign_clock(struct knob_gpu *gpu, enum quantity quantity, int64_t ceiling_mhz,
                              int64_t found_mhz)
{
    gpu->report.state = KNOB_FOREIGN;
    gpu->report.found_clock_mhz = found_mhz;
    error_set(
        &gpu->report.error, FLY_ESTATE,
        "the %sclock of GPU %u is %lld MHz although a ceiling of %lld MHz was set here: another program "
        "has set clocks since, and they are left as they are; find out who does",
        quantity == QUANTITY_MEMORY_CLOCK_CEILING ? "memory " : "", gpu->device->info.index,
        (long long)found_mhz, (long long)ceiling_mhz);
}

static void say_foreign_workloads(struct knob_gpu *gpu, const struct workload_set *found)
{
    char now[WORKLOAD_TEXT_MAX], ours[WORKLOAD_TEXT_MAX], before[WORKLOAD_TEXT_MAX];

    gpu->report.state = KNOB_FOREIGN;
    gpu->report.workloads_foreign = true;
    gpu->report.workloads_found = *found;
    error_set(&gpu->report.error, FLY_ESTATE,
              "the workload profiles of GPU %u were changed by another program to %.80s, after %.80s was "
              "requested here; they are left so, and were %.80s before: find out who else turns them",
              gpu->device->info.index, workload_text(found, now), workload_text(&gpu->report.workloads, ours),
              workload_text(&gpu->report.workloads_before, before));
}

static void say_foreign_level(struct knob_gpu *gpu, int64_t found)
{
    gpu->report.state = KNOB_FOREIGN;
    gpu->report.level_found = found;
    error_set(
        &gpu->report.error, FLY_ESTATE,
        "the performance level of GPU %u was changed by another program to '%s', after '%s' was set here; "
        "it is left so, and was '%s' before: find out who else turns it",
        gpu->device->info.index, device_level_word(found), device_level_word(gpu->report.level),
        device_level_word(gpu->report.level_before));
}

/* Writes a debt down while a knob is put back. */
struct debtor {
    const struct knob *knob;
    const struct knob_gpu *gpu;
    int code;
    struct fly_error error;
};

static void note_debt(void *state, const struct turn *turn)
{
    struct debtor *debtor = state;

    debtor->code = debt_keep(debtor->knob->directory, &debtor->gpu->entry, turn, &debtor->error);
}

static void say_owed(const struct knob *knob, struct knob_gpu *gpu)
{
    char text[DEBT_TEXT_MAX];

    if (gpu->report.state == KNOB_STUCK || !debt_say(knob->directory, gpu->device, text))
        return;
    gpu->report.state = KNOB_OWED;
    error_set(&gpu->report.error, FLY_ESTATE, "%s", text);
}

/* Puts one knob back; the error is that of a knob that could not be put back, or could not be forgotten. */
static int put_back_one(struct knob *knob, struct knob_gpu *gpu, struct turn *turn,
                        struct fly_error *out_error)
{
    struct debtor debtor = {.knob = knob, .gpu = gpu};
    const struct turn_note note = {.note = note_debt, .state = &debtor};
    struct setting found;

    switch (turn_back(&knob->site, gpu->device, turn, true, &note, &found, out_error)) {
    case TURN_FAILED:
        gpu->report.state = KNOB_STUCK;
        return FLY_EREAD;
    case TURN_SHORT:
        if (debtor.code < 0) {
            gpu->report.state = KNOB_STUCK;
            return error_set(out_error, debtor.code, "%s", debtor.error.text);
        }
        say_owed(knob, gpu);
        break;
    case TURN_FOREIGN:
        if (turn->quantity == QUANTITY_POWER_LIMIT)
            say_foreign(gpu, found.number);
        else if (setting_is_clock(turn->quantity))
            say_foreign_clock(gpu, turn->quantity, turn->ours.number, found.number);
        else if (turn->quantity == QUANTITY_WORKLOADS)
            say_foreign_workloads(gpu, &found.workloads);
        else if (turn->quantity == QUANTITY_PERFORMANCE_LEVEL)
            say_foreign_level(gpu, found.number);
        break;
    case TURN_RESTORED:
    case TURN_UNNEEDED:
        if (turn->quantity == QUANTITY_PERSISTENCE)
            gpu->report.persistence_turned = false;
        else if (turn->quantity == QUANTITY_CLOCK_CEILING)
            gpu->report.ceiling_mhz = 0;
        else if (turn->quantity == QUANTITY_MEMORY_CLOCK_CEILING)
            gpu->report.memory_ceiling_mhz = 0;
        break;
    }
    return knob_drop_turn(knob, gpu, turn->quantity, out_error);
}

int knob_put_back(struct knob *knob, struct knob_gpu *gpu, struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    int code = 0;

    /* FOREIGN knobs stay FOREIGN. */
    if (gpu->report.state == KNOB_TURNED || gpu->report.state == KNOB_STUCK)
        gpu->report.state = KNOB_UNTURNED;
    for (size_t i = gpu->entry.turn_count; i > 0; i--) {
        struct turn turn = gpu->entry.turns[i - 1], *left;

        if (put_back_one(knob, gpu, &turn, &error) == 0)
            continue;
        /* It may have been moved all the same. */
        left = knob_turn_of(gpu, turn.quantity);
        if (left != NULL)
            *left = turn;
        if (code == 0) {
            code = error.code;
            if (out_error != NULL)
                *out_error = error;
        }
    }
    if (gpu->report.state == KNOB_STUCK)
        gpu->report.error = error;
    else if (gpu->report.state == KNOB_UNTURNED)
        gpu->report.error.code = 0;
    return code;
}

int knob_restore(struct knob *knob, struct fly_error *out_error)
{
    struct fly_error error;
    int code = knob_check_fork(knob, out_error);

    if (code < 0)
        return code;
    for (size_t i = knob->count; i > 0; i--) {
        int one = knob_put_back(knob, &knob->gpus[i - 1], &error);

        if (one < 0 && code == 0) {
            code = one;
            if (out_error != NULL)
                *out_error = error;
        }
    }
    return code;
}

static bool find_foreign_clock(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity)
{
    const struct turn *turn = knob_turn_of(gpu, quantity);
    int64_t clock_mhz;

    if (turn == NULL || turn_is_intent(turn) ||
        ceiling_may_stand(gpu->device, quantity, turn->ours.number, &clock_mhz))
        return false;
    say_foreign_clock(gpu, quantity, turn->ours.number, clock_mhz);
    knob_drop_turn(knob, gpu, quantity, NULL);
    return true;
}

/* Finds a change of a knob that can be read. */
static bool find_foreign(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity)
{
    const struct turn *turn = knob_turn_of(gpu, quantity);
    struct setting now;

    if (turn == NULL || setting_read(gpu->device, quantity, &now) != READING_OK ||
        turn_stands_on(gpu->device, turn, &now))
        return false;
    if (quantity == QUANTITY_POWER_LIMIT)
        say_foreign(gpu, now.number);
    else if (quantity == QUANTITY_PERFORMANCE_LEVEL)
        say_foreign_level(gpu, now.number);
    else
        say_foreign_workloads(gpu, &now.workloads);
    knob_drop_turn(knob, gpu, quantity, NULL);
    return true;
}

bool knob_find_foreign(struct knob *knob, struct knob_gpu *gpu)
{
    return find_foreign(knob, gpu, QUANTITY_POWER_LIMIT) || find_foreign(knob, gpu, QUANTITY_WORKLOADS) ||
           find_foreign(knob, gpu, QUANTITY_PERFORMANCE_LEVEL) ||
           find_foreign_clock(knob, gpu, QUANTITY_CLOCK_CEILING) ||
           find_foreign_clock(knob, gpu, QUANTITY_MEMORY_CLOCK_CEILING);
}

int knob_check_guard(struct knob *knob, struct fly_error *out_error)
{
    long long pid = (long long)knob->guard.pid;
    struct fly_error error = {.code = 0};

    if (knob->ended)
        return error_set(
            out_error, FLY_ESTATE,
            "the guard, which turns knobs back, has ended before its time, so that nothing is turned "
            "any more; start again");
    if (guard_lives(&knob->guard))
        return 0;
    knob->ended = true;
    guard_end(&knob->guard);
    knob_restore(knob, &error);
    return error_set(
        out_error, FLY_ESTATE,
        "the guard, process %lld, which turns knobs back, has ended before its time; %s%.200s; nothing is "
        "turned any more: find out who killed it, and start again",
        pid, error.code == 0 ? "what was turned is turned back" : "and ", error.text);
}

int knob_check(struct knob *knob, struct fly_error *out_error)
{
    int code = knob_check_fork(knob, out_error);

    if (code == 0)
        code = knob_check_guard(knob, out_error);
    for (size_t i = 0; i < knob->count && code == 0; i++) {
        struct knob_gpu *gpu = &knob->gpus[i];

        if (gpu->report.state == KNOB_TURNED && knob_find_foreign(knob, gpu))
            code = error_set(out_error, gpu->report.error.code, "%s", gpu->report.error.text);
        if (gpu->leaned && mono_elapsed_s(gpu->looked, mono_now()) > knob->trusted_s / 2)
            knob_look(knob, gpu, false, NULL);
    }
    return code;
}
