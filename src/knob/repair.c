/* SPDX-License-Identifier: Apache-2.0 */
/* Puts back, from the journal, what sessions that died left behind. */
#include "knob/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "knob/debt.h"
#include "knob/gpu_lock.h"
#include "knob/knob_defaults.h"
#include "knob/runtime_directory.h"
#include "knob/stranger.h"

enum { ENTRIES_MAX = 256 };

/* Removes the entry, and reports the result. */
static void forget(const char *directory, enum journal_kind kind, struct repair *repair)
{
    struct fly_error error;

    if (journal_remove(directory, kind, repair->uuid, &error) < 0)
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error.text);
}

static void take_found(enum quantity quantity, const struct setting *found, struct repair_ends *all,
                       struct repair *repair)
{
    if (quantity == QUANTITY_POWER_LIMIT)
        repair->found_mw = found->number;
    else if (quantity == QUANTITY_CLOCK_CEILING)
        all->clock_mhz = found->number;
    else if (quantity == QUANTITY_MEMORY_CLOCK_CEILING)
        all->memory_mhz = found->number;
    else if (quantity == QUANTITY_WORKLOADS)
        repair->workloads_found = found->workloads;
    else if (quantity == QUANTITY_PERFORMANCE_LEVEL)
        repair->level_found = found->number;
}

/* Writes debts down while an entry is put back. */
struct debtor {
    const char *directory;
    const struct journal_entry *entry;
    int code;
    struct fly_error error;
};

static void note_debt(void *state, const struct turn *turn)
{
    struct debtor *debtor = state;

    debtor->code = debt_keep(debtor->directory, debtor->entry, turn, &debtor->error);
}

/* Puts one turn back; a debt that cannot be written down counts as a failure. */
static enum turn_end put_back_one(const struct site *site, const struct device *device, struct debtor *debtor,
                                  struct turn *turn, struct setting *out_found, struct fly_error *out_error)
{
    const struct turn_note note = {.note = note_debt, .state = debtor};
    enum turn_end end = turn_back(site, device, turn, false, &note, out_found, out_error);

    if (end == TURN_SHORT && debtor->code < 0) {
        error_set(out_error, debtor->code, "%s", debtor->error.text);
        return TURN_FAILED;
    }
    return end;
}

/* Puts the entry's turns back, the last first, and keeps those in it that are still to be put back. */
static struct repair_ends put_back(const char *directory, enum journal_kind kind, const char *daemon,
                                   const struct device *device, struct journal_entry *entry,
                                   struct repair *repair, struct fly_error *out_error)
{
    const struct journal_entry whole = *entry;
    struct debtor debtor = {.directory = directory, .entry = &whole};
    struct repair_ends all = {.failed = false};
    size_t kept = TURNS_MAX;
    struct site site;

    for (int i = 0; i < QUANTITY_NAMED_COUNT; i++)
        all.ends[i] = TURN_UNNEEDED;
    site_init(entry->daemon[0] != '\0' ? entry->daemon : daemon, &site);
    for (size_t i = entry->turn_count; i > 0; i--) {
        struct turn *turn = &entry->turns[i - 1];
        struct fly_error error = {.code = 0};
        struct setting found;
        enum turn_end end = put_back_one(&site, device, &debtor, turn, &found, &error);

        all.ends[turn->quantity] = end;
        all.is_short |= end == TURN_SHORT;
        if (end == TURN_FAILED) {
            all.failed = true;
            all.denied |= error.code == FLY_EPERM;
            *out_error = error;
        }
        take_found(turn->quantity, &found, &all, repair);
        if (end == TURN_FAILED || (end == TURN_SHORT && kind == JOURNAL_OWED))
            entry->turns[--kept] = *turn;
    }
    entry->turn_count = TURNS_MAX - kept;
    memmove(&entry->turns[0], &entry->turns[kept], entry->turn_count * sizeof entry->turns[0]);
    return all;
}

