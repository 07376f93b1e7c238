/* SPDX-License-Identifier: Apache-2.0 */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/kit/amount.h"
#include "cli/kit/live_screen.h"
#include "cli/kit/table_print.h"
#include "cli/machine/machine_commands.h"
#include "cli/machine/monitored.h"
#include "cli/options/open_devices.h"
#include "cli/program/child.h"
#include "cli/views/reading_view.h"
#include "device/device_meanings.h"

/* The devices that `flyball monitor` watches, and its two forms of output. */
struct monitor {
    const struct cli_call *call;
    struct device_list *list;
    struct monitored *watches; /* one for each device of the list */
    double interval_s;
    struct mono_time start, now, due;
};

/* The current reading of every device, as rows for programs and for people. */

/* The first ones are for programs only: people who are looking know them. */
static const struct meaning columns[] = {
    {"time_unix_s", "time", MEANING_REAL, 0, "s", MEANING_GAUGE,
     "When the row was read, in seconds since 1970."},
    {"elapsed_s", "elapsed (s)", MEANING_REAL, 1, "s", MEANING_COUNTER, "Time since the monitor began."},
    DEVICE_UUID,
    DEVICE_KIND,
    DEVICE_INDEX("index"),
    DEVICE_LABEL,
    DEVICE_POWER,
    DEVICE_LIMIT,
    {"energy_j", "energy (J)", MEANING_REAL, 1, "J", MEANING_COUNTER, "Energy since the monitor began."},
    {"energy_source", "source", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Where the energy comes from: the device's counter, or its power summed up."},
    DEVICE_TEMPERATURE,
    DEVICE_UTILIZATION,
    DEVICE_CLOCK,
    DEVICE_THROTTLE,
};

static const struct quantities monitor_quantities = {"a device at a moment", QUANTITIES(columns)};

enum { COLUMNS_ALL = sizeof columns / sizeof columns[0], COLUMNS_FOR_PROGRAMS = 3 };

/* Reads all devices, and sets the time of the next reading. */
static void monitor_read(struct monitor *monitor)
{
    struct device_reading reading;

    for (size_t i = 0; i < monitor->list->count; i++) {
        device_read(&monitor->list->devices[i], &clock_real, QUANTITY_ALL, &reading);
        monitored_take(&monitor->watches[i], &reading);
    }
    monitor->now = mono_now();
    do
        monitor->due = mono_after_s(monitor->due, monitor->interval_s);
    while (mono_elapsed_s(monitor->now, monitor->due) <= 0);
}

static void put_known(struct table *table, double value, const char *reason)
{
    if (isnan(value))
        table_add_unavailable(table, "-", reason);
    else
        table_add_real(table, value);
}

static void put_reading(struct table *table, const struct reading *reading, double divisor)
{
    char reason[READING_REASON_MAX];

    if (reading->state == READING_OK)
        table_add_real(table, (double)reading->value / divisor);
    else
        table_add_unavailable(table, "-", reading_reason(reading, reason));
}

static void put_throttle_rows(struct table *table, const struct reading *reading)
{
    char reason[READING_REASON_MAX];
    char text[THROTTLE_TEXT_MAX];

    if (reading->state == READING_OK)
        table_add_text(table, throttle_text(reading->value, text));
    else
        table_add_unavailable(table, "-", reading_reason(reading, reason));
}

static void put_row(struct table *table, const struct monitor *monitor, const struct monitored *watch,
                    bool people, double date_unix_s)
{
    const struct device_info *info = &watch->device->info;
    const struct reading *values = watch->reading.values;
    char label[DEVICE_LABEL_MAX];

    if (!people) {
        table_add_real(table, date_unix_s);
        table_add_real(table, mono_elapsed_s(monitor->start, monitor->now));
        table_add_text(table, info->uuid);
    }
    table_add_text(table, device_kind_name(info->kind));
    table_add_integer(table, info->index);
    table_add_text(table, device_label(info, label));
    put_known(table, watch->power_w, watch->power_reason);
    put_reading(table, reading_limit(&watch->reading), 1e3);
    put_known(table, watch->energy_j, watch->energy_reason);
    if (watch->source != NULL)
        table_add_text(table, watch->source);
    else
        table_add_unavailable(table, "-", watch->energy_reason);
    put_reading(table, &values[QUANTITY_TEMPERATURE], 1);
    put_reading(table, &values[QUANTITY_UTILIZATION], 1);
    put_reading(table, &values[QUANTITY_CLOCK_GPU], 1);
    put_throttle_rows(table, &values[QUANTITY_THROTTLE]);
}

static struct table *make_table(const struct monitor *monitor, bool people)
{
    size_t first = people ? COLUMNS_FOR_PROGRAMS : 0;
    struct table *table = table_new("flyball.monitor/1", columns + first, COLUMNS_ALL - first);
    double date_unix_s = (double)clock_real.date(clock_real.state).ns * 1e-9;

    for (size_t i = 0; i < monitor->list->count; i++)
        put_row(table, monitor, &monitor->watches[i], people, date_unix_s);
    return table;
}

/*
 * Print a row for every device in the format of the call: as a whole table, or as lines, the
 * first with a heading.
 */
static int monitor_put_table(const struct monitor *monitor, struct fly_error *out_error)
{
    struct table *table = make_table(monitor, cli_format(monitor->call) == TABLE_FORMAT_TABLE);
    int result = cli_emit_table(monitor->call, table, out_error);

    table_free(table);
    return result;
}

static int monitor_put_lines(const struct monitor *monitor, bool heading, struct fly_error *out_error)
{
    struct table *table = make_table(monitor, false);
    bool json = cli_format(monitor->call) == TABLE_FORMAT_JSON;
    struct buffer bytes;
    int result;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    result =
        table_print_lines(table, json ? TABLE_FORMAT_JSON : TABLE_FORMAT_CSV, heading, &bytes, out_error);
    if (result == 0)
        result = table_put(bytes.data, bytes.length, cli_out(monitor->call), "standard output", out_error);
    buffer_deinit(&bytes);
    table_free(table);
    return result;
}

/* What the live screen shows of the devices. */

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

/*
 * Shows the screen until q or a signal to end, then restores the terminal. FLY_EUNSUPPORTED for a
 * terminal that cannot be drawn on.
 */
static int monitor_screen(struct monitor *monitor, struct fly_error *out_error)
{
    struct screen screen = {.monitor = monitor};
    const struct live_view view = {
        .color = cli_color(monitor->call), .read = read_devices, .draw = draw, .data = &screen};

    setlocale(LC_CTYPE, "");
    screen.scale = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? blocks : letters;
    return live_screen_show(&view, out_error);
}

/* Time between the two readings of --once, so that counters which give only energy yield a power. */
static const double once_s = 0.25;

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, all of this machine."),
    {.name = "interval",
     .type = CLI_REAL,
     .placeholder = "SECONDS",
     .minimum = 0.05,
     .maximum = 86400,
     .default_text = "1",
     .key = "monitor.interval_s",
     .help = "Time from one reading to the next."},
    {.name = "once", .type = CLI_FLAG, .help = "Print what the devices say now, and end."},
    {.name = "count",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e15,
     .help = "Off a terminal, end after so many readings; if not given, go on."},
};

