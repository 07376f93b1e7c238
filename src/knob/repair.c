/* SPDX-License-Identifier: Apache-2.0 */
/* Puts back, from the journal, what sessions that died left behind. */
#include "knob/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "knob/gpu_lock.h"
#include "knob/knob_defaults.h"
#include "knob/runtime_directory.h"
#include "knob/stranger.h"

enum { ENTRIES_MAX = 256 };

static double watts(int64_t limit_mw)
{
    return (double)limit_mw * 1e-3;
}

/* Removes the entry, and reports the result. */
static void forget(const char *directory, enum journal_kind kind, struct repair *repair)
{
    struct fly_error error;

    if (journal_remove(directory, kind, repair->uuid, &error) < 0)
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error.text);
}

/* The result for an entry's knobs. */
struct put_back {
    bool failed;
    enum turn_end ends[QUANTITY_NAMED_COUNT]; /* UNNEEDED if the entry had no such turn */
    int64_t clock_mhz, memory_mhz;            /* FOREIGN: the clock that contradicts the ceiling */
};

static void take_found(enum quantity quantity, const struct setting *found, struct put_back *all,
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

/* Puts the entry's turns back, the last first. */
static struct put_back put_back(const struct site_options *ways, const struct device *device,
                                const struct journal_entry *entry, struct repair *repair,
                                struct fly_error *out_error)
{
    struct put_back all = {.failed = false};
    struct site_options places = *ways;
    struct site site;

    for (int i = 0; i < QUANTITY_NAMED_COUNT; i++)
        all.ends[i] = TURN_UNNEEDED;
    if (entry->places[WAY_COMMANDS][0] != '\0')
        places.commands = entry->places[WAY_COMMANDS];
    if (entry->places[WAY_DAEMON][0] != '\0')
        places.daemon = entry->places[WAY_DAEMON];
    site_init(&places, &site);
    for (size_t i = entry->turn_count; i > 0; i--) {
        const struct turn *turn = &entry->turns[i - 1];
        struct setting found;

        all.ends[turn->quantity] = turn_back(&site, device, turn, false, &found, out_error);
        all.failed |= all.ends[turn->quantity] == TURN_FAILED;
        take_found(turn->quantity, &found, &all, repair);
    }
    site_deinit(&site);
    return all;
}

/* Begins a clause of the text, behind those before it; returns how many bytes are left. */
static size_t next_clause(struct repair *repair, char **out_at)
{
    size_t length = strlen(repair->text);

    if (length > 0)
        length += (size_t)snprintf(repair->text + length, sizeof repair->text - length, "; ");
    if (length >= sizeof repair->text)
        length = sizeof repair->text - 1;
    *out_at = repair->text + length;
    return sizeof repair->text - length;
}

/* The end of the entry: what is said of one knob counts unless another one says more. */
static void end_as(struct repair *repair, enum turn_end end)
{
    if (end == TURN_FOREIGN)
        repair->end = REPAIR_FOREIGN;
    else if (end == TURN_RESTORED && repair->end == REPAIR_UNNEEDED)
        repair->end = REPAIR_RESTORED;
}

static void say_limit(const struct journal_entry *entry, unsigned index, const struct put_back *all,
                      struct repair *repair)
{
    enum turn_end end = all->ends[QUANTITY_POWER_LIMIT];
    char *text;
    size_t bytes = next_clause(repair, &text);

    /* Persistence mode was turned on for the limit. */
    if (end == TURN_UNNEEDED && all->ends[QUANTITY_PERSISTENCE] == TURN_RESTORED)
        end = TURN_RESTORED;
    if (end == TURN_FOREIGN)
        snprintf(text, bytes,
                 "the power limit of GPU %u, which '%s' had set to %g W, was changed by another program to "
                 "%g W since; it is left at that",
                 index, entry->program, watts(repair->set_mw), watts(repair->found_mw));
    else if (end == TURN_RESTORED)
        snprintf(text, bytes, "the power limit of GPU %u, left at %g W by '%s', process %lld, is %g W again",
                 index, watts(repair->found_mw), entry->program, (long long)entry->pid,
                 watts(repair->previous_mw));
    else
        snprintf(text, bytes, "the power limit of GPU %u, set by '%s', stood at %g W already", index,
                 entry->program, watts(repair->found_mw));
    end_as(repair, end);
}

static void say_ceiling(const struct journal_entry *entry, unsigned index, const struct put_back *all,
                        enum quantity quantity, struct repair *repair)
{
    bool is_memory = quantity == QUANTITY_MEMORY_CLOCK_CEILING;
    long long ceiling_mhz = is_memory ? repair->memory_ceiling_mhz : repair->ceiling_mhz;
    const char *clock = is_memory ? "memory clock" : "clock";
    enum turn_end end = all->ends[quantity];
    char *text;
    size_t bytes = next_clause(repair, &text);

    if (end == TURN_FOREIGN)
        snprintf(text, bytes,
                 "the %s of GPU %u, which '%s' had held to %lld MHz, is %lld MHz, as another program set "
                 "it since; it is left so",
                 clock, index, entry->program, ceiling_mhz,
                 (long long)(is_memory ? all->memory_mhz : all->clock_mhz));
    else
        snprintf(text, bytes,
                 "the ceiling of %lld MHz on the %s of GPU %u, left by '%s', process %lld, is lifted",
                 ceiling_mhz, clock, index, entry->program, (long long)entry->pid);
    end_as(repair, end);
}

static void say_workloads(const struct journal_entry *entry, unsigned index, const struct put_back *all,
                          struct repair *repair)
{
    enum turn_end end = all->ends[QUANTITY_WORKLOADS];
    char *text, set[WORKLOAD_TEXT_MAX], found[WORKLOAD_TEXT_MAX], before[WORKLOAD_TEXT_MAX];
    size_t bytes = next_clause(repair, &text);

    workload_text(&repair->workloads_set, set);
    workload_text(&repair->workloads_found, found);
    workload_text(&repair->workloads_before, before);
    if (end == TURN_FOREIGN)
        snprintf(text, bytes,
                 "the workload profiles of GPU %u, which '%s' had set to %.60s, were changed by another "
                 "program to %.60s since; they are left so",
                 index, entry->program, set, found);
    else if (end == TURN_RESTORED)
        snprintf(text, bytes,
                 "the workload profiles of GPU %u, left at %.60s by '%s', process %lld, are %.60s again",
                 index, found, entry->program, (long long)entry->pid, before);
    else
        snprintf(text, bytes, "the workload profiles of GPU %u, set by '%s', were %.60s already", index,
                 entry->program, found);
    end_as(repair, end);
}

static void say_level(const struct journal_entry *entry, unsigned index, const struct put_back *all,
                      struct repair *repair)
{
    enum turn_end end = all->ends[QUANTITY_PERFORMANCE_LEVEL];
    const char *found = device_level_word(repair->level_found),
               *before = device_level_word(repair->level_before);
    char *text;
    size_t bytes = next_clause(repair, &text);

    if (end == TURN_FOREIGN)
        snprintf(
            text, bytes,
            "the performance level of GPU %u, which '%s' had set to '%s', was changed by another program "
            "to '%s' since; it is left so",
            index, entry->program, device_level_word(repair->level_set), found);
    else if (end == TURN_RESTORED)
        snprintf(text, bytes,
                 "the performance level of GPU %u, left at '%s' by '%s', process %lld, is '%s' again", index,
                 found, entry->program, (long long)entry->pid, before);
    else
        snprintf(text, bytes, "the performance level of GPU %u, set by '%s', was '%s' already", index,
                 entry->program, found);
    end_as(repair, end);
}

/* Says what became of each knob of the entry. */
static void say(const struct journal_entry *entry, unsigned index, const struct put_back *all,
                struct repair *repair)
{
    repair_end_with(repair, REPAIR_UNNEEDED, "%s", "");
    if (repair->set_mw != 0)
        say_limit(entry, index, all, repair);
    if (repair->ceiling_mhz != 0)
        say_ceiling(entry, index, all, QUANTITY_CLOCK_CEILING, repair);
    if (repair->memory_ceiling_mhz != 0)
        say_ceiling(entry, index, all, QUANTITY_MEMORY_CLOCK_CEILING, repair);
    if (repair->has_workloads)
        say_workloads(entry, index, all, repair);
    if (repair->has_level)
        say_level(entry, index, all, repair);
    if (repair->text[0] == '\0') {
        snprintf(repair->text, sizeof repair->text,
                 "persistence mode of GPU %u, which '%s' had turned on, is %s", index, entry->program,
                 all->ends[QUANTITY_PERSISTENCE] == TURN_FOREIGN ? "left as it is" : "off again");
        end_as(repair, all->ends[QUANTITY_PERSISTENCE]);
    }
}

static void repair_entry(const char *directory, const struct site_options *ways, const struct device *device,
                         enum journal_kind kind, const struct journal_entry *entry, struct repair *repair)
{
    struct fly_error error = {.code = 0};
    unsigned index = device->info.index;
    struct put_back all;

    if (!journal_is_of_this_boot(entry)) {
        repair_end_with(repair, REPAIR_UNNEEDED, "what '%s' set on GPU %u went with a restart of the machine",
                        entry->program, index);
        forget(directory, kind, repair);
        return;
    }
    all = put_back(ways, device, entry, repair, &error);
    if (all.failed) {
        repair_end_with(repair, REPAIR_FAILED, "%.300s", error.text);
        return;
    }
    say(entry, index, &all, repair);
    forget(directory, kind, repair);
}

static void repair_own(const char *directory, const struct knob_options *options, const struct device *device,
                       enum journal_kind kind, struct repair *out_repair)
{
    const struct site_options ways = knob_ways(options);
    struct journal_entry entry = {.pid = 0};
    struct fly_error error;
    int code = journal_read(directory, kind, device->info.uuid, &entry, &error);

    *out_repair = repair_begin(kind, device->info.uuid);
    if (code == 0) {
        repair_describe(out_repair, &entry);
        repair_entry(directory, &ways, device, kind, &entry, out_repair);
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
    (stranger_made(directory, kind, device->info.uuid) ? stranger_repair : repair_own)(
        directory, options, device, kind, out_repair);
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
    if (!options->impatient &&
        (journal_read(directory, name->kind, name->uuid, &entry, NULL) < 0 || !journal_maker_lives(&entry)))
        return false;
    repair_end_with(repair, REPAIR_IN_USE, "the knobs of the GPU '%s' are held by %s", name->uuid, holder);
    return true;
}

/* Repairs one entry, under the lock of its GPU. */
static void repair_present(const char *directory, const struct knob_options *options,
                           const struct device *device, const struct journal_name *name,
                           struct repair *out_repair)
{
    struct fly_error error;
    int lock;

    if (is_in_use(directory, options, name, out_repair))
        return;
    if (stranger_lock_take(directory, options, device, &lock, &error) < 0) {
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

/* Repairs the entries of one directory; returns how many there are so far. */
static int repair_directory(const char *directory, const struct knob_options *options,
                            const struct device_list *list, bool kept, struct journal_name *names,
                            struct repair *out_repairs, size_t maximum, int count)
{
    /* Entries of sessions come first: what was turned over a kept setting goes back to that setting. */
    for (int kind = JOURNAL_TURNED; kind <= (kept ? JOURNAL_KEPT_2 : JOURNAL_TURNED_2); kind++) {
        size_t total = list_present(directory, list, (enum journal_kind)kind, names);

        total = list_absent(directory, list, (enum journal_kind)kind, names, total);
        for (size_t i = 0; i < total; i++) {
            struct repair repair;

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

int knob_repair_device(const struct knob_options *options, const struct device *device,
                       struct repair *out_repairs, size_t maximum, struct fly_error *out_error)
{
    char directories[2][RUNTIME_PATH_MAX];
    int count = 0, code = runtime_directory_find(options->runtime_directory, directories[1], out_error);
    bool has_daemons = code == 0 && runtime_directory_look_daemon(directories[1], directories[0]);

    for (int at = has_daemons ? 0 : 1; at < 2 && code == 0; at++) {
        for (int kind = JOURNAL_TURNED; kind <= JOURNAL_TURNED_2; kind++) {
            struct repair repair = repair_begin((enum journal_kind)kind, device->info.uuid);
            struct journal_name name = {.kind = (enum journal_kind)kind};

            if (!journal_exists(directories[at], name.kind, device->info.uuid))
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

static bool has_entries(const char *directory)
{
    return journal_has(directory, JOURNAL_TURNED) || journal_has(directory, JOURNAL_TURNED_2);
}

bool knob_repair_is_due(const struct knob_options *options)
{
    char directory[RUNTIME_PATH_MAX], daemon[RUNTIME_PATH_MAX];

    if (!runtime_directory_look(options->runtime_directory, directory))
        return false;
    return has_entries(directory) ||
           (runtime_directory_look_daemon(directory, daemon) && has_entries(daemon));
}
