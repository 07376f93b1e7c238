/* SPDX-License-Identifier: Apache-2.0 */
/* Turns knobs. Each turn is written down, told to the guard, made, and written down again. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "knob/ceiling.h"
#include "knob/debt.h"
#include "knob/gpu_lock.h"
#include "knob/knob_private.h"

/* What a call has to set on each GPU, and the values before it, to go back to if the call fails. */
struct wishes {
    enum quantity quantity;
    bool wanted[DEVICES_MAX], begun[DEVICES_MAX];
    struct setting values[DEVICES_MAX], before[DEVICES_MAX];
};

/* Reads the value of a knob; for a ceiling what this session knows, since no driver reports it. */
static int read_now(struct knob_gpu *gpu, enum quantity quantity, struct setting *out_value,
                    struct fly_error *out_error)
{
    const struct turn *turn = knob_turn_of(gpu, quantity);
    enum reading_state state;

    if (setting_is_clock(quantity)) {
        *out_value = turn != NULL ? turn->ours : setting_number(0);
        return 0;
    }
    state = setting_read(gpu->device, quantity, out_value);
    if (state != READING_OK)
        return error_set(out_error, state == READING_UNSUPPORTED ? FLY_EUNSUPPORTED : FLY_EREAD,
                         "the %s of GPU %u cannot be read before it is set: %s; see 'flyball doctor'",
                         quantity_facts[quantity].title, gpu->device->info.index,
                         reading_state_clause(state));
    return 0;
}

/* A debt that still stands is as before. */
static bool is_as_before(const struct knob *knob, const struct knob_gpu *gpu, const struct turn *turn,
                         const struct setting *value)
{
    struct turn debt;

    return setting_equals(value, &turn->previous) ||
           (knob_owes(knob, gpu, turn->quantity, value, &debt) && setting_equals(value, &debt.ours));
}

/* Records the state after the attempt; a knob that is back at its old value is forgotten. */
static int settle(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity,
                  const struct setting *value, struct fly_error *out_error)
{
    struct turn *turn = knob_turn_of(gpu, quantity);
    int code;

    if (is_as_before(knob, gpu, turn, value))
        return knob_drop_turn(knob, gpu, quantity, out_error);
    turn->earlier = turn->ours = *value;
    code = knob_write_entry(knob, gpu, quantity, out_error);
    return code < 0 ? code : guard_tell(&knob->guard, gpu->device->info.uuid, turn, out_error);
}

/* The limit that the board enforces, which may be lower than what it was asked for; 0: not known. */
static int64_t enforced_mw(struct knob_gpu *gpu)
{
    struct setting enforced;

    return read_now(gpu, QUANTITY_POWER_LIMIT_ENFORCED, &enforced, NULL) == 0 ? enforced.number : 0;
}

static void note(struct knob_gpu *gpu, enum quantity quantity, const struct setting *value)
{
    if (quantity == QUANTITY_POWER_LIMIT)
        gpu->report.set_mw = value->number;
    else if (quantity == QUANTITY_CLOCK_CEILING)
        gpu->report.ceiling_mhz = value->number;
    else if (quantity == QUANTITY_MEMORY_CLOCK_CEILING)
        gpu->report.memory_ceiling_mhz = value->number;
    else if (quantity == QUANTITY_WORKLOADS)
        gpu->report.workloads = value->workloads;
    else if (quantity == QUANTITY_PERFORMANCE_LEVEL)
        gpu->report.level = value->number;
    else
        return;
    gpu->report.enforced_mw = enforced_mw(gpu);
    gpu->report.workloads_asked |= quantity == QUANTITY_WORKLOADS;
    gpu->report.state = knob_has_turn_besides(gpu, QUANTITY_PERSISTENCE) ? KNOB_TURNED : KNOB_UNTURNED;
}

/*
 * Returns whether a knob is unchanged after a failure, since a failed attempt may have set it all
 * the same. A ceiling is unchanged if the driver refused, or was not asked.
 */
static bool stands_still(struct knob_gpu *gpu, enum quantity quantity, const struct setting *before, int code)
{
    struct setting now;

    if (setting_is_clock(quantity))
        return code != FLY_EREAD;
    return read_now(gpu, quantity, &now, NULL) == 0 && setting_equals(&now, before);
}

