/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_PROGRESS_H
#define FLYBALL_CLI_KIT_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"

/*
 * A line on stderr that shows how far a long computation has come.
 *
 * Workers call `progress_add` from any thread. The main thread calls `progress_tick` while it
 * waits, as often as it likes. The line appears after one second, is redrawn at most ten times
 * per second, and is cleared at the end.
 *
 *     cli_progress_begin(call, &progress, "tries", total);
 *     while (!workers_wait(&workers, PROGRESS_INTERVAL_MS))
 *         progress_tick(&progress);
 *     progress_end(&progress);
 */
enum { PROGRESS_INTERVAL_MS = 100, PROGRESS_DELAY_MS = 1000 };

struct progress {
    atomic_uint_fast64_t done;
    uint64_t total;   /* 0: not known */
    const char *unit; /* borrowed, "tries" */
    FILE *stream;     /* NULL: count only */
    struct mono_time start;
    struct mono_time drawn; /* when it was last drawn */
    bool visible;           /* a line stands on the terminal */
};

/* `stream` NULL draws nothing. */
void progress_begin(struct progress *progress, FILE *stream, const char *unit, uint64_t total);

/* Thread-safe. */
void progress_add(struct progress *progress, uint64_t count);

void progress_tick(struct progress *progress);

/* Does the same for a given monotonic time. For tests. */
void progress_tick_at(struct progress *progress, struct mono_time now);

/* Clears the line. */
void progress_end(struct progress *progress);

#endif
