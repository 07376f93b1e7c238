/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_USED_H
#define FLYBALL_METER_TALLY_USED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/arena.h"
#include "meter/tally/tally.h"

/*
 * Reads flyballd's record of who used the GPUs (docs/reference/formats.md): what the meters counted, as
 * windows of meter/tally/tally.h, and what each process used within a period.
 *
 *     struct used used;
 *
 *     used_init(&used);
 *     used_read(&used, "/var/lib/flyballd/usage.jsonl", "node1", out_error);    for each file
 *     used_end(&used, since_unix_s, until_unix_s, out_error);
 *     tally_make(used.windows, used.window_count, ...);
 *     used_deinit(&used);
 *
 * A GPU's total is on record every few minutes; the difference of two is a window. A process has one
 * energy, whose time lies between its start and its end. Where a border of the period lies within,
 * the part is divided in proportion. Of a row that is on record several times, the newest counts. Energy that
 * is of no single process (idle, shared, unobserved, or of rows that were given up) is only in the windows.
 */
enum { USED_LINES_MAX = 1 << 20, USED_LINE_BYTES_MAX = 64 << 10 };

struct used_process {
    const char *node, *uuid;               /* of the GPU */
    const char *user, *training_job;       /* "": unknown; the user as uid:NUMBER, or a name */
    int64_t pid, from_unix_ms, to_unix_ms; /* there */
    int64_t started_unix_ms, told_unix_ms; /* with pid, by what it is known; when it was written */
    double energy_j, half_width_j, time_s; /* after used_end: within the period; energy NAN: unknown */
};

struct used {
    struct tally_window *windows; /* owned, like the rest; from used_end on */
    size_t window_count, window_capacity;
    struct used_process *processes;
    size_t process_count, process_capacity;
    struct used_total *totals;
    size_t total_count, total_capacity;
    size_t damaged;  /* lines that are none */
    size_t emulated; /* windows of emulated GPUs */
    struct arena arena;
};

void used_init(struct used *used);
void used_deinit(struct used *used);

/* Returns whether a file begins as such a record; false if it cannot be read. */
bool used_is_record(const char *path);

/*
 * Adds a file; `node` says of which machine it is, "" for an unknown one. A line that is none, such as one
 * that was torn, is counted and left out. FLY_EREAD, FLY_EPERM, FLY_ENOTFOUND, FLY_ELIMIT, FLY_ENOMEM.
 */
int used_read(struct used *used, const char *path, const char *node, struct fly_error *out_error);

/* Adds the lines of a text, for used_read and its tests. */
int used_take(struct used *used, const char *text, size_t length, const char *node,
              struct fly_error *out_error);

/* Cuts to the period; call it once, after all files. */
int used_end(struct used *used, double since_unix_s, double until_unix_s, struct fly_error *out_error);

#endif
