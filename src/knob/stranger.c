/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How root treats other users' locks and entries: root never turns a knob with its own rights
 * because of what they say.
 */
#include "knob/stranger.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "knob/behalf.h"
#include "knob/debt.h"
#include "knob/gpu_lock.h"
#include "knob/knob_defaults.h"
#include "knob/lock_holder.h"
#include "knob/runtime_directory.h"

/* Another user's entry while it is handled. */
struct claim_of {
    const struct knob_options *options;
    const struct device *device;
    struct journal_entry entry; /* with the values to put back in place of its own */
    uid_t owner;
    struct repair *repair;
    size_t owed_count; /* goals that are out of reach now, as debts of root's own */
    struct turn owed[TURNS_MAX];
};

static struct behalf behalf_of(const struct knob_options *options, const struct device *device, uid_t owner)
{
    return (struct behalf){.uid = owner,
                           .guard_path = options->guard_path,
                           .nvml_path = options->nvml_path,
                           .amdsmi_path = options->amdsmi_path,
                           .pci = device->info.pci};
}

/* Returns whether that entry belongs to a living session, by a user who may turn the GPU's knobs. */
static bool entry_stands(const char *directory, enum journal_kind kind, const struct knob_options *options,
                         const struct device *device, const struct lock_holder *holder)
{
    struct behalf behalf = behalf_of(options, device, holder->uid);
    struct journal_entry entry;
    uid_t owner, maker;

    return journal_read_any(directory, kind, device->info.uuid, &entry, &owner, NULL) == 0 &&
           owner == holder->uid && journal_is_of_this_boot(&entry) && journal_maker_lives(&entry) &&
           lock_holder_uid(entry.pid, &maker) && maker == owner &&
           behalf_run(&behalf, BEHALF_ASK, &entry, NULL) == 0;
}

static bool session_stands(const char *directory, const struct knob_options *options,
                           const struct device *device, const struct lock_holder *holder)
{
    return entry_stands(directory, JOURNAL_TURNED, options, device, holder) ||
           entry_stands(directory, JOURNAL_TURNED_2, options, device, holder);
}

/* Returns whether root respects a lock that it cannot get; `out_held` is the file. */
static bool is_respected(const char *directory, const struct knob_options *options,
                         const struct device *device, int code, struct stat *out_held,
                         struct fly_error *out_error)
{
    const char *uuid = device->info.uuid;
    char path[JOURNAL_PATH_MAX];
    struct lock_holder holder;
    bool found;
    int fd;

    if (journal_path(directory, uuid, ".lock", path, NULL) < 0 || lstat(path, out_held) < 0)
        return true;
    if (code != FLY_ESTATE)
        return out_held->st_uid == 0; /* the file could not be opened */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    found = fd >= 0 && fstat(fd, out_held) == 0 && lock_holder_find(fd, &holder);
    if (fd >= 0)
        close(fd);
    if (!found || holder.uid == 0)
        return true;
    if (!session_stands(directory, options, device, &holder))
        return false;
    error_set(
        out_error, FLY_ESTATE,
        "the knobs of the GPU '%s' are held by a session of user %lld, process %lld; wait for it to end, or "
        "end it",
        uuid, (long long)holder.uid, (long long)holder.pid);
    return true;
}

int stranger_lock_take(const char *directory, const struct knob_options *options, const struct device *device,
                       int *out_lock, struct fly_error *out_error)
{
    const char *uuid = device->info.uuid;
    struct fly_error error = {.code = 0};
    struct stat held;
    int code = gpu_lock_take(directory, uuid, knob_program(options), out_lock, &error);

    if (code == 0)
        return 0;
    if (!runtime_directory_is_roots() || is_respected(directory, options, device, code, &held, &error))
        return error_set(out_error, error.code, "%s", error.text);
    return gpu_lock_replace(directory, uuid, knob_program(options), &held, out_lock, out_error);
}

bool stranger_made(const char *directory, enum journal_kind kind, const char *uuid)
{
    struct journal_entry entry;
    uid_t owner = 0;

    if (!runtime_directory_is_roots())
        return false;
    (void)journal_read_any(directory, kind, uuid, &entry, &owner, NULL);
    return owner != 0;
}

static double watts(int64_t limit_mw)
{
    return (double)limit_mw * 1e-3;
}

/* Reads a setting, which is empty where it cannot be read. */
static struct setting read_now(const struct device *device, enum quantity quantity)
{
    struct setting now = {.number = 0};

    setting_read(device, quantity, &now);
    return now;
}

/* Gives what root has set to stay of a quantity; false for nothing. */
static bool find_kept(const char *directory, const struct device *device, enum quantity quantity,
                      struct setting *out_kept)
{
    struct journal_entry kept;

