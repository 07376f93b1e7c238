/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes recordings: the header and the devices by their shapes; readings, which are numbers and
 * known words, directly.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <flyball/version.h>

#include "base/error.h"
#include "device/recording/recording_private.h"

enum { LINES_MAX = (DEVICES_MAX + 2) * RECORDING_LINE_MAX, US_NS = 1000 };

/* A fact that is not above 0 is unknown. */
static double above_0(double number)
{
    return number > 0.0 ? number : 0.0;
}

static struct recording_sensor sensor_of(const struct sensor_facts *facts)
{
    struct recording_sensor sensor = {.facts = *facts};

    sensor.facts.counter_period_s = above_0(facts->counter_period_s);
    sensor.facts.power_period_s = above_0(facts->power_period_s);
    sensor.facts.power_window_s = above_0(facts->power_window_s);
    sensor.facts.gain_error = above_0(facts->gain_error);
    snprintf(sensor.source, sizeof sensor.source, "%s", facts->source != NULL ? facts->source : "");
    return sensor;
}

static int add_device(struct buffer *lines, size_t index, const struct device *device,
                      struct fly_error *out_error)
{
    struct recording_device_line line = {.device = index,
                                         .backend = device->backend->name,
                                         .info = device->info,
                                         .sensor = sensor_of(&device->info.sensor)};
    int code;

    if (line.info.minor < 0)
        line.info.minor = -1;
    code = shape_put(&recording_device_shape, &line, SHAPE_NINE_DIGITS, lines, out_error);
    buffer_puts(lines, "\n");
    return code;
}

static int add_header(struct buffer *lines, struct wall_time date, double interval_s, size_t devices,
                      struct fly_error *out_error)
{
    const struct recording_header header = {.flyball = fly_version(),
                                            .date = date,
                                            .unix_us = date.ns / US_NS,
                                            .interval_s = interval_s,
                                            .devices = devices};
    int code = shape_put(&recording_header_shape, &header, SHAPE_SPARE, lines, out_error);

    buffer_puts(lines, "\n");
    return code;
}

int recording_writer_init(struct recording_writer *writer, const struct device_list *devices,
                          const struct clock *clock, double interval_s, struct fly_error *out_error)
{
    int code;

    memset(writer->last, 0, sizeof writer->last);
    buffer_init(&writer->lines, LINES_MAX);
    code = add_header(&writer->lines, clock->date(clock->state), interval_s, devices->count, out_error);
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
