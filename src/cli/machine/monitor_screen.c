/* SPDX-License-Identifier: Apache-2.0 */
/* What the live screen shows of the devices. */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kit/amount.h"
#include "cli/kit/live_screen.h"
#include "cli/machine/monitor.h"
#include "cli/machine/throttle.h"
#include "cli/views/reading_view.h"

enum { TEXT_MAX = 256, NAME_MAX_BYTES = 1024, HEADER_LINES = 2 };

static const char quit[] = "q quits";

/* A power above these parts of the limit is coloured. */
static const double middle_part = 0.7, high_part = 0.95;

static const char *const blocks[] = {" ",
                                     "\xe2\x96\x81",
                                     "\xe2\x96\x82",
                                     "\xe2\x96\x83",
                                     "\xe2\x96\x84",
                                     "\xe2\x96\x85",
                                     "\xe2\x96\x86",
                                     "\xe2\x96\x87",
                                     "\xe2\x96\x88"};
static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
enum { LEVELS = sizeof blocks / sizeof blocks[0] };
_Static_assert(LEVELS == sizeof letters / sizeof letters[0], "both scales have the same steps");

struct screen {
    struct monitor *monitor;
    const char *const *scale;
    bool color;
};

/* Returns the power that fills a bar: the limit, or the highest power seen. */
static double full_power_w(const struct monitored *watch)
{
    const struct reading *limit = reading_limit(&watch->reading);
    double full_w = 0;

    if (limit->state == READING_OK && limit->value > 0)
        return (double)limit->value / 1e3;
    for (size_t i = 0; i < MONITORED_HISTORY; i++)
        full_w = fmax(full_w, monitored_history_w(watch, i));
    return full_w > 0 ? full_w : 1;
}

static int attribute_of(const struct screen *screen, double part)
{
    if (!screen->color || isnan(part))
        return A_NORMAL;
    return (int)COLOR_PAIR(part >= high_part ? LIVE_HIGH : part >= middle_part ? LIVE_MIDDLE : LIVE_LOW);
}

static int level_of(double part)
{
    if (isnan(part))
        return 0;
    return (int)lround(fmin(fmax(part, 0), 1) * (LEVELS - 1));
}

/* Draws the last powers as small bars, the newest at the right. */
static void draw_history(const struct screen *screen, const struct monitored *watch, int line, int column,
                         int width)
{
    double full_w = full_power_w(watch);

    for (int i = 0; i < width; i++) {
        double part = monitored_history_w(watch, (size_t)(width - 1 - i)) / full_w;

        attrset(attribute_of(screen, part));
        mvaddstr(line, column + i, screen->scale[level_of(part)]);
    }
    attrset(A_NORMAL);
}

/* Returns "324 W", or "-" if it is not known. */
static const char *reading_text(const struct reading *reading, double divisor, const char *unit,
                                char text[TEXT_MAX])
{
    if (reading->state != READING_OK)
        snprintf(text, TEXT_MAX, "-");
    else
        snprintf(text, TEXT_MAX, "%.0f%s", (double)reading->value / divisor, unit);
    return text;
}

static const char *throttle_of(const struct monitored *watch, char text[THROTTLE_TEXT_MAX])
{
    const struct reading *throttle = &watch->reading.values[QUANTITY_THROTTLE];

    if (throttle->state != READING_OK)
        snprintf(text, THROTTLE_TEXT_MAX, "-");
    else
        throttle_text(throttle->value, text);
    return text;
}

static void put_device(const struct monitored *watch, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX, "%s %u", device_kind_name(watch->device->info.kind), watch->device->info.index);
}

static void put_power(const struct monitored *watch, char text[TEXT_MAX])
{
    if (!isnan(watch->power_w))
        amount_power(watch->power_w, text);
}

static void put_limit(const struct monitored *watch, char text[TEXT_MAX])
{
    reading_text(reading_limit(&watch->reading), 1e3, " W", text);
}

static void put_energy(const struct monitored *watch, char text[TEXT_MAX])
{
    if (!isnan(watch->energy_j))
        amount_energy(watch->energy_j, NAN, "", text);
}

static void put_heat(const struct monitored *watch, char text[TEXT_MAX])
{
    reading_text(&watch->reading.values[QUANTITY_TEMPERATURE], 1, " C", text);
}

static void put_use(const struct monitored *watch, char text[TEXT_MAX])
{
    reading_text(&watch->reading.values[QUANTITY_UTILIZATION], 1, " %", text);
}

static void put_throttle(const struct monitored *watch, char text[TEXT_MAX])
{
    char throttle[THROTTLE_TEXT_MAX];

    snprintf(text, TEXT_MAX, "%s", throttle_of(watch, throttle));
}

