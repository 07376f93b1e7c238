/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_REPAIR_RECORD_H
#define FLYBALL_KNOB_REPAIR_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "knob/journal.h"

/* The result of a repair (repair.h). */

/* What became of a journal's entry. */
enum repair_end {
    REPAIR_RESTORED,    /* the earlier setting is back */
    REPAIR_UNNEEDED,    /* the earlier setting was already back, or the machine was restarted since */
    REPAIR_OWED,        /* put back as near as can be; the rest is a debt (debt.h), which stays */
    REPAIR_FOREIGN,     /* another program changed it since: left as it is, and the entry is removed */
    REPAIR_IN_USE,      /* its session is alive */
    REPAIR_ABSENT,      /* there is no such GPU here: the entry stays */
    REPAIR_FAILED,      /* the entry stays */
    REPAIR_CORRUPT,     /* the file was moved aside; nothing is guessed */
    REPAIR_DISBELIEVED, /* the user may not turn what his entry says he turned: moved aside */
    REPAIR_END_COUNT
};

struct repair {
    enum repair_end end;
    char uuid[DEVICE_TEXT_MAX];
    bool kept;
    int64_t previous_mw, set_mw; /* from the entry; 0: it has no limit */
    int64_t ceiling_mhz;         /* from the entry, on the clock; 0: it has none */
    int64_t memory_ceiling_mhz;  /* the same, on its memory's clock */
    int64_t found_mw;            /* in force when repaired; 0: unknown */
    bool has_workloads;          /* the entry has a set of workload profiles: */
    struct workload_set workloads_before, workloads_set, workloads_found;
    bool has_level; /* the entry has a performance level, enum device_level: */
    int64_t level_before, level_set, level_found;
    bool may_be_owed; /* FAILED: by its driver, and not for want of a right */
    char text[400];   /* a sentence about all of it, without a full stop */
};

/* What became of an entry's knobs. */
struct repair_ends {
    bool failed, denied, is_short;            /* denied: for want of a right */
    enum turn_end ends[QUANTITY_NAMED_COUNT]; /* UNNEEDED if the entry had no such turn */
    int64_t clock_mhz, memory_mhz;            /* FOREIGN: the clock that contradicts the ceiling */
};

/* Sets how it ended, and says of each knob of the entry what became of it; for one of which nothing stays. */
void repair_say(const struct journal_entry *entry, unsigned index, const struct repair_ends *all,
                struct repair *repair);

/* Makes the record of the GPU's entry of that kind, of which nothing is known yet. */
struct repair repair_begin(enum journal_kind kind, const char *uuid);

/* Adds what the entry says: its limits, its ceiling, its workload profiles and its performance level. */
void repair_describe(struct repair *repair, const struct journal_entry *entry);

/* Sets how it ended, and the text, as printf does. */
void repair_end_with(struct repair *repair, enum repair_end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
