/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps rows in lists whose points double their room; arrays of them are made when the chart is drawn. */
#include "cli/kit/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { FIRST_POINTS = 16, TEXT_MAX = 4096 };

const struct chart_unit chart_time_units[CHART_UNIT_COUNT] = {
    {"d", 86400.0}, {"h", 3600.0}, {"min", 60.0}, {"s", 1.0}};
const struct chart_unit chart_energy_units[CHART_UNIT_COUNT] = {
    {"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}, {"J", 1.0}};

struct chart_unit chart_unit_for(const struct chart_unit *units, double value)
{
    int i = 0;

    while (i < CHART_UNIT_COUNT - 1 && value < units[i].size)
        i++;
    return units[i];
}

void picture_begin(struct picture *picture, size_t memory_max)
{
    *picture = (struct picture){.failed = false};
    picture->end = &picture->panels;
    arena_init(&picture->arena, memory_max);
}

static void *keep(struct picture *picture, size_t count, size_t size)
{
    void *memory = arena_alloc(&picture->arena, count, size);

    picture->failed |= memory == NULL;
    return memory;
}

struct picture_panel *picture_panel(struct picture *picture, const struct chart_panel *look)
{
    struct picture_panel *panel = keep(picture, 1, sizeof *panel);

    if (panel == NULL)
        panel = &picture->lost_panel;
    else {
        *picture->end = panel;
        picture->end = &panel->next;
    }
    panel->chart = *look;
    panel->chart.notes = panel->notes;
    panel->end = &panel->rows;
    return panel;
}

struct picture_row *picture_row(struct picture *picture, struct picture_panel *panel,
                                const struct chart_series *look)
{
    struct picture_row *row = keep(picture, 1, sizeof *row);

    if (row == NULL)
        row = &picture->lost_row;
    else {
        *panel->end = row;
        panel->end = &row->next;
    }
    row->series = *look;
    return row;
}

/* Moves a list to where it has twice the room. */
static void *moved(struct picture *picture, const void *list, size_t count, size_t room, size_t size)
{
    void *memory = keep(picture, room, size);

    if (memory != NULL && count > 0)
        memcpy(memory, list, count * size);
    return memory;
}

static bool make_room(struct picture *picture, struct picture_row *row)
{
    size_t count = row->series.count, room = row->room > 0 ? 2 * row->room : FIRST_POINTS;

    if (count < row->room)
        return true;
    row->x = moved(picture, row->x, count, room, sizeof row->x[0]);
    row->y = moved(picture, row->y, count, room, sizeof row->y[0]);
    if (row->series.kind == CHART_BAND)
        row->high = moved(picture, row->high, count, room, sizeof row->high[0]);
    if (row->series.shape != SVG_NO_SHAPE)
        row->tips = moved(picture, row->tips, count, room, sizeof row->tips[0]);
    row->room = room;
    row->series.x = row->x;
    row->series.y = row->y;
    row->series.y_high = row->high;
    row->series.tips = row->tips;
    return !picture->failed;
}

void picture_point(struct picture *picture, struct picture_row *row, double x, double y, const char *tip)
{
    if (picture->failed || !make_room(picture, row))
        return;
    row->x[row->series.count] = x;
    row->y[row->series.count] = y;
    if (row->tips != NULL)
        row->tips[row->series.count] = tip;
    row->series.count++;
}

void picture_between(struct picture *picture, struct picture_row *row, double x, double low, double high)
{
    picture_point(picture, row, x, low, NULL);
    if (!picture->failed)
        row->high[row->series.count - 1] = high;
}

void picture_note(struct picture_panel *panel, double x, double y, const char *text)
{
    if (panel->chart.note_count < CHART_NOTES_MAX)
        panel->notes[panel->chart.note_count++] = (struct chart_note){x, y, text};
}

const char *picture_text(struct picture *picture, const char *format, ...)
{
    char text[TEXT_MAX];
    const char *kept;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    kept = arena_strdup(&picture->arena, text);
    picture->failed |= kept == NULL;
    return kept != NULL ? kept : "";
}

void picture_drop(struct picture *picture)
{
    arena_deinit(&picture->arena);
}

/* Makes the array of a panel's rows, of those that have points. */
static void line_up(struct picture *picture, struct picture_panel *panel)
{
    struct chart_series *series;
    size_t count = 0;

    for (const struct picture_row *row = panel->rows; row != NULL; row = row->next)
        count += row->series.count > 0;
    series = keep(picture, count + 1, sizeof series[0]);
    if (series == NULL)
        return;
    panel->chart.series = series;
    for (const struct picture_row *row = panel->rows; row != NULL; row = row->next) {
        if (row->series.count > 0)
            series[panel->chart.series_count++] = row->series;
    }
}

static int draw(struct picture *picture, struct chart *chart, struct buffer *out, struct fly_error *out_error)
{
    struct chart_panel *panels;

    for (struct picture_panel *panel = picture->panels; panel != NULL; panel = panel->next) {
        line_up(picture, panel);
        chart->panel_count++;
    }
    panels = keep(picture, chart->panel_count + 1, sizeof panels[0]);
    if (picture->failed)
        return error_no_memory(out_error);
    chart->panels = panels;
    for (const struct picture_panel *panel = picture->panels; panel != NULL; panel = panel->next)
        *panels++ = panel->chart;
    return chart_draw(chart, out, out_error);
}

int picture_commit(struct picture *picture, const char *title, const char *description,
                   struct atomic_file *file, struct fly_error *out_error)
{
    struct chart chart = {.title = title, .description = description};
    struct buffer out;
    int code;

    buffer_init(&out, CHART_BYTES_MAX);
    code = draw(picture, &chart, &out, out_error);
    if (code < 0)
        atomic_file_discard(file);
    else {
        /* The commit reports a failed write. */
        fwrite(out.data, 1, out.length, file->stream);
        code = atomic_file_commit(file, out_error);
    }
    buffer_deinit(&out);
    picture_drop(picture);
    return code;
}

int picture_save(struct picture *picture, const char *path, const char *title, const char *description,
                 struct fly_error *out_error)
{
    struct atomic_file file;
    int code = atomic_file_open(path, &file, out_error);

    if (code == 0)
        return picture_commit(picture, title, description, &file, out_error);
    picture_drop(picture);
    return code;
}
