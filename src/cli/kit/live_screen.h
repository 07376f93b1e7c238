/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_LIVE_SCREEN_H
#define FLYBALL_CLI_KIT_LIVE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "base/clock.h"

/*
 * A screen of the terminal that is drawn anew at every reading, until q or a signal to end.
 *
 *     const struct live_view view = {.color = cli_color(call), .read = read, .draw = draw, .data = &mine};
 *
 *     code = live_screen_show(&view, out_error);
 *
 * `draw` begins on an empty screen and draws with curses, on LINES lines of COLS columns; it is called after
 * each reading, after a key, and when the window's size changes. For one thread; it holds signals
 * meanwhile, and the terminal is restored on every way out.
 */
struct live_view {
    bool color;                               /* if the terminal has any */
    struct mono_time (*read)(void *data);     /* reads; returns when to read next */
    void (*draw)(void *data, bool color);     /* with `color`, the pairs below are there */
    bool (*take_key)(void *data, int letter); /* returns whether to read at once; NULL: no keys but q */
    void *data;
};

/* Numbers of colour pairs. */
enum { LIVE_LOW = 1, LIVE_MIDDLE, LIVE_HIGH };

/* FLY_EUNSUPPORTED for a terminal that cannot be drawn on. */
int live_screen_show(const struct live_view *view, struct fly_error *out_error);

/* A column of figures; its text is cut to its width. */
struct live_column {
    const char *title;
    int width; /* below 0: aligned to the left */
    int rank;  /* from 1; on a narrow screen, columns with the highest ranks are left out first */
};

/*
 * Returns the highest rank up to which all columns fit the screen, 1 if none does. Columns lie `stride` bytes
 * apart, the first member of some struct.
 */
int live_columns_rank(const struct live_column *first, size_t count, size_t stride);

/* Draws a text in its column where the cursor is; with NULL the title. Cut at the screen's edge. */
void live_column_put(const struct live_column *column, const char *text);

/* Draws the heading at the top: the text, and at the right, if there is room, what keys do. In bold. */
void live_heading_put(const char *text, const char *keys);

/* Draws in the last line that so many rows did not fit; `remedy` says what helps. */
void live_more_put(size_t hidden, const char *remedy);

#endif
