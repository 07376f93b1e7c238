/* SPDX-License-Identifier: Apache-2.0 */
/* Puts back, from the journal, what sessions that have died left behind. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "knob/gpu_lock.h"
#include "knob/knob_private.h"

enum { ENTRIES_MAX = 256 };

__attribute__((format(printf, 3, 4))) static void end_with(struct repair *repair, enum repair_end end,
                                                           const char *format, ...)
{
    va_list arguments;

    repair->end = end;
    va_start(arguments, format);
    vsnprintf(repair->text, sizeof repair->text, format, arguments);
    va_end(arguments);
}

bool repair_is_due(const char *directory, const char *uuid, enum journal_kind kind)
{
    struct journal_entry entry;

    return journal_read(directory, kind, uuid, &entry, NULL) != FLY_ENOTFOUND;
}

static double watts(int64_t limit_mw)
{
    return (double)limit_mw * 1e-3;
}

/* Forgets the entry, with what became of it. */
static void forget(const char *directory, enum journal_kind kind, struct repair *repair)
{
    struct fly_error error;

    if (journal_remove(directory, kind, repair->uuid, &error) < 0)
        end_with(repair, REPAIR_FAILED, "%.300s", error.text);
}

/* What became of an entry's knobs. */
struct put_back {
    bool failed;
    enum turn_end limit, ceiling; /* UNNEEDED where it had none */
    int64_t clock_mhz;            /* FOREIGN: the clock that speaks against the ceiling */
};

/* Puts the entry's turns back, the last first. */
static struct put_back put_back(const struct site_options *ways, const struct device *device,
                                const struct journal_entry *entry, struct repair *repair,
                                struct fly_error *out_error)
{
    struct put_back all = {.limit = TURN_UNNEEDED, .ceiling = TURN_UNNEEDED};
    struct site_options places = *ways;
    struct site site;

    if (entry->places[WAY_COMMANDS][0] != '\0')
        places.commands = entry->places[WAY_COMMANDS];
    if (entry->places[WAY_DAEMON][0] != '\0')
        places.daemon = entry->places[WAY_DAEMON];
    site_init(&places, &site);
    for (size_t i = entry->turn_count; i > 0; i--) {
        const struct turn *turn = &entry->turns[i - 1];
        int64_t found;
        enum turn_end end = turn_back(&site, device, turn, false, &found, out_error);

        all.failed |= end == TURN_FAILED;
        if (turn->quantity == QUANTITY_POWER_LIMIT) {
            repair->found_mw = found;
            all.limit = end;
        } else if (turn->quantity == QUANTITY_CLOCK_CEILING) {
            all.clock_mhz = found;
            all.ceiling = end;
        } else if (end == TURN_RESTORED && all.limit == TURN_UNNEEDED) {
            all.limit = TURN_RESTORED;
        }
    }
    site_deinit(&site);
    return all;
}

static void say_limit(const struct journal_entry *entry, unsigned index, enum turn_end limit,
                      struct repair *repair)
{
    if (limit == TURN_FOREIGN)
        end_with(repair, REPAIR_FOREIGN,
                 "the power limit of GPU %u, which '%s' had set to %g W, was changed by another program to "
                 "%g W since; "
                 "it is left at that",
                 index, entry->program, watts(repair->set_mw), watts(repair->found_mw));
    else if (limit == TURN_RESTORED)
        end_with(repair, REPAIR_RESTORED,
                 "the power limit of GPU %u, left at %g W by '%s', process %lld, is %g W again", index,
                 watts(repair->found_mw), entry->program, (long long)entry->pid, watts(repair->previous_mw));
    else
        end_with(repair, REPAIR_UNNEEDED, "the power limit of GPU %u, set by '%s', stood at %g W already",
                 index, entry->program, watts(repair->found_mw));
}

/* In place of what is said of the limit, where there was none, or after it. */
static void say_ceiling(const struct journal_entry *entry, unsigned index, const struct put_back *all,
                        struct repair *repair)
{
    bool alone = repair->set_mw == 0;
    size_t length = alone ? 0 : strlen(repair->text);
    char *text = repair->text + length;
    size_t bytes = sizeof repair->text - length;

    if (all->ceiling == TURN_FOREIGN)
        snprintf(
            text, bytes,
            "%sthe clock of GPU %u, which '%s' had held to %lld MHz, is %lld MHz, as another program set "
            "it since; it is left so",
            alone ? "" : "; ", index, entry->program, (long long)repair->ceiling_mhz,
            (long long)all->clock_mhz);
    else
        snprintf(text, bytes,
                 "%sthe ceiling of %lld MHz on the clock of GPU %u, left by '%s', process %lld, is lifted",
                 alone ? "" : "; ", (long long)repair->ceiling_mhz, index, entry->program,
                 (long long)entry->pid);
    if (alone || repair->end == REPAIR_UNNEEDED || all->ceiling == TURN_FOREIGN)
        repair->end = all->ceiling == TURN_FOREIGN ? REPAIR_FOREIGN : REPAIR_RESTORED;
}

static void repair_entry(const char *directory, const struct site_options *ways, const struct device *device,
                         enum journal_kind kind, const struct journal_entry *entry, struct repair *repair)
{
    struct fly_error error = {.code = 0};
    unsigned index = device->info.index;
    struct put_back all;

    if (!journal_is_of_this_boot(entry)) {
        end_with(repair, REPAIR_UNNEEDED, "what '%s' set on GPU %u went with a restart of the machine",
                 entry->program, index);
        forget(directory, kind, repair);
        return;
    }
    all = put_back(ways, device, entry, repair, &error);
    if (all.failed) {
        end_with(repair, REPAIR_FAILED, "%.300s", error.text);
        return;
    }
    say_limit(entry, index, all.limit, repair);
    if (repair->ceiling_mhz != 0)
        say_ceiling(entry, index, &all, repair);
    forget(directory, kind, repair);
}

