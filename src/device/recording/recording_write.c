/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes recordings. The lines of devices go through Jansson, which knows how to
 * quote any text; readings are numbers and known words, printed directly.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <flyball/version.h>

#include "base/error.h"
#include "base/number.h"
#include "device/recording/recording_private.h"

enum {
    LINES_MAX = (DEVICES_MAX + 2) * RECORDING_LINE_MAX,
    SECOND_NS = 1000000000,
    DATE_MAX = 32,
    US_NS = 1000
};

#define INFO(member) offsetof(struct device_info, member), sizeof(((struct device_info *)NULL)->member)
#define SENSOR(member) offsetof(struct sensor_facts, member), sizeof(((struct sensor_facts *)NULL)->member)

const struct recording_fact recording_device_facts[] = {
    {"name", FACT_TEXT, INFO(name), 0},
    {"uuid", FACT_TEXT, INFO(uuid), 0},
    {"pci", FACT_TEXT, INFO(pci), 0},
    {"driver", FACT_TEXT, INFO(driver), 0},
    {"note", FACT_TEXT, INFO(note), 0},
    {"emulated", FACT_FLAG, INFO(emulated), 0},
    {"estimated", FACT_FLAG, INFO(estimated), 0},
    {"module_power", FACT_FLAG, INFO(module_power), 0},
    {"mig", FACT_FLAG, INFO(mig), 0},
    {NULL, FACT_TEXT, 0, 0, 0},
};

const struct recording_fact recording_sensor_facts[] = {
    {"counter_period_s", FACT_POSITIVE, SENSOR(counter_period_s), 3600},
    {"power_period_s", FACT_POSITIVE, SENSOR(power_period_s), 3600},
    {"power_window_s", FACT_POSITIVE, SENSOR(power_window_s), 3600},
    {"counter_from_power", FACT_FLAG, SENSOR(counter_from_power), 0},
    {"gain_error", FACT_POSITIVE, SENSOR(gain_error), 1},
    {NULL, FACT_TEXT, 0, 0, 0},
};

/* Text that a driver gave, of which nothing says that it is UTF-8; NULL without memory. */
static json_t *quoted(const char *text)
{
    json_t *value = json_string(text);
    char *ascii;

    if (value != NULL || (ascii = strdup(text)) == NULL)
        return value;
    for (char *at = ascii; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    }
    value = json_string(ascii);
    free(ascii);
    return value;
}

static json_t *fact_value(const struct recording_fact *fact, const void *facts)
{
    const char *at = (const char *)facts + fact->offset;
    double number;

    if (fact->kind == FACT_FLAG)
        return json_boolean(*(const bool *)(const void *)at);
    if (fact->kind == FACT_TEXT)
        return at[0] != '\0' ? quoted(at) : json_null();
    memcpy(&number, at, sizeof number);
    return number > 0.0 ? json_real(number) : json_null();
}

/* Adds the facts to `object`; whether there was memory. */
static bool add_facts(json_t *object, const struct recording_fact *table, const void *facts)
{
    bool added = object != NULL;

    for (const struct recording_fact *fact = table; added && fact->key != NULL; fact++)
        added = json_object_set_new(object, fact->key, fact_value(fact, facts)) == 0;
    return added;
}