static void say_strangers_debt(const struct device *device, struct repair *repair)
{
    repair_end_with(repair, REPAIR_OWED,
                    "what is owed to GPU %u for another user is put back by that user's programs",
                    device->info.index);
}

/* Says what stays; false if nothing does. */
static bool say_left(const char *directory, const struct device *device, const struct repair_ends *all,
                     const struct fly_error *error, struct repair *repair)
{
    char text[DEBT_TEXT_MAX];

    if (all->failed) {
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error->text);
        repair->may_be_owed = !all->denied;
    } else if (all->is_short && debt_say(directory, device, text)) {
        repair_end_with(repair, REPAIR_OWED, "%s", text);
    }
    return all->failed || all->is_short;
}

static void repair_entry(const char *directory, const char *daemon, const struct device *device,
                         enum journal_kind kind, const struct journal_entry *entry, struct repair *repair)
{
    struct fly_error error = {.code = 0};
    unsigned index = device->info.index;
    struct journal_entry left = *entry;
    struct repair_ends all;

    if (!journal_is_of_this_boot(entry)) {
        repair_end_with(repair, REPAIR_UNNEEDED, "what '%s' set on GPU %u went with a restart of the machine",
                        entry->program, index);
        forget(directory, kind, repair);
        return;
    }
    all = put_back(directory, kind, daemon, device, &left, repair, &error);
    if (!say_left(directory, device, &all, &error, repair))
        repair_say(entry, index, &all, repair);
    if (left.turn_count == 0)
        forget(directory, kind, repair);
    else if (left.turn_count < entry->turn_count && journal_write(directory, kind, &left, &error) < 0)
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error.text);
}

static void repair_own(const char *directory, const struct knob_options *options, const struct device *device,
                       enum journal_kind kind, struct repair *out_repair)
{
    struct journal_entry entry = {.pid = 0};
    struct fly_error error;
    int code = journal_read(directory, kind, device->info.uuid, &entry, &error);

    *out_repair = repair_begin(kind, device->info.uuid);
    if (code == 0) {
        repair_describe(out_repair, &entry);
        repair_entry(directory, options->daemon, device, kind, &entry, out_repair);
    } else if (code == FLY_EDATA) {
        repair_end_with(out_repair, REPAIR_CORRUPT, "%.290s; it was moved aside", error.text);
        if (journal_set_aside(directory, kind, device->info.uuid, &error) < 0)
            repair_end_with(out_repair, REPAIR_CORRUPT, "%.300s", error.text);
    } else {
        repair_end_with(out_repair, code == FLY_ENOTFOUND ? REPAIR_UNNEEDED : REPAIR_FAILED, "%.300s",
                        error.text);
    }
}

void repair_gpu(const char *directory, const struct knob_options *options, const struct device *device,
                enum journal_kind kind, struct repair *out_repair)
{
    bool is_strangers = stranger_made(directory, kind, device->info.uuid);

    *out_repair = repair_begin(kind, device->info.uuid);
    if (!is_strangers || kind != JOURNAL_OWED)
        (is_strangers ? stranger_repair : repair_own)(directory, options, device, kind, out_repair);
    else
        say_strangers_debt(device, out_repair);
}

/*
 * Returns whether an entry is left to the process that holds its GPU, and names it: a living
 * session, or for the impatient any holder.
 */
static bool is_in_use(const char *directory, const struct knob_options *options,
                      const struct journal_name *name, struct repair *repair)
{
    char holder[GPU_LOCK_HOLDER_MAX];
    struct journal_entry entry;
    bool is_strangers = stranger_made(directory, name->kind, name->uuid);

    if (is_strangers && options->impatient) {
        repair_end_with(repair, REPAIR_IN_USE, "the GPU '%s' has an entry of another user's", name->uuid);
        return true;
    }
    if (is_strangers || gpu_lock_holder(directory, name->uuid, holder, NULL) != 1)
        return false;
    if (!options->impatient && name->kind != JOURNAL_OWED &&
        (journal_read(directory, name->kind, name->uuid, &entry, NULL) < 0 || !journal_maker_lives(&entry)))
        return false;
    repair_end_with(repair, REPAIR_IN_USE, "the knobs of the GPU '%s' are held by %s", name->uuid, holder);
    return true;
}