void repair_gpu(const char *directory, const struct site_options *ways, const struct device *device,
                enum journal_kind kind, struct repair *out_repair)
{
    struct journal_entry entry = {.pid = 0};
    struct fly_error error;
    int code = journal_read(directory, kind, device->info.uuid, &entry, &error);

    *out_repair = (struct repair){.kept = kind == JOURNAL_KEPT};
    snprintf(out_repair->uuid, sizeof out_repair->uuid, "%s", device->info.uuid);
    if (code == 0) {
        for (size_t i = 0; i < entry.turn_count; i++) {
            if (entry.turns[i].quantity == QUANTITY_POWER_LIMIT) {
                out_repair->previous_mw = entry.turns[i].previous;
                out_repair->set_mw = entry.turns[i].ours;
            } else if (entry.turns[i].quantity == QUANTITY_CLOCK_CEILING) {
                out_repair->ceiling_mhz =
                    entry.turns[i].ours != 0 ? entry.turns[i].ours : entry.turns[i].earlier;
            }
        }
        repair_entry(directory, ways, device, kind, &entry, out_repair);
    } else if (code == FLY_EDATA) {
        end_with(out_repair, REPAIR_CORRUPT, "%.290s; it was moved aside", error.text);
        if (journal_set_aside(directory, kind, device->info.uuid, &error) < 0)
            end_with(out_repair, REPAIR_CORRUPT, "%.300s", error.text);
    } else {
        end_with(out_repair, code == FLY_ENOTFOUND ? REPAIR_UNNEEDED : REPAIR_FAILED, "%.300s", error.text);
    }
}

/*
 * Whether an entry is left to who holds its GPU, with who that is: a session that lives, or to
 * the impatient anybody.
 */
static bool is_in_use(const char *directory, const struct knob_options *options,
                      const struct journal_name *name, struct repair *repair)
{
    char holder[GPU_LOCK_HOLDER_MAX];
    struct journal_entry entry;

    if (gpu_lock_holder(directory, name->uuid, holder, NULL) != 1)
        return false;
    if (!options->impatient &&
        (journal_read(directory, name->kind, name->uuid, &entry, NULL) < 0 || !journal_maker_lives(&entry)))
        return false;
    end_with(repair, REPAIR_IN_USE, "the knobs of the GPU '%s' are held by %s", name->uuid, holder);
    return true;
}

/* One entry, under the lock of its GPU. */
static void repair_named(const char *directory, const struct knob_options *options,
                         const struct device_list *list, const struct journal_name *name,
                         struct repair *out_repair)
{
    const struct site_options ways = knob_ways(options);
    size_t place = device_list_find(list, DEVICE_GPU, name->uuid);
    struct fly_error error;
    int lock;

    *out_repair = (struct repair){.kept = name->kind == JOURNAL_KEPT};
    snprintf(out_repair->uuid, sizeof out_repair->uuid, "%s", name->uuid);
    /* A recording of a GPU is not the GPU. */
    if (place >= list->count || list->devices[place].backend->set == NULL) {
        end_with(out_repair, REPAIR_ABSENT, "there is no GPU '%s' here now; its entry in the journal stays",
                 name->uuid);
        return;
    }
    if (is_in_use(directory, options, name, out_repair))
        return;
    if (gpu_lock_take(directory, name->uuid, options->program != NULL ? options->program : "flyball", &lock,
                      &error) < 0) {
        end_with(out_repair, error.code == FLY_ESTATE ? REPAIR_IN_USE : REPAIR_FAILED, "%.300s", error.text);
        return;
    }
    repair_gpu(directory, &ways, &list->devices[place], name->kind, out_repair);
    gpu_lock_release(lock);
}

int knob_repair(const struct knob_options *options, const struct device_list *list, bool kept,
                struct repair *out_repairs, size_t maximum, struct fly_error *out_error)
{
    char directory[RUNTIME_PATH_MAX];
    struct journal_name *names;
    int total, count = 0, code = runtime_directory_find(options->runtime_directory, directory, out_error);

    if (code < 0)
        return code;
    names = calloc(ENTRIES_MAX, sizeof *names);
    if (names == NULL)
        return error_no_memory(out_error);
    total = journal_list(directory, names, ENTRIES_MAX, out_error);
    /* What was turned over a kept setting goes back to that first. */
    for (int kind = JOURNAL_TURNED; kind <= (kept ? JOURNAL_KEPT : JOURNAL_TURNED); kind++) {
        for (int i = 0; i < total && i < ENTRIES_MAX; i++) {
            struct repair repair;

            if (names[i].kind != (enum journal_kind)kind)
                continue;
            repair_named(directory, options, list, &names[i], &repair);
            if ((size_t)count < maximum)
                out_repairs[count] = repair;
            count++;
        }
    }
    free(names);
    return total < 0 ? total : count;
}

bool knob_repair_is_due(const struct knob_options *options)
{
    char directory[RUNTIME_PATH_MAX];
    struct journal_name *names;
    bool due = false;
    int total;

    if (!runtime_directory_look(options->runtime_directory, directory))
        return false;
    names = calloc(ENTRIES_MAX, sizeof *names);
    if (names == NULL)
        return false;
    total = journal_list(directory, names, ENTRIES_MAX, NULL);
    for (int i = 0; i < total && i < ENTRIES_MAX && !due; i++)
        due = names[i].kind == JOURNAL_TURNED;
    free(names);
    return due;
}