static int print_once(struct monitor *monitor, struct fly_error *out_error)
{
    monitor_read(monitor);
    clock_real.sleep_until(clock_real.state, mono_after_s(monitor->start, once_s));
    monitor_read(monitor);
    return monitor_put_table(monitor, out_error);
}

static int print_lines(struct monitor *monitor, struct fly_error *out_error)
{
    bool endless = !cli_set(monitor->call, "count");
    int64_t count = endless ? 0 : cli_integer(monitor->call, "count");
    struct stop_signals stop;
    int result = 0;

    stop_signals_hold(&stop);
    for (int64_t i = 0; result == 0 && (endless || i < count); i++) {
        if (i > 0 && stop_signals_wait(&stop, monitor->due))
            break;
        monitor_read(monitor);
        result = monitor_put_lines(monitor, i == 0, out_error);
    }
    stop_signals_release(&stop);
    return result;
}

static int tell(struct monitor *monitor, struct fly_error *out_error)
{
    const struct cli_call *call = monitor->call;
    bool screen =
        cli_out_is_terminal(call) && isatty(STDIN_FILENO) == 1 && cli_format(call) == TABLE_FORMAT_TABLE;

    if (cli_flag(call, "once"))
        return print_once(monitor, out_error);
    return screen ? monitor_screen(monitor, out_error) : print_lines(monitor, out_error);
}

static int monitor_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct device_list list; /* large */
    struct monitor monitor = {.call = call, .list = &list, .interval_s = cli_real(call, "interval")};
    int result = cli_open_devices(call, GPUS_ALL, &list, NULL, out_error);

    if (result < 0)
        return result;
    monitor.start = monitor.due = mono_now();
    monitor.watches = calloc(list.count + 1, sizeof *monitor.watches);
    if (monitor.watches == NULL)
        result = error_no_memory(out_error);
    else if (list.count == 0)
        result =
            error_set(out_error, FLY_EUNSUPPORTED,
                      "no device here can be measured; 'flyball doctor' says why, and what would change it");
    for (size_t i = 0; result == 0 && i < list.count; i++)
        monitored_init(&monitor.watches[i], &list.devices[i]);
    if (result == 0)
        result = tell(&monitor, out_error);
    free(monitor.watches);
    device_list_close(&list);
    return result;
}

const struct cli_command cmd_monitor = {
    .words = "monitor",
    .summary = "watch power, energy, heat and throttling of the devices",
    .paragraphs =
        {"On a terminal, a screen with a row for every device: power, the limit in force, energy since the "
         "start, temperature, utilisation, why a GPU is held down, and the last powers as small bars that "
         "the "
         "limit fills. q quits.",
         "Elsewhere, or with --format csv or json, a line for every device at every interval; JSON is one "
         "object a line, with null and a reason for what is not known. --once prints one table or document.",
         "Energy comes from the device's counter, or is the sampled power summed; the column 'source' says "
         "which. Nothing is set on any device but what a killed program left."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .examples = {{"flyball monitor", "watch all devices"},
                 {"flyball monitor --once", "print one table"},
                 {"flyball monitor -i 0 --interval 0.1 --format csv > gpu0.csv",
                  "keep ten readings a second of one GPU"}},
    .outputs = {&monitor_quantities},
    .run = monitor_run,
};
