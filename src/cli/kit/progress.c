/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/progress.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * This process can neither wait for the program's writes nor order its own among them. So the
 * program gets a screen that is one line shorter, by the scroll margins that every terminal since
 * the VT100 knows.
 */

enum { ROWS_LEAST = 4, COLUMNS_LEAST = 20 };

static const double every_s = 0.2;

#define SAVE "\0337"
#define RESTORE "\0338"
#define ERASE_TO_END "\033[K"

/*
 * Moves down, which scrolls if the cursor is on the last line, and up again: then the cursor is
 * not on that line.
 */
#define LEAVE_LAST_LINE "\033D\033M"
#define WHOLE_SCREEN "\033[r"

size_t status_line_draw(int rows, int columns, bool first, const char *text, char drawn[STATUS_DRAWN_MAX])
{
    int length = 0;

    if (first)
        length = snprintf(drawn, STATUS_DRAWN_MAX, LEAVE_LAST_LINE SAVE "\033[1;%dr" RESTORE, rows - 1);
    length += snprintf(drawn + length, STATUS_DRAWN_MAX - (size_t)length,
                       SAVE "\033[%d;1H" ERASE_TO_END "%.*s" RESTORE, rows,
                       columns - 1 < STATUS_TEXT_MAX ? columns - 1 : STATUS_TEXT_MAX, text);
    return (size_t)length;
}

/*
 * Writes in one piece, so that none of the program's output comes in between. Returns whether
 * there was room.
 */
static bool put(const struct status_line *line, const char *text, size_t length)
{
    struct pollfd terminal = {.fd = line->fd, .events = POLLOUT};

    return poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT) != 0 &&
           write(line->fd, text, length) == (ssize_t)length;
}

void status_line_begin(struct status_line *line, int fd)
{
    *line = (struct status_line){.fd = fd};
}

bool status_line_is_due(struct status_line *line)
{
    struct mono_time now = mono_now();

    if (line->fd < 0 || mono_elapsed_s(now, line->next) > 0)
        return false;
    line->next = mono_after_s(now, every_s);
    return true;
}

void status_line_show(struct status_line *line, const char *text)
{
    char drawn[STATUS_DRAWN_MAX];
    struct winsize size;
    bool first;

    if (line->fd < 0 || ioctl(line->fd, TIOCGWINSZ, &size) < 0 || size.ws_row < ROWS_LEAST ||
        size.ws_col < COLUMNS_LEAST || tcgetpgrp(line->fd) != getpgrp())
        return;
    first = line->rows != size.ws_row || line->columns != size.ws_col;
    if (!first && strcmp(text, line->text) == 0)
        return;
    if (!put(line, drawn, status_line_draw(size.ws_row, size.ws_col, first, text, drawn)))
        return;
    line->rows = size.ws_row;
    line->columns = size.ws_col;
    snprintf(line->text, sizeof line->text, "%s", text);
}

void status_line_end(struct status_line *line)
{
    char text[STATUS_DRAWN_MAX];
    int length;

    if (line->rows == 0)
        return;
    length = snprintf(text, sizeof text, SAVE WHOLE_SCREEN "\033[%d;1H" ERASE_TO_END RESTORE, line->rows);
    (void)put(line, text, (size_t)length);
    line->rows = line->columns = 0;
}

static const double delay_s = PROGRESS_DELAY_MS / 1e3;
static const double interval_s = PROGRESS_INTERVAL_MS / 1e3;

void progress_begin(struct progress *progress, FILE *stream, const char *unit, uint64_t total)
{
    *progress = (struct progress){.total = total, .unit = unit, .stream = stream};
    atomic_init(&progress->done, 0);
    progress->start = progress->drawn = mono_now();
}

void progress_add(struct progress *progress, uint64_t count)
{
    atomic_fetch_add_explicit(&progress->done, count, memory_order_relaxed);
}

static void progress_draw(const struct progress *progress, double elapsed_s)
{
    uint64_t done = atomic_load_explicit(&progress->done, memory_order_relaxed);

    fprintf(progress->stream, "\r%" PRIu64, done);
    if (progress->total > 0)
        fprintf(progress->stream, " of %" PRIu64, progress->total);
    fprintf(progress->stream, " %s", progress->unit);
    if (progress->total > 0)
        fprintf(progress->stream, " (%.0f%%)", 100.0 * (double)done / (double)progress->total);
    fprintf(progress->stream, ", %.0f s\033[K", elapsed_s);
    fflush(progress->stream);
}

void progress_tick_at(struct progress *progress, struct mono_time now)
{
    double elapsed_s = mono_elapsed_s(progress->start, now);

    if (progress->stream == NULL || elapsed_s < delay_s)
        return;
    if (progress->visible && mono_elapsed_s(progress->drawn, now) < interval_s)
        return;
    progress_draw(progress, elapsed_s);
    progress->drawn = now;
    progress->visible = true;
}

void progress_tick(struct progress *progress)
{
    progress_tick_at(progress, mono_now());
}

void progress_end(struct progress *progress)
{
    if (progress->visible) {
        fputs("\r\033[K", progress->stream);
        fflush(progress->stream);
    }
    progress->visible = false;
}