/*
 * Returns whether nothing can be done about a debt now: the knob stands as near to what is owed as can be
 * set, or cannot be read. Another user's is left to him.
 */
static bool is_owed_still(const char *directory, const struct device *device, struct repair *repair)
{
    struct journal_entry entry;
    char text[DEBT_TEXT_MAX];

    if (stranger_made(directory, JOURNAL_OWED, device->info.uuid)) {
        say_strangers_debt(device, repair);
        return true;
    }
    if (journal_read(directory, JOURNAL_OWED, device->info.uuid, &entry, NULL) < 0 ||
        !journal_is_of_this_boot(&entry))
        return false;
    for (size_t i = 0; i < entry.turn_count; i++) {
        const struct turn *turn = &entry.turns[i];
        struct setting now, goal = setting_nearest(device, turn->quantity, &turn->previous);

        if (setting_is_clock(turn->quantity) ||
            (setting_read(device, turn->quantity, &now) == READING_OK &&
             !(setting_equals(&now, &turn->ours) && setting_equals(&now, &goal))))
            return false;
    }
    if (!debt_say(directory, device, text))
        return false;
    repair_describe(repair, &entry);
    repair_end_with(repair, REPAIR_OWED, "%s", text);
    return true;
}

/* Repairs one entry, under the lock of its GPU. */
static void repair_present(const char *directory, const struct knob_options *options,
                           const struct device *device, const struct journal_name *name,
                           struct repair *out_repair)
{
    char program[JOURNAL_PROGRAM_MAX];
    struct knob_options briefly = *options;
    struct fly_error error;
    int lock;

    snprintf(program, sizeof program, "%.40s" GPU_LOCK_BRIEFLY, knob_program(options));
    briefly.program = program;
    if ((name->kind == JOURNAL_OWED && is_owed_still(directory, device, out_repair)) ||
        is_in_use(directory, options, name, out_repair))
        return;
    if (stranger_lock_take(directory, &briefly, device, &lock, &error) < 0) {
        repair_end_with(out_repair, error.code == FLY_ESTATE ? REPAIR_IN_USE : REPAIR_FAILED, "%.300s",
                        error.text);
        return;
    }
    if (journal_exists(directory, name->kind, name->uuid))
        repair_gpu(directory, options, device, name->kind, out_repair);
    else
        repair_end_with(out_repair, REPAIR_UNNEEDED, "what was left on the GPU '%s' is put back already",
                        name->uuid);
    gpu_lock_release(lock);
}

static void repair_named(const char *directory, const struct knob_options *options,
                         const struct device_list *list, const struct journal_name *name,
                         struct repair *out_repair)
{
    size_t place = device_list_find(list, DEVICE_GPU, name->uuid);

    *out_repair = repair_begin(name->kind, name->uuid);
    /* A recording of a GPU is not the GPU. */
    if (place < list->count && list->devices[place].backend->set != NULL)
        repair_present(directory, options, &list->devices[place], name, out_repair);
    else
        repair_end_with(out_repair, REPAIR_ABSENT,
                        "there is no GPU '%s' here now; its entry in the journal stays", name->uuid);
}

/*
 * Lists the entries of the list's GPUs. It looks for each by its name, so it finds them however
 * many other files a user puts beside them. Returns how many.
 */
static size_t list_present(const char *directory, const struct device_list *list, enum journal_kind kind,
                           struct journal_name *names)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        const struct device_info *info = &list->devices[i].info;

        if (info->kind != DEVICE_GPU || list->devices[i].backend->set == NULL ||
            !journal_exists(directory, kind, info->uuid))
            continue;
        snprintf(names[count].uuid, sizeof names[count].uuid, "%s", info->uuid);
        names[count++].kind = kind;
    }
    return count;
}