static json_t *sensor_object(const struct sensor_facts *sensor)
{
    json_t *object = json_object();
    char source[RECORDING_SOURCE_MAX];

    snprintf(source, sizeof source, "%s", sensor->source != NULL ? sensor->source : "");
    if (!add_facts(object, recording_sensor_facts, sensor) ||
        json_object_set_new(object, "source", source[0] != '\0' ? quoted(source) : json_null()) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *device_object(size_t index, const struct device *device)
{
    const struct device_info *info = &device->info;
    json_t *object = json_pack("{sI ss ss}", "device", (json_int_t)index, "kind",
                               device_kind_name(info->kind), "backend", device->backend->name);
    json_t *minor = info->minor >= 0 ? json_integer(info->minor) : json_null();
    json_t *modulus =
        info->energy_modulus_uj > 0 ? json_integer((json_int_t)info->energy_modulus_uj) : json_null();
    bool added = add_facts(object, recording_device_facts, info);

    added = json_object_set_new(object, "minor", minor) == 0 && added;
    added = json_object_set_new(object, "energy_modulus_uj", modulus) == 0 && added;
    if (!added || json_object_set_new(object, "sensor", sensor_object(&info->sensor)) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static int add_device(struct buffer *lines, size_t index, const struct device *device,
                      struct fly_error *out_error)
{
    json_t *object = device_object(index, device);
    char *line = object != NULL ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

    if (line != NULL) {
        buffer_puts(lines, line);
        buffer_puts(lines, "\n");
    }
    json_decref(object);
    free(line);
    return line != NULL ? 0 : error_no_memory(out_error);
}

static void add_header(struct buffer *lines, struct wall_time date, double interval_s, size_t devices)
{
    time_t seconds = (time_t)(date.ns / SECOND_NS);
    struct tm utc;
    char text[DATE_MAX] = "", interval[NUMBER_TEXT_MAX];

    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    buffer_printf(lines,
                  "{\"schema\":\"" RECORDING_SCHEMA
                  "\",\"flyball\":\"%s\",\"date\":\"%s\",\"unix_us\":%" PRId64 ",\"interval_s\":%s,"
                  "\"devices\":%zu}\n",
                  fly_version(), text, date.ns / US_NS, number_format(interval_s, interval), devices);
}

int recording_writer_init(struct recording_writer *writer, const struct device_list *devices,
                          const struct clock *clock, double interval_s, struct fly_error *out_error)
{
    int code = 0;

    memset(writer->last, 0, sizeof writer->last);
    buffer_init(&writer->lines, LINES_MAX);
    add_header(&writer->lines, clock->date(clock->state), interval_s, devices->count);
    for (size_t i = 0; i < devices->count && code == 0; i++)
        code = add_device(&writer->lines, i, &devices->devices[i], out_error);
    if (code == 0 && writer->lines.error < 0)
        code = error_no_memory(out_error);
    if (code < 0)
        buffer_deinit(&writer->lines);
    writer->start = clock->now(clock->state);
    return code;
}

void recording_writer_deinit(struct recording_writer *writer)
{
    buffer_deinit(&writer->lines);
}

static bool same(const struct reading *one, const struct reading *other)
{
    if (one->state != other->state)
        return false;
    return one->state == READING_OK ? one->value == other->value : one->code == other->code;
}

void recording_writer_add(struct recording_writer *writer, size_t device, quantity_set wanted,
                          const struct device_reading *reading)
{
    int64_t t_ns = mono_middle(reading->before, reading->after).ns - writer->start.ns;

    buffer_printf(&writer->lines, "{\"t\":%" PRId64 ",\"d\":%zu", t_ns > 0 ? t_ns : 0, device);
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        const struct reading *value = &reading->values[i];

        if ((wanted & QUANTITY_BIT(i)) == 0 || value->state == READING_NOT_READ ||
            same(value, &writer->last[device][i]))
            continue;
        writer->last[device][i] = *value;
        if (value->state == READING_OK)
            buffer_printf(&writer->lines, ",\"%s\":%" PRId64, quantity_facts[i].key, value->value);
        else
            buffer_printf(&writer->lines, ",\"%s\":[\"%s\",%d]", quantity_facts[i].key,
                          reading_state_word(value->state), value->code);
    }
    buffer_puts(&writer->lines, "}\n");
}

void recording_writer_end(struct recording_writer *writer, struct mono_time now)
{
    buffer_printf(&writer->lines, "{\"t\":%" PRId64 ",\"end\":true}\n", now.ns - writer->start.ns);
}
