/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_REPAIR_RECORD_H
#define FLYBALL_KNOB_REPAIR_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "knob/journal.h"

/* What a repair (repair.h) tells. */

/* What became of a journal's entry. */
enum repair_end {
    REPAIR_RESTORED,    /* what stood before stands again */
    REPAIR_UNNEEDED,    /* it stood already, or the machine was started anew since */
    REPAIR_FOREIGN,     /* another program changed it since: left, and forgotten */
    REPAIR_IN_USE,      /* its session lives */
    REPAIR_ABSENT,      /* no such GPU here: the entry stays */
    REPAIR_FAILED,      /* the entry stays */
    REPAIR_CORRUPT,     /* the file is moved aside, and nothing is guessed */
    REPAIR_DISBELIEVED, /* of a user who may not turn what the entry says he turned: moved aside */
    REPAIR_END_COUNT
};

struct repair {
    enum repair_end end;
    char uuid[DEVICE_TEXT_MAX];
    bool kept;
    int64_t previous_mw, set_mw; /* of the entry; 0: no limit in it */
    int64_t ceiling_mhz;         /* of the entry, on the clock; 0: none in it */
    int64_t found_mw;            /* what stood; 0: not known */
    char text[320];              /* all of it, a sentence without its full stop */
};

/* Of the GPU's entry of that kind, which nothing is known of yet. */
struct repair repair_begin(enum journal_kind kind, const char *uuid);

/* Adds what the entry says: its limits and its ceiling. */
void repair_describe(struct repair *repair, const struct journal_entry *entry);

/* How it ended, and its words, as printf has them. */
void repair_end_with(struct repair *repair, enum repair_end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