/* A device's figures, in the order of the screen. */
static const struct figure {
    struct live_column column;
    void (*put)(const struct monitored *watch, char text[TEXT_MAX]); /* leaves "-" if it is unknown */
} figures[] = {
    {{"device", -7, 1}, put_device},          {{"power", 8, 2}, put_power}, {{"limit", 7, 4}, put_limit},
    {{"energy", 10, 3}, put_energy},          {{"heat", 6, 6}, put_heat},   {{"use", 5, 7}, put_use},
    {{"throttled by", -12, 5}, put_throttle},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static void add_figure(const struct figure *figure, const struct monitored *watch)
{
    char text[TEXT_MAX] = "-";

    if (watch != NULL)
        figure->put(watch, text);
    live_column_put(&figure->column, watch != NULL ? text : NULL);
}

/* Draws a device's figures on one line, or their titles. Returns where the next column begins. */
static int draw_figures(const struct monitored *watch, int line)
{
    int rank = live_columns_rank(&figures[0].column, FIGURES, sizeof figures[0]);

    move(line, 0);
    for (size_t i = 0; i < FIGURES; i++) {
        if (figures[i].column.rank <= rank)
            add_figure(&figures[i], watch);
    }
    /* After a full line the cursor is on the next one. */
    return getcury(stdscr) == line ? getcurx(stdscr) + 1 : COLS;
}

/* Draws a device's figures, and its history behind them. */
static void draw_device(const struct screen *screen, const struct monitored *watch, int line)
{
    int column = draw_figures(watch, line);

    if (column < COLS)
        draw_history(screen, watch, line, column,
                     COLS - column < MONITORED_HISTORY ? COLS - column : MONITORED_HISTORY);
}

/* Draws what the device is, and notes on its figures. */
static void draw_name(const struct monitored *watch, int line)
{
    const struct device_info *info = &watch->device->info;
    bool unknown = isnan(watch->energy_j);
    char label[DEVICE_LABEL_MAX], text[NAME_MAX_BYTES];

    device_label(info, label);
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", info->name, label[0] != '\0' ? ", " : "", label,
             unknown ? ", energy: " : "", unknown ? watch->energy_reason : "",
             watch->source != NULL ? ", energy by " : "", watch->source != NULL ? watch->source : "");
    attrset(A_DIM);
    mvaddnstr(line, 2, text, COLS > 2 ? COLS - 2 : 0);
    attrset(A_NORMAL);
}

static void draw_heading(const struct monitor *monitor)
{
    static const char history[] = "power, newest to the right";
    char elapsed[AMOUNT_MAX], text[TEXT_MAX];
    int column;

    amount_time(round(mono_elapsed_s(monitor->start, monitor->now)), elapsed);
    snprintf(text, sizeof text, "flyball monitor: %s, every %g s", elapsed, monitor->interval_s);
    live_heading_put(text, quit);
    attrset(A_BOLD);
    column = draw_figures(NULL, 1);
    if (column + (int)sizeof history <= COLS)
        mvaddstr(1, column, history);
    attrset(A_NORMAL);
}

static void draw(void *data, bool color)
{
    struct screen *screen = data;
    const struct monitor *monitor = screen->monitor;
    size_t count = monitor->list->count;
    size_t room = LINES > HEADER_LINES ? (size_t)(LINES - HEADER_LINES) : 0;
    size_t lines = 2 * count <= room ? 2 : 1;
    size_t shown = lines * count <= room ? count : room > 0 ? room - 1 : 0;

    screen->color = color;
    draw_heading(monitor);
    for (size_t i = 0; i < shown; i++) {
        int line = HEADER_LINES + (int)(i * lines);

        draw_device(screen, &monitor->watches[i], line);
        if (lines > 1)
            draw_name(&monitor->watches[i], line + 1);
    }
    if (shown < count && LINES > HEADER_LINES)
        live_more_put(count - shown, "enlarge the window, or choose GPUs with -i");
}

static struct mono_time read_devices(void *data)
{
    struct screen *screen = data;

    monitor_read(screen->monitor);
    return screen->monitor->due;
}

int monitor_screen(struct monitor *monitor, struct fly_error *out_error)
{
    struct screen screen = {.monitor = monitor};
    const struct live_view view = {
        .color = cli_color(monitor->call), .read = read_devices, .draw = draw, .data = &screen};

    setlocale(LC_CTYPE, "");
    screen.scale = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? blocks : letters;
    return live_screen_show(&view, out_error);
}
