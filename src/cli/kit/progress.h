/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_PROGRESS_H
#define FLYBALL_CLI_KIT_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"

/*
 * The last line of a terminal shows what this command does, while another program writes to the
 * same terminal and scrolls in the rest of the screen above it.
 *
 *     status_line_begin(&line, wanted ? STDERR_FILENO : -1);
 *     ... every now and then ...
 *         if (status_line_is_due(&line))
 *             status_line_show(&line, "flyball: trying 250 W");
 *     status_line_end(&line);          before this command writes anything else, or stops
 *
 * It is drawn at most five times a second, and only while the process group is in the terminal's
 * foreground. It does not wait for a terminal that accepts no output (Ctrl-S). If the process is
 * killed, the line stays; `reset` removes it.
 */
enum { STATUS_TEXT_MAX = 256, STATUS_DRAWN_MAX = STATUS_TEXT_MAX + 96 };

struct status_line {
    int fd;            /* -1: nothing is drawn */
    int rows, columns; /* of the terminal that shows the line; 0: it is not shown */
    char text[STATUS_TEXT_MAX];
    struct mono_time next;
};

void status_line_begin(struct status_line *line, int fd);
bool status_line_is_due(struct status_line *line);

/* `text` must have single-column characters only; it is cut to the terminal's width. */
void status_line_show(struct status_line *line, const char *text);

/* Removes the line; the next text brings it back. */
void status_line_end(struct status_line *line);

/*
 * Writes to `drawn` what draws the line on a screen of that size; `first` means that the line is
 * not shown yet. Returns the length.
 */
size_t status_line_draw(int rows, int columns, bool first, const char *text, char drawn[STATUS_DRAWN_MAX]);

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