/* Adds the other entries of that kind, for GPUs that are not here; root ignores those of other users. */
static size_t list_absent(const char *directory, const struct device_list *list, enum journal_kind kind,
                          struct journal_name *names, size_t count)
{
    struct journal_name *all = calloc(ENTRIES_MAX, sizeof *all);
    int total = all != NULL ? journal_list(directory, all, ENTRIES_MAX, NULL) : 0;

    for (int i = 0; i < total && i < ENTRIES_MAX && count < DEVICES_MAX + ENTRIES_MAX; i++) {
        size_t place = device_list_find(list, DEVICE_GPU, all[i].uuid);
        bool is_here = place < list->count && list->devices[place].backend->set != NULL;

        if (all[i].kind == kind && !is_here && !stranger_made(directory, kind, all[i].uuid))
            names[count++] = all[i];
    }
    free(all);
    return count;
}

/* Returns whether a debt was made of what another file of the GPU says. */
static bool is_said(const struct repair *repairs, size_t count, size_t maximum, const char *uuid)
{
    for (size_t i = 0; i < count && i < maximum; i++) {
        if (repairs[i].end == REPAIR_OWED && strcmp(repairs[i].uuid, uuid) == 0)
            return true;
    }
    return false;
}

/* Repairs the entries of one directory; returns how many there are so far. */
static int repair_directory(const char *directory, const struct knob_options *options,
                            const struct device_list *list, bool kept, struct journal_name *names,
                            struct repair *out_repairs, size_t maximum, int count)
{
    /* Entries of sessions come first: what was turned over a kept setting goes back to that setting. */
    for (int kind = JOURNAL_TURNED; kind <= (kept ? JOURNAL_KEPT_2 : JOURNAL_OWED); kind++) {
        size_t total = list_present(directory, list, (enum journal_kind)kind, names);

        total = list_absent(directory, list, (enum journal_kind)kind, names, total);
        for (size_t i = 0; i < total; i++) {
            struct repair repair;

            if (kind == JOURNAL_OWED && is_said(out_repairs, (size_t)count, maximum, names[i].uuid))
                continue;
            repair_named(directory, options, list, &names[i], &repair);
            if ((size_t)count < maximum)
                out_repairs[count] = repair;
            count++;
        }
    }
    return count;
}

int knob_repair(const struct knob_options *options, const struct device_list *list, bool kept,
                struct repair *out_repairs, size_t maximum, struct fly_error *out_error)
{
    char directory[RUNTIME_PATH_MAX], daemon[RUNTIME_PATH_MAX];
    struct journal_name *names;
    int count = 0, code = runtime_directory_find(options->runtime_directory, directory, out_error);

    if (code < 0)
        return code;
    if (journal_list(directory, NULL, 0, out_error) < 0)
        return FLY_EREAD;
    names = calloc(DEVICES_MAX + ENTRIES_MAX, sizeof *names);
    if (names == NULL)
        return error_no_memory(out_error);
    /* What a daemon did for a session comes first: it knows the values, and root believes it. */
    if (runtime_directory_look_daemon(directory, daemon))
        count = repair_directory(daemon, options, list, kept, names, out_repairs, maximum, count);
    count = repair_directory(directory, options, list, kept, names, out_repairs, maximum, count);
    free(names);
    return count;
}

/*
 * Returns whether another user's entry has somebody who looks after it: whoever holds the lock, a session or
 * its guard. Asking for the user's right would ask this daemon, which is at work here.
 */
static bool is_tended(const char *directory, const struct journal_name *name, struct repair *repair)
{
    char holder[GPU_LOCK_HOLDER_MAX];

    if (!stranger_made(directory, name->kind, name->uuid) ||
        gpu_lock_holder(directory, name->uuid, holder, NULL) != 1)
        return false;
    repair_end_with(repair, REPAIR_IN_USE, "the knobs of the GPU '%s' are held by %s", name->uuid, holder);
    return true;
}