static int turn_one(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity,
                    const struct setting *value, struct fly_error *out_error)
{
    struct way_result result = {.state = READING_NOT_READ};
    struct setting now, made = *value;
    struct turn debt;
    int code = read_now(gpu, quantity, &now, out_error);

    if (code < 0)
        return code;
    if (!setting_equals(&now, value) || knob_turn_of(gpu, quantity) != NULL ||
        knob_owes(knob, gpu, quantity, &now, &debt)) {
        code = knob_make_turn(knob, gpu, quantity, &now, value, &result, out_error);
        if (code < 0) {
            /* Otherwise the intent stays. */
            if (!result.uncertain && stands_still(gpu, quantity, &now, code))
                settle(knob, gpu, quantity, &now, NULL);
            return code;
        }
        /* What was owed is now this session's to put back, or is what was asked for. */
        debt_end(knob->directory, gpu->device->info.uuid, quantity);
        if (result.state == READING_OK)
            made = result.now;
        if (result.state == READING_OK || setting_is_clock(quantity))
            code = settle(knob, gpu, quantity, &made, out_error);
    }
    note(gpu, quantity, &made);
    return code;
}

/* Without persistence a setting is lost when the last user of the driver ends. */
static int persist(struct knob *knob, struct knob_gpu *gpu, struct fly_error *out_error)
{
    const struct setting on = setting_number(1);
    struct setting now;

    if (knob->kind != JOURNAL_KEPT || read_now(gpu, QUANTITY_PERSISTENCE, &now, NULL) < 0 || now.number != 0)
        return 0;
    if (turn_one(knob, gpu, QUANTITY_PERSISTENCE, &on, out_error) < 0)
        /* A site may offer limits only. */
        return out_error->code == FLY_EUNSUPPORTED ||
                       (out_error->code == FLY_EPERM && site_offers_more(&knob->site))
                   ? 0
                   : out_error->code;
    gpu->report.persistence_turned = true;
    return 0;
}

/* A level with clocks of its own, this session's ceiling among them, could not be put back. */
static int check_level_left(const struct knob_gpu *gpu, struct fly_error *out_error)
{
    struct setting now;

    if (setting_read(gpu->device, QUANTITY_PERFORMANCE_LEVEL, &now) != READING_OK ||
        device_level_is_settable(now.number))
        return 0;
    return error_set(
        out_error, FLY_ESTATE,
        "the performance level of GPU %u is '%s', with clocks that could not be put back; 'amd-smi "
        "set -g %s --perf-level AUTO' as root gives the choice back to the driver",
        gpu->device->info.index, device_level_word(now.number), gpu->device->info.pci);
}

/* Checks everything that can be checked before anything is turned. */
static int check_gpu(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity,
                     const struct setting *value, struct fly_error *out_error)
{
    struct turn debt;
    int code = 0;

    if (gpu->lock >= 0 && !gpu_lock_stands(knob->directory, gpu->device->info.uuid, gpu->lock))
        return error_set(
            out_error, FLY_ESTATE,
            "the knobs of GPU %u were taken over by another program: the file of their lock is a new "
            "one; start again once it is free",
            gpu->device->info.index);
    if (gpu->report.state == KNOB_DENIED || gpu->report.state == KNOB_FOREIGN || knob_find_foreign(knob, gpu))
        return error_set(out_error, gpu->report.error.code, "%s", gpu->report.error.text);
    if (setting_is_clock(quantity) && knob_turn_of(gpu, quantity) == NULL &&
        !knob_owes(knob, gpu, quantity, value, &debt))
        code = ceiling_check_free(gpu->device, quantity, out_error);
    if (quantity == QUANTITY_PERFORMANCE_LEVEL && knob_turn_of(gpu, quantity) == NULL)
        code = check_level_left(gpu, out_error);
    if (code == 0)
        code = setting_check(gpu->device, quantity, value, out_error);
    return code < 0 ? code : knob_look(knob, gpu, true, out_error);
}

/* Whether a turn that goes back as far as it can goes there. */
static bool is_back_at(const struct knob_gpu *gpu, const struct turn *turn, const struct setting *value)
{
    struct setting goal = setting_nearest(gpu->device, turn->quantity, &turn->previous);

    return setting_equals(&turn->previous, value) || setting_equals(&goal, value);
}

/* Puts a knob back to where this call found it. */
static void undo(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity,
                 const struct setting *before)
{
    const struct turn *turn = knob_turn_of(gpu, quantity);
    size_t others =
        gpu->entry.turn_count - (turn != NULL) - (knob_turn_of(gpu, QUANTITY_PERSISTENCE) != NULL);

    /* If nothing was turned then, everything goes back, persistence mode too. */
    if (others == 0 && (turn == NULL || is_back_at(gpu, turn, before)))
        knob_put_back(knob, gpu, NULL);
    else
        turn_one(knob, gpu, quantity, before, NULL);
}

static int check_wishes(struct knob *knob, struct wishes *wishes, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < knob->count && code == 0; i++) {
        wishes->begun[i] = false;
        if (wishes->wanted[i])
            code = check_gpu(knob, &knob->gpus[i], wishes->quantity, &wishes->values[i], out_error);
    }
    return code;
}