    if (journal_read(directory, journal_kind_of(JOURNAL_KEPT, quantity), device->info.uuid, &kept, NULL) <
            0 ||
        !journal_is_of_this_boot(&kept))
        return false;
    for (size_t i = 0; i < kept.turn_count; i++) {
        if (kept.turns[i].quantity == quantity) {
            *out_kept = kept.turns[i].ours;
            return true;
        }
    }
    return false;
}

/*
 * Returns where a knob goes: to what root has set to stay, or to the driver's default, of workload
 * profiles to none. A limit of 0 is unknown.
 */
static struct setting goal_of(const char *directory, const struct device *device, enum journal_kind kind,
                              enum quantity quantity)
{
    struct setting goal = {.number = 0};

    if ((journal_is_kept(kind) || !find_kept(directory, device, quantity, &goal)) &&
        quantity == QUANTITY_POWER_LIMIT)
        goal = read_now(device, QUANTITY_POWER_LIMIT_DEFAULT);
    return goal;
}

/* Where a goal is out of reach, the nearest is aimed at. */
static void aim_near(struct claim_of *claim, struct turn *turn)
{
    struct setting nearest = setting_nearest(claim->device, turn->quantity, &turn->previous);
    struct turn *owed = &claim->owed[claim->owed_count];

    if (setting_equals(&nearest, &turn->previous))
        return;
    *owed = (struct turn){
        .quantity = turn->quantity, .previous = turn->previous, .earlier = nearest, .ours = nearest};
    claim->owed_count++;
    turn->previous = nearest;
}

/* The goals are root's, and not of the entry: root owes them. */
static void owe(const char *directory, struct claim_of *claim)
{
    struct repair *repair = claim->repair;
    struct journal_entry own;
    struct fly_error error = {.code = 0};
    char text[DEBT_TEXT_MAX];
    int code = 0;

    journal_begin(claim->device->info.uuid, knob_program(claim->options), &own);
    for (size_t i = 0; i < claim->owed_count && code == 0; i++)
        code = debt_keep(directory, &own, &claim->owed[i], &error);
    if (code < 0)
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error.text);
    else if (debt_say(directory, claim->device, text))
        repair_end_with(repair, REPAIR_OWED, "%s", text);
}

/* Keeps the turns to be made, with their goals. */
static void choose(const char *directory, enum journal_kind kind, struct claim_of *claim)
{
    struct journal_entry *entry = &claim->entry;
    size_t kept = 0;

    for (size_t i = 0; i < entry->turn_count; i++) {
        struct turn turn = entry->turns[i];
        struct setting now = {.number = 0};

        if (turn.quantity == QUANTITY_PERSISTENCE)
            continue; /* only the entry knows what it was before */
        turn.previous = setting_is_clock(turn.quantity)
                            ? setting_number(0)
                            : goal_of(directory, claim->device, kind, turn.quantity);
        if (turn.quantity == QUANTITY_POWER_LIMIT && turn.previous.number == 0)
            continue;
        if (!setting_is_clock(turn.quantity) &&
            (setting_read(claim->device, turn.quantity, &now) != READING_OK ||
             setting_equals(&now, &turn.previous) || !turn_stands_on(claim->device, &turn, &now)))
            continue;
        aim_near(claim, &turn);
        if (setting_is_clock(turn.quantity) || !setting_equals(&now, &turn.previous))
            entry->turns[kept++] = turn;
    }
    entry->turn_count = kept;
}

static void say_unturned(const struct claim_of *claim)
{
    struct repair *repair = claim->repair;
    unsigned index = claim->device->info.index;
    char text[WORKLOAD_TEXT_MAX];

    if (repair->has_workloads && !workload_equals(&repair->workloads_found, &repair->workloads_before))
        repair_end_with(repair, REPAIR_FOREIGN,
                        "the workload profiles of GPU %u are %.80s, where no program of user %lld has left "
                        "them; they are left so",
                        index, workload_text(&repair->workloads_found, text), (long long)claim->owner);
    else if (repair->set_mw != 0 && repair->found_mw != repair->previous_mw)
        repair_end_with(
            repair, REPAIR_FOREIGN,
            "the power limit of GPU %u is %g W, where no program of user %lld has left it; it is left "
            "at that",
            index, watts(repair->found_mw), (long long)claim->owner);
    else
        repair_end_with(repair, REPAIR_UNNEEDED,
                        "nothing that user %lld says to have left on GPU %u is to be put back",
                        (long long)claim->owner, index);
}