/* What another user owes is left to him. */
static bool is_daemons_to_repair(const char *directory, enum journal_kind kind, const char *uuid)
{
    return journal_exists(directory, kind, uuid) &&
           !(kind == JOURNAL_OWED && stranger_made(directory, kind, uuid));
}

int knob_repair_device(const struct knob_options *options, const struct device *device,
                       struct repair *out_repairs, size_t maximum, struct fly_error *out_error)
{
    char directories[2][RUNTIME_PATH_MAX];
    int count = 0, code = runtime_directory_find(options->runtime_directory, directories[1], out_error);
    bool has_daemons = code == 0 && runtime_directory_look_daemon(directories[1], directories[0]);

    for (int at = has_daemons ? 0 : 1; at < 2 && code == 0; at++) {
        for (int kind = JOURNAL_TURNED; kind <= JOURNAL_OWED; kind++) {
            struct repair repair = repair_begin((enum journal_kind)kind, device->info.uuid);
            struct journal_name name = {.kind = (enum journal_kind)kind};

            if (!is_daemons_to_repair(directories[at], name.kind, device->info.uuid) ||
                (kind == JOURNAL_OWED && is_said(out_repairs, (size_t)count, maximum, device->info.uuid)))
                continue;
            snprintf(name.uuid, sizeof name.uuid, "%s", device->info.uuid);
            if (!is_tended(directories[at], &name, &repair))
                repair_present(directories[at], options, device, &name, &repair);
            if ((size_t)count < maximum)
                out_repairs[count] = repair;
            count++;
        }
    }
    return code < 0 ? code : count;
}

/* What is due of one entry. */
static enum repair_due due_of(const char *directory, const struct knob_options *options,
                              const struct journal_name *name)
{
    struct repair repair = repair_begin(name->kind, name->uuid);
    char holder[GPU_LOCK_HOLDER_MAX];

    if (!is_daemons_to_repair(directory, name->kind, name->uuid) || is_tended(directory, name, &repair) ||
        is_in_use(directory, options, name, &repair))
        return REPAIR_NOTHING_DUE;
    return gpu_lock_holder(directory, name->uuid, holder, NULL) == 1 ? REPAIR_DUE_LATER : REPAIR_DUE_NOW;
}

enum repair_due knob_repair_due_for(const struct knob_options *options, const char *uuid)
{
    char directories[2][RUNTIME_PATH_MAX];
    bool is_there = runtime_directory_look(options->runtime_directory, directories[1]);
    bool has_daemons = is_there && runtime_directory_look_daemon(directories[1], directories[0]);
    enum repair_due due = REPAIR_NOTHING_DUE;

    for (int at = has_daemons ? 0 : 1; is_there && at < 2; at++) {
        for (int kind = JOURNAL_TURNED; kind <= JOURNAL_OWED; kind++) {
            struct journal_name name = {.kind = (enum journal_kind)kind};
            enum repair_due one;

            snprintf(name.uuid, sizeof name.uuid, "%s", uuid);
            one = due_of(directories[at], options, &name);
            due = one > due ? one : due;
        }
    }
    return due;
}

static bool has_entries(const char *directory)
{
    return journal_has(directory, JOURNAL_TURNED) || journal_has(directory, JOURNAL_TURNED_2) ||
           journal_has(directory, JOURNAL_OWED);
}

bool knob_repair_is_due(const struct knob_options *options)
{
    char directory[RUNTIME_PATH_MAX], daemon[RUNTIME_PATH_MAX];

    if (!runtime_directory_look(options->runtime_directory, directory))
        return false;
    return has_entries(directory) ||
           (runtime_directory_look_daemon(directory, daemon) && has_entries(daemon));
}
