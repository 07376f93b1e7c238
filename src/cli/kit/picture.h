/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_PICTURE_H
#define FLYBALL_CLI_KIT_PICTURE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/file/atomic_file.h"
#include "cli/kit/chart.h"

/*
 * A chart (chart.h) while it is made: panels, in them rows of points, and labels. It keeps all that it
 * shows; what it has no memory for is an error of picture_commit alone.
 *
 *     struct picture picture;
 *     struct picture_panel *panel;
 *     struct picture_row *row;
 *
 *     picture_begin(&picture, 4 << 20);
 *     panel = picture_panel(&picture, &(struct chart_panel){.height = 300, .x = {.label = "time (h)"}, ...});
 *     row = picture_row(&picture, panel, &(struct chart_series){.name = "frontier", .kind = CHART_LINE,
 * ...}); picture_point(&picture, row, 1.5, 3.1, NULL); picture_note(&picture, panel, 1.5, 3.1,
 * picture_text(&picture, "batch %u", 48)); return picture_commit(&picture, "librispeech on v100", "...",
 * &file, out_error);
 *
 * Rows and panels come out in the order in which they were begun; rows without points are left out, from the
 * legend too. Not thread-safe.
 */
struct picture_row {
    struct chart_series series; /* with the points so far */
    double *x, *y, *high;
    const char **tips;
    size_t room;
    struct picture_row *next;
};

struct picture_panel {
    struct chart_panel chart;
    struct picture_row *rows, **end; /* in their order, and where the next one goes */
    struct chart_note notes[CHART_NOTES_MAX];
    struct picture_panel *next;
};

struct picture {
    struct arena arena; /* owns all that was added */
    struct picture_panel *panels, **end;
    struct picture_panel lost_panel; /* these take what there is no memory for */
    struct picture_row lost_row;
    bool failed;
};

void picture_begin(struct picture *picture, size_t memory_max);

/* Adds a panel: title, height and axes; labels are borrowed, as all texts are. */
struct picture_panel *picture_panel(struct picture *picture, const struct chart_panel *look);

/* Adds a row to the panel: name, kind, colour, shape, radius and dash. A row without a shape shows no tips.
 */
struct picture_row *picture_row(struct picture *picture, struct picture_panel *panel,
                                const struct chart_series *look);

/* Adds a point; `tip` (or NULL) is borrowed. An unknown value breaks the row's line. */
void picture_point(struct picture *picture, struct picture_row *row, double x, double y, const char *tip);

/* Adds a place of a CHART_BAND. */
void picture_between(struct picture *picture, struct picture_row *row, double x, double low, double high);

/* Adds a label, up to CHART_NOTES_MAX in a panel. */
void picture_note(struct picture_panel *panel, double x, double y, const char *text);

/* Keeps a text. */
__attribute__((format(printf, 2, 3))) const char *picture_text(struct picture *picture, const char *format,
                                                               ...);

/* A unit of an axis. */
struct chart_unit {
    const char *name;
    double size; /* in the unit of the values */
};
enum { CHART_UNIT_COUNT = 4 };
extern const struct chart_unit chart_time_units[CHART_UNIT_COUNT], chart_energy_units[CHART_UNIT_COUNT];

/* Returns the largest of the CHART_UNIT_COUNT units in which the value is at least one, else the smallest. */
struct chart_unit chart_unit_for(const struct chart_unit *units, double value);

/* Frees a picture that is not committed. */
void picture_drop(struct picture *picture);

/* Draws it and commits the file, or discards it on failure; frees the picture. Errors as chart_draw. */
int picture_commit(struct picture *picture, const char *title, const char *description,
                   struct atomic_file *file, struct fly_error *out_error);

/* Does the same with a file of that path. */
int picture_save(struct picture *picture, const char *path, const char *title, const char *description,
                 struct fly_error *out_error);

#endif
