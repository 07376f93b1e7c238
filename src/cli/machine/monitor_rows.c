/* SPDX-License-Identifier: Apache-2.0 */
/* The current reading of every device, as rows for programs and for people. */
#include <math.h>

#include "cli/kit/table_print.h"
#include "cli/machine/monitor.h"
#include "cli/machine/throttle.h"
#include "cli/views/reading_view.h"
#include "device/device_meanings.h"

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
const struct quantities monitor_quantities = {"a device at a moment", QUANTITIES(columns)};
enum { COLUMNS_ALL = sizeof columns / sizeof columns[0], COLUMNS_FOR_PROGRAMS = 3 };

void monitor_read(struct monitor *monitor)
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

static void put_throttle(struct table *table, const struct reading *reading)
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
    put_throttle(table, &values[QUANTITY_THROTTLE]);
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

int monitor_put_table(const struct monitor *monitor, struct fly_error *out_error)
{
    struct table *table = make_table(monitor, cli_format(monitor->call) == TABLE_FORMAT_TABLE);
    int result = cli_emit_table(monitor->call, table, out_error);

    table_free(table);
    return result;
}

int monitor_put_lines(const struct monitor *monitor, bool heading, struct fly_error *out_error)
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