static void say_turned(const struct claim_of *claim)
{
    struct repair *repair = claim->repair;
    unsigned index = claim->device->info.index;
    long long owner = (long long)claim->owner;
    char found[WORKLOAD_TEXT_MAX], now[WORKLOAD_TEXT_MAX];

    if (repair->has_workloads)
        repair_end_with(
            repair, REPAIR_RESTORED,
            "the workload profiles of GPU %u, left at %.60s by a killed program of user %lld, are "
            "%.60s again",
            index, workload_text(&repair->workloads_found, found), owner,
            workload_text(&repair->workloads_before, now));
    else if (repair->has_level)
        repair_end_with(repair, REPAIR_RESTORED,
                        "the performance level of GPU %u, left at '%s' by a killed program of user %lld, is "
                        "'%s' again",
                        index, device_level_word(repair->level_found), owner,
                        device_level_word(repair->level_before));
    else if (setting_is_clock(claim->entry.turns[0].quantity) || repair->set_mw == 0)
        repair_end_with(repair, REPAIR_RESTORED,
                        "the ceiling on the clock of GPU %u, left by a killed program of user %lld, "
                        "is lifted",
                        index, owner);
    else
        repair_end_with(
            repair, REPAIR_RESTORED,
            "the power limit of GPU %u, left at %g W by a killed program of user %lld, is %g W again%s",
            index, watts(repair->found_mw), owner, watts(repair->previous_mw),
            claim->entry.turn_count > 1 ? ", and the ceiling on its clock is lifted" : "");
}

/* Turns with the user's own rights; what the user may not turn, the user did not turn. */
static bool turn_on_behalf(const struct claim_of *claim)
{
    struct behalf behalf = behalf_of(claim->options, claim->device, claim->owner);
    struct repair *repair = claim->repair;
    unsigned index = claim->device->info.index;
    struct fly_error error;
    int code = behalf_run(&behalf, BEHALF_PUT_BACK, &claim->entry, &error);

    for (size_t i = 0; i < claim->entry.turn_count && code == 0; i++) {
        const struct turn *turn = &claim->entry.turns[i];
        struct setting now;

        if (setting_read(claim->device, turn->quantity, &now) == READING_OK &&
            !setting_equals(&now, &turn->previous))
            code = error_set(&error, FLY_EREAD, "it stands as before");
    }
    if (code == 0)
        return true;
    repair_end_with(
        repair, REPAIR_DISBELIEVED,
        "what user %lld says to have left on GPU %u is not put back on his word, and his own right does not "
        "do it "
        "(%.100s); 'sudo flyball power reset -i %u' sets the driver's default. The entry was moved aside",
        (long long)claim->owner, index, error.text, index);
    return false;
}

static void put_back(const char *directory, enum journal_kind kind, struct claim_of *claim)
{
    struct repair *repair = claim->repair;
    struct fly_error error = {.code = 0};
    bool believed = true;

    repair_describe(repair, &claim->entry);
    repair->found_mw = read_now(claim->device, QUANTITY_POWER_LIMIT).number;
    repair->workloads_found = read_now(claim->device, QUANTITY_WORKLOADS).workloads;
    repair->previous_mw =
        repair->set_mw != 0 ? goal_of(directory, claim->device, kind, QUANTITY_POWER_LIMIT).number : 0;
    repair->workloads_before = goal_of(directory, claim->device, kind, QUANTITY_WORKLOADS).workloads;
    repair->level_found = read_now(claim->device, QUANTITY_PERFORMANCE_LEVEL).number;
    repair->level_before = goal_of(directory, claim->device, kind, QUANTITY_PERFORMANCE_LEVEL).number;
    choose(directory, kind, claim);
    if (!journal_is_of_this_boot(&claim->entry))
        repair_end_with(repair, REPAIR_UNNEEDED,
                        "what user %lld set on GPU %u went with a restart of the machine",
                        (long long)claim->owner, claim->device->info.index);
    else if (claim->entry.turn_count == 0)
        say_unturned(claim);
    else if ((believed = turn_on_behalf(claim)))
        say_turned(claim);
    if ((believed ? journal_remove : journal_set_aside)(directory, kind, repair->uuid, &error) < 0)
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error.text);
    else if (believed && claim->owed_count > 0)
        owe(directory, claim);
}

void stranger_repair(const char *directory, const struct knob_options *options, const struct device *device,
                     enum journal_kind kind, struct repair *out_repair)
{
    struct claim_of claim = {.options = options, .device = device, .repair = out_repair};
    struct fly_error error;
    int code = journal_read_any(directory, kind, device->info.uuid, &claim.entry, &claim.owner, &error);

    *out_repair = repair_begin(kind, device->info.uuid);
    if (code == 0) {
        put_back(directory, kind, &claim);
        return;
    }
    repair_end_with(
        out_repair, REPAIR_DISBELIEVED,
        "what another user put in the place of the journal's entry of GPU %u is none; it was moved aside",
        device->info.index);
    if (journal_set_aside(directory, kind, device->info.uuid, &error) < 0)
        repair_end_with(out_repair, REPAIR_FAILED, "%.300s", error.text);
}
