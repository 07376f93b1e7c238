/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a recording, member by member: for reading, and for writing all but the readings. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device/device_coding.h"
#include "device/recording/recording_private.h"
#include "shapes/shape_rows.h"

enum { SECOND_NS = 1000000000, DAY_S = 86400, HOUR_S = 3600 };

/* ---- texts that stand for values ---- */

static bool read_date(const char *text, void *out_date)
{
    struct tm utc = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    time_t seconds = end != NULL && *end == '\0' ? timegm(&utc) : -1;

    if (seconds < 0 || seconds > INT64_MAX / SECOND_NS)
        return false;
    *(struct wall_time *)out_date = (struct wall_time){.ns = (int64_t)seconds * SECOND_NS};
    return true;
}

static void write_date(const void *date, char text[SHAPE_CODED_MAX])
{
    time_t seconds = (time_t)(((const struct wall_time *)date)->ns / SECOND_NS);
    struct tm utc;

    text[0] = '\0';
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(text, SHAPE_CODED_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static bool read_quantity(const char *text, void *out_quantity)
{
    int quantity = quantity_find(text);

    if (quantity >= 0)
        *(int *)out_quantity = quantity;
    return quantity >= 0;
}

static void write_quantity(const void *quantity, char text[SHAPE_CODED_MAX])
{
    snprintf(text, SHAPE_CODED_MAX, "%s", quantity_facts[*(const int *)quantity].key);
}

/* For a quantity without a value. */
static bool read_state(const char *text, void *out_state)
{
    int state = reading_state_find(text);

    if (state < 0 || state == READING_OK || state == READING_NOT_READ)
        return false;
    *(enum reading_state *)out_state = (enum reading_state)state;
    return true;
}

static void write_state(const void *state, char text[SHAPE_CODED_MAX])
{
    snprintf(text, SHAPE_CODED_MAX, "%s", reading_state_word(*(const enum reading_state *)state));
}

static const struct shape_coding date_coding = {.expected = "a date such as \"2026-11-21T16:20:00Z\"",
                                                .size = sizeof(struct wall_time),
                                                .read = read_date,
                                                .write = write_date};
static const struct shape_coding quantity_coding = {.expected = "a quantity that this version knows",
                                                    .size = sizeof(int),
                                                    .read = read_quantity,
                                                    .write = write_quantity};
static const struct shape_coding state_coding = {.expected = "a state of a reading without a value",
                                                 .size = sizeof(enum reading_state),
                                                 .read = read_state,
                                                 .write = write_state};

/* ---- the first line ---- */

static const char *const schemas[] = {RECORDING_SCHEMA};
static const struct recording_header header_usual = {.unix_us = INT64_MIN};
static const struct shape_field header_rows[] = {
    {SHAPE_AT(recording_header, schema), SHAPE_IS_WORD(schemas, 1), .expected = "\"" RECORDING_SCHEMA "\""},
    {SHAPE_AT(recording_header, flyball), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true},
    {SHAPE_AT(recording_header, date), .kind = SHAPE_CODED, .coding = &date_coding},
    {SHAPE_AT(recording_header, unix_us), .kind = SHAPE_I64, .least = (uint64_t)INT64_MIN, .most = INT64_MAX,
     .need = SHAPE_OPTIONAL, .loose = true},
    {SHAPE_AT(recording_header, interval_s), SHAPE_IS_NUMBER(SHAPE_FROM_0), .highest = DAY_S,
     .expected = "seconds, up to a day"},
    {SHAPE_AT(recording_header, devices), SHAPE_IS_SIZE(DEVICES_MAX),
     .expected = "a number of devices up to 128"},
};
const struct shape recording_header_shape = {SHAPE_OF(recording_header, header_rows),
                                             .defaults = &header_usual};

/* ---- a line of a device ---- */

#define IS_CHARS(type, member) .kind = SHAPE_CHARS, .longest = sizeof((struct type *)NULL)->member - 1
#define FACT_TEXT(type, name, member)                                                               \
    {                                                                                               \
        SHAPE_AT_AS(name, type, member), IS_CHARS(type, member),                                    \
            .need = SHAPE_OPTIONAL, .null = SHAPE_AS_DEFAULT, .free_text = true, .any_bytes = true, \
            .expected = "a short text or null"                                                      \
    }
#define FACT_FLAG(type, name, member)                                          \
    {                                                                          \
        SHAPE_AT_AS(name, type, member), SHAPE_IS_BOOL, .need = SHAPE_OPTIONAL \
    }
#define FACT_POSITIVE(type, name, member, maximum)                                  \
    {                                                                               \
        SHAPE_AT_AS(name, type, member), SHAPE_IS_NUMBER(SHAPE_ABOVE_0),            \
            .highest = (maximum), .need = SHAPE_OPTIONAL, .null = SHAPE_AS_DEFAULT, \
            .expected = "a number above 0 within its range, or null"                \
    }

static const struct recording_sensor sensor_usual = {.source = ""};
static const struct shape_field sensor_rows[] = {
    FACT_POSITIVE(recording_sensor, "counter_period_s", facts.counter_period_s, HOUR_S),
    FACT_POSITIVE(recording_sensor, "power_period_s", facts.power_period_s, HOUR_S),
    FACT_POSITIVE(recording_sensor, "power_window_s", facts.power_window_s, HOUR_S),
    FACT_FLAG(recording_sensor, "counter_from_power", facts.counter_from_power),
    FACT_POSITIVE(recording_sensor, "gain_error", facts.gain_error, 1),
    FACT_TEXT(recording_sensor, "source", source),
};
static const struct shape sensor_shape = {SHAPE_OF(recording_sensor, sensor_rows), .defaults = &sensor_usual};

static const struct recording_device_line device_usual = {.info = {.minor = -1}};
static const struct shape_field device_rows[] = {
    {SHAPE_AT(recording_device_line, device), SHAPE_IS_SIZE(INT64_MAX),
     .expected = "the next device, counted from 0"},
    {SHAPE_AT_AS("kind", recording_device_line, info.kind), .kind = SHAPE_CODED,
     .coding = &device_kind_coding, .expected = "\"GPU\", \"CPU\" or \"DRAM\""},
    {SHAPE_AT(recording_device_line, backend), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL,
     .loose = true},
    FACT_TEXT(recording_device_line, "name", info.name),
    FACT_TEXT(recording_device_line, "uuid", info.uuid),
    FACT_TEXT(recording_device_line, "pci", info.pci),
    FACT_TEXT(recording_device_line, "driver", info.driver),
    FACT_TEXT(recording_device_line, "note", info.note),
    FACT_FLAG(recording_device_line, "emulated", info.emulated),
    FACT_FLAG(recording_device_line, "estimated", info.estimated),
    FACT_FLAG(recording_device_line, "module_power", info.module_power),
    FACT_FLAG(recording_device_line, "mig", info.mig),
    {SHAPE_AT_AS("minor", recording_device_line, info.minor), .kind = SHAPE_I32, .most = INT32_MAX,
     .need = SHAPE_OPTIONAL, .null = SHAPE_AS_DEFAULT, .expected = "the number of a device file or null"},
    {SHAPE_AT_AS("energy_modulus_uj", recording_device_line, info.energy_modulus_uj),
     SHAPE_IS_U64(1, INT64_MAX), .need = SHAPE_OPTIONAL, .null = SHAPE_AS_DEFAULT,
     .expected = "microjoules above 0, or null"},
    {SHAPE_AT(recording_device_line, sensor), SHAPE_IS_STRUCT(&sensor_shape),
     .expected = "an object of sensor facts"},
};
const struct shape recording_device_shape = {SHAPE_OF(recording_device_line, device_rows),
                                             .defaults = &device_usual};

/* ---- a reading ---- */

static const struct shape_field value_rows[] = {
    {SHAPE_AT(reading, state), .kind = SHAPE_CODED, .coding = &state_coding},
    {SHAPE_AT(reading, code), .kind = SHAPE_I32, .least = (uint64_t)INT32_MIN, .most = INT32_MAX},
};
static const struct shape_field value_alone = {SHAPE_AT(reading, value), .kind = SHAPE_I64,
                                               .least = (uint64_t)INT64_MIN, .most = INT64_MAX};
static const struct reading value_usual = {.state = READING_OK};
static const struct shape value_shape = {SHAPE_OF(reading, value_rows), .defaults = &value_usual,
                                         .as_list = true, .alone = &value_alone};

static const struct shape_field said_rows[] = {
    {SHAPE_AT(recording_said, quantity), .kind = SHAPE_CODED, .coding = &quantity_coding},
    {SHAPE_AT(recording_said, reading), SHAPE_IS_STRUCT(&value_shape),
     .expected = "a whole number, or a state and a code"},
};
static const struct shape said_shape = {SHAPE_OF(recording_said, said_rows)};

static const struct recording_line line_usual = {.device = -1};
static const struct shape_field line_rows[] = {
    {SHAPE_AT_AS("t", recording_line, t_ns), SHAPE_IS_TIME, .expected = "nanoseconds since the start"},
    {SHAPE_AT_AS("d", recording_line, device), .kind = SHAPE_I64, .most = DEVICES_MAX - 1,
     .need = SHAPE_OPTIONAL, .expected = "one of the devices above"},
    {SHAPE_AT(recording_line, end), SHAPE_IS_BOOL, SHAPE_IF(recording_line, has_end)},
    {.name = "",
     .at = offsetof(struct recording_line, said),
     .kind = SHAPE_REST,
     .shape = &said_shape,
     .longest = QUANTITY_COUNT,
     .beside = offsetof(struct recording_line, count)},
};
const struct shape recording_line_shape = {SHAPE_OF(recording_line, line_rows), .defaults = &line_usual};

static const struct shape_field end_rows[] = {
    {SHAPE_AT_AS("t", recording_line, t_ns), SHAPE_IS_TIME},
    {SHAPE_AT(recording_line, end), SHAPE_IS_BOOL},
    {SHAPE_AT_AS("end", recording_line, has_end), SHAPE_IS_BOOL},
};
const struct shape recording_end_shape = {SHAPE_OF(recording_line, end_rows)};
