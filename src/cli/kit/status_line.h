/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_STATUS_LINE_H
#define FLYBALL_CLI_KIT_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
