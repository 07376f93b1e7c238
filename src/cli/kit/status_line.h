/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_STATUS_LINE_H
#define FLYBALL_CLI_KIT_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/*
 * The last line of a terminal, which says what this command does while another program
 * writes to the same terminal: that scrolls above it, in the rest of the screen.
 *
 *     status_line_begin(&line, wanted ? STDERR_FILENO : -1);
 *     ... every now and then ...
 *         if (status_line_is_due(&line))
 *             status_line_show(&line, "flyball: trying 250 W");
 *     status_line_end(&line);          before this command writes anything else, or stops
 *
 * Drawn at most five times a second, and only by a process group in the terminal's
 * foreground. A terminal that takes nothing (Ctrl-S) is not waited for. Of a process
 * that was killed the line stays; `reset` removes it.
 */
enum { STATUS_TEXT_MAX = 256, STATUS_DRAWN_MAX = STATUS_TEXT_MAX + 96 };

struct status_line {
    int fd;            /* -1: nothing is drawn */
    int rows, columns; /* of the terminal that the line stands on; 0: it stands nowhere */
    char text[STATUS_TEXT_MAX];
    struct mono_time next;
};

void status_line_begin(struct status_line *line, int fd);
bool status_line_is_due(struct status_line *line);
/* `text` is of single columns, and cut to the terminal's width. */
void status_line_show(struct status_line *line, const char *text);
/* Takes it away; it comes back with the next text. */
void status_line_end(struct status_line *line);

/* What is written to draw it on a screen of that size, `first` where it does not stand there; returns the
 * length. */
size_t status_line_draw(int rows, int columns, bool first, const char *text, char drawn[STATUS_DRAWN_MAX]);

#endif