static int turn_wishes(struct knob *knob, struct wishes *wishes, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < knob->count && code == 0; i++) {
        struct knob_gpu *gpu = &knob->gpus[i];

        if (!wishes->wanted[i])
            continue;
        code = read_now(gpu, wishes->quantity, &wishes->before[i], out_error);
        wishes->begun[i] = code == 0;
        if (code == 0)
            code = persist(knob, gpu, out_error);
        if (code == 0)
            code = turn_one(knob, gpu, wishes->quantity, &wishes->values[i], out_error);
    }
    return code;
}

/* Fulfils the wishes, several knobs one after another: all of them on all GPUs, or none. */
static int set_wishes(struct knob *knob, struct wishes *wishes, size_t count, struct fly_error *out_error)
{
    struct fly_error local = {.code = 0};
    struct fly_error *error = out_error != NULL ? out_error : &local;
    size_t turned = 0;
    int code = knob_check_fork(knob, error);

    if (code == 0)
        code = knob_check_guard(knob, error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = check_wishes(knob, &wishes[i], error);
    if (code < 0)
        return code;
    while (turned < count && code == 0)
        code = turn_wishes(knob, &wishes[turned++], error);
    if (code == 0)
        return 0;
    while (turned-- > 0) {
        for (size_t i = knob->count; i > 0; i--) {
            if (wishes[turned].begun[i - 1])
                undo(knob, &knob->gpus[i - 1], wishes[turned].quantity, &wishes[turned].before[i - 1]);
        }
    }
    knob_check_guard(knob, NULL);
    return code;
}

static void wish_limits(const struct knob *knob, const int64_t *limits_mw, struct wishes *out_wishes)
{
    for (size_t i = 0; i < knob->count; i++) {
        out_wishes->wanted[i] = limits_mw[i] != 0;
        out_wishes->values[i] = setting_number(limits_mw[i]);
    }
}

static void wish_workloads(const struct knob *knob, const struct workload_set *const *sets,
                           struct wishes *out_wishes)
{
    for (size_t i = 0; i < knob->count; i++) {
        out_wishes->wanted[i] = sets[i] != NULL;
        if (sets[i] != NULL)
            out_wishes->values[i] = (struct setting){.workloads = *sets[i]};
    }
}

int knob_set(struct knob *knob, const int64_t *limits_mw, struct fly_error *out_error)
{
    struct wishes wishes = {.quantity = QUANTITY_POWER_LIMIT};

    wish_limits(knob, limits_mw, &wishes);
    return set_wishes(knob, &wishes, 1, out_error);
}

int knob_set_workloads(struct knob *knob, const struct workload_set *const *sets, struct fly_error *out_error)
{
    struct wishes wishes = {.quantity = QUANTITY_WORKLOADS};

    wish_workloads(knob, sets, &wishes);
    return set_wishes(knob, &wishes, 1, out_error);
}

static void wish_levels(const struct knob *knob, const int64_t *levels, struct wishes *out_wishes)
{
    for (size_t i = 0; i < knob->count; i++) {
        out_wishes->wanted[i] = levels != NULL && levels[i] != KNOB_NO_LEVEL;
        if (out_wishes->wanted[i])
            out_wishes->values[i] = setting_number(levels[i]);
    }
}

int knob_set_persistence(struct knob *knob, const int64_t *modes, struct fly_error *out_error)
{
    struct wishes wishes = {.quantity = QUANTITY_PERSISTENCE};

    for (size_t i = 0; i < knob->count; i++) {
        wishes.wanted[i] = modes[i] >= 0;
        if (wishes.wanted[i])
            wishes.values[i] = setting_number(modes[i]);
    }
    return set_wishes(knob, &wishes, 1, out_error);
}

int knob_set_several(struct knob *knob, const int64_t *limits_mw, const struct workload_set *const *sets,
                     const int64_t *levels, struct fly_error *out_error)
{
    struct wishes wishes[] = {{.quantity = QUANTITY_POWER_LIMIT},
                              {.quantity = QUANTITY_WORKLOADS},
                              {.quantity = QUANTITY_PERFORMANCE_LEVEL}};

    wish_limits(knob, limits_mw, &wishes[0]);
    wish_workloads(knob, sets, &wishes[1]);
    wish_levels(knob, levels, &wishes[2]);
    return set_wishes(knob, wishes, sizeof wishes / sizeof wishes[0], out_error);
}

/* A floor alone is one below the highest clock. */
static int clock_setting(const struct device *device, enum quantity quantity, const struct clock_range *range,
                         struct setting *out_setting, struct fly_error *out_error)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count;
    int code = 0;

    *out_setting = (struct setting){.number = range->ceiling_mhz, .floor_mhz = range->floor_mhz};
    if (range->ceiling_mhz == 0 && range->floor_mhz != 0)
        code = device_clocks_of(device, quantity, clocks_mhz, DEVICE_CLOCKS_MAX, &count, out_error);
    if (code == 0 && range->ceiling_mhz == 0 && range->floor_mhz != 0)
        out_setting->number = clocks_mhz[0];
    return code;
}

