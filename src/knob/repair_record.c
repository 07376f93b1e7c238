/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/repair_record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct repair repair_begin(enum journal_kind kind, const char *uuid)
{
    struct repair repair = {.kept = journal_is_kept(kind)};

    snprintf(repair.uuid, sizeof repair.uuid, "%s", uuid);
    return repair;
}

void repair_describe(struct repair *repair, const struct journal_entry *entry)
{
    for (size_t i = 0; i < entry->turn_count; i++) {
        const struct turn *turn = &entry->turns[i];

        if (turn->quantity == QUANTITY_POWER_LIMIT) {
            repair->previous_mw = turn->previous.number;
            repair->set_mw = turn->ours.number;
        } else if (turn->quantity == QUANTITY_CLOCK_CEILING) {
            repair->ceiling_mhz = turn->ours.number != 0 ? turn->ours.number : turn->earlier.number;
        } else if (turn->quantity == QUANTITY_MEMORY_CLOCK_CEILING) {
            repair->memory_ceiling_mhz = turn->ours.number != 0 ? turn->ours.number : turn->earlier.number;
        } else if (turn->quantity == QUANTITY_WORKLOADS) {
            repair->has_workloads = true;
            repair->workloads_before = turn->previous.workloads;
            repair->workloads_set = turn->ours.workloads;
        } else if (turn->quantity == QUANTITY_PERFORMANCE_LEVEL) {
            repair->has_level = true;
            repair->level_before = turn->previous.number;
            repair->level_set = turn->ours.number;
        }
    }
}

void repair_end_with(struct repair *repair, enum repair_end end, const char *format, ...)
{
    va_list arguments;

    repair->end = end;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    vsnprintf(repair->text, sizeof repair->text, format, arguments);
    va_end(arguments);
}

static double watts(int64_t limit_mw)
{
    return (double)limit_mw * 1e-3;
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

static void say_limit(const struct journal_entry *entry, unsigned index, const struct repair_ends *all,
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

static void say_ceiling(const struct journal_entry *entry, unsigned index, const struct repair_ends *all,
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

static void say_workloads(const struct journal_entry *entry, unsigned index, const struct repair_ends *all,
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

static void say_level(const struct journal_entry *entry, unsigned index, const struct repair_ends *all,
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

void repair_say(const struct journal_entry *entry, unsigned index, const struct repair_ends *all,
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
