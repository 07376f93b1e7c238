/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/repair_record.h"

#include <stdarg.h>
#include <stdio.h>

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
    vsnprintf(repair->text, sizeof repair->text, format, arguments);
    va_end(arguments);
}