int knob_set_clocks(struct knob *knob, enum quantity quantity, const struct clock_range *const *ranges,
                    struct fly_error *out_error)
{
    struct wishes wishes = {.quantity = quantity};
    int code = 0;

    if (knob->kind == JOURNAL_KEPT)
        return error_set(out_error, FLY_EUSAGE,
                         "a ceiling on the clock does not outlive its session, since it cannot be found out "
                         "later where it stands; set it in a session that puts it back");
    for (size_t i = 0; i < knob->count && code == 0; i++) {
        const struct clock_range *range = ranges[i];
        bool lifts = range != NULL && range->ceiling_mhz == 0 && range->floor_mhz == 0;

        wishes.wanted[i] = range != NULL && (!lifts || knob_turn_of(&knob->gpus[i], quantity) != NULL);
        if (wishes.wanted[i])
            code = clock_setting(knob->gpus[i].device, quantity, range, &wishes.values[i], out_error);
    }
    return code < 0 ? code : set_wishes(knob, &wishes, 1, out_error);
}

int knob_set_ceilings(struct knob *knob, const int64_t *ceilings_mhz, struct fly_error *out_error)
{
    struct clock_range ranges[DEVICES_MAX];
    const struct clock_range *wanted[DEVICES_MAX] = {NULL};

    for (size_t i = 0; i < knob->count; i++) {
        ranges[i] =
            (struct clock_range){.ceiling_mhz = ceilings_mhz[i] == KNOB_NO_CEILING ? 0 : ceilings_mhz[i]};
        wanted[i] = ceilings_mhz[i] != 0 ? &ranges[i] : NULL;
    }
    return knob_set_clocks(knob, QUANTITY_CLOCK_CEILING, wanted, out_error);
}

/* Gives the default limit, or the nearest that is in the GPU's range at present. */
static int reset_limit(struct knob_gpu *gpu, int64_t *out_limit_mw, struct fly_error *out_error)
{
    struct setting limit = {.number = 0};
    int code = read_now(gpu, QUANTITY_POWER_LIMIT_DEFAULT, &limit, out_error);

    if (code == 0)
        *out_limit_mw = setting_nearest(gpu->device, QUANTITY_POWER_LIMIT, &limit).number;
    return code;
}

/* After a reset, only persistence mode is left to be put back of what was kept. */
static int forget_kept(struct knob *knob, struct knob_gpu *gpu, struct fly_error *out_error)
{
    int code = knob_drop_turn(knob, gpu, QUANTITY_POWER_LIMIT, out_error);

    if (code == 0)
        code = knob_drop_turn(knob, gpu, QUANTITY_WORKLOADS, out_error);
    if (code == 0)
        code = knob_drop_turn(knob, gpu, QUANTITY_PERFORMANCE_LEVEL, out_error);
    return code < 0 ? code : knob_put_back(knob, gpu, out_error);
}

int knob_reset(struct knob *knob, struct fly_error *out_error)
{
    static const struct workload_set none;
    const struct workload_set *sets[DEVICES_MAX] = {NULL};
    int64_t limits_mw[DEVICES_MAX] = {0}, levels[DEVICES_MAX];
    int code = knob_check_fork(knob, out_error);

    for (size_t i = 0; i < knob->count && code == 0; i++) {
        struct knob_gpu *gpu = &knob->gpus[i];
        struct setting now;

        levels[i] = KNOB_NO_LEVEL;
        if (gpu->report.state == KNOB_DENIED || gpu->report.state == KNOB_FOREIGN ||
            gpu->report.state == KNOB_STUCK)
            continue;
        code = reset_limit(gpu, &limits_mw[i], out_error);
        if (setting_read(gpu->device, QUANTITY_WORKLOADS, &now) == READING_OK &&
            !workload_is_empty(&now.workloads))
            sets[i] = &none;
        if (setting_read(gpu->device, QUANTITY_PERFORMANCE_LEVEL, &now) == READING_OK &&
            device_level_is_settable(now.number))
            levels[i] = DEVICE_LEVEL_AUTO;
    }
    if (code == 0)
        code = knob_set_several(knob, limits_mw, sets, levels, out_error);
    for (size_t i = 0; i < knob->count && code == 0; i++) {
        const char *uuid = knob->gpus[i].device->info.uuid;

        if (limits_mw[i] == 0)
            continue;
        debt_end(knob->directory, uuid, QUANTITY_WORKLOADS);
        debt_end(knob->directory, uuid, QUANTITY_PERFORMANCE_LEVEL);
        if (knob->kind == JOURNAL_KEPT)
            code = forget_kept(knob, &knob->gpus[i], out_error);
    }
    return code;
}
