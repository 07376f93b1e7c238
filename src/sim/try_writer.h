/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_TRY_WRITER_H
#define FLYBALL_SIM_TRY_WRITER_H

#include <stdint.h>

#include "base/buffer.h"
#include "sim/crew.h"
#include "sim/recurring.h"

/*
 * Writes tries as lines of CSV into a unit's part: first the columns that all of them share, then
 * each try's own. 17 significant digits read back exactly.
 */
struct try_writer {
    struct buffer prefix; /* with its final comma */
    struct crew_unit *unit;
};

/* `group` NULL leaves that column out. */
void try_writer_init(struct try_writer *writer, struct crew_unit *unit, const char *gpu, const char *group,
                     const char *dataset, const char *policy, uint32_t seed);
void try_writer_deinit(struct try_writer *writer);

/* A recurring_observer; `context` is a struct try_writer. */
void try_writer_observe(void *context, const struct try_record *record);

/* What a unit keeps of a try, for a sink that wants no text: the bytes of this struct, one after another. */
struct try_kept {
    uint64_t unit;
    struct try_record record;
};

/* A recurring_observer that writes these bytes; `context` is a struct try_writer. */
void try_writer_keep(void *context, const struct try_record *record);

/* The headers of the two tries files, with line end. */
extern const char try_header[];
extern const char try_header_of_groups[];

#endif
