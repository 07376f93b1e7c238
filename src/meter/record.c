/* SPDX-License-Identifier: Apache-2.0 */
/* One table of figures serves both the CSV with all of them and the JSON lines. */
#include <flyball/record.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/text/csv_quote.h"
#include "meter/device_figures.h"

enum { RECORD_MAX = 1 << 22 };

static const char csv_schema[] = "flyball.window.csv/2";
static const char json_schema[] = "flyball.window/2";

static void put_number(double value, struct buffer *out)
{
    char text[NUMBER_TEXT_MAX];

    if (isfinite(value))
        buffer_puts(out, number_format(value, text));
}

/* Returns the length of the multi-byte UTF-8 character that begins here; 0 if there is none. */
static size_t character_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    uint32_t code = at[0] & (0x7Fu >> length);

    if (at[0] < 0xC2 || at[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3Fu);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) ||
        (length == 4 && (code < 0x10000 || code > 0x10FFFF)))
        return 0;
    return length;
}

/* Puts a JSON string; bytes that are not UTF-8 become '?'. */
static void put_string(const char *text, struct buffer *out)
{
    buffer_puts(out, "\"");
    while (*text != '\0') {
        unsigned char byte = (unsigned char)*text;
        size_t length = byte < 0x80 ? 1 : character_length(text);

        if (byte == '"' || byte == '\\')
            buffer_printf(out, "\\%c", byte);
        else if (byte < ' ')
            buffer_printf(out, "\\u%04x", byte);
        else if (length > 0)
            buffer_append(out, text, length);
        else
            buffer_puts(out, "?");
        text += length > 0 ? length : 1;
    }
    buffer_puts(out, "\"");
}

static bool is_gpu(const struct fly_meter *meter, size_t device)
{
    return strcmp(fly_meter_device_kind(meter, device), "GPU") == 0;
}

/* Returns how many devices the measurement has figures of. */
static size_t measured_count(const struct fly_measurement *measured)
{
    if (measured->devices == NULL)
        return 0;
    return measured->device_count < measured->device_capacity ? measured->device_count
                                                              : measured->device_capacity;
}

static void gpus_header(const struct fly_meter *meter, struct buffer *out)
{
    buffer_puts(out, "start_time,window_name,elapsed_time");
    for (size_t i = 0; i < fly_meter_device_count(meter); i++) {
        if (is_gpu(meter, i))
            buffer_printf(out, ",gpu%d_energy", fly_meter_device_index(meter, i));
    }
    buffer_puts(out, "\n");
}

static void gpus_window(const struct fly_meter *meter, const struct fly_measurement *measured,
                        struct buffer *out)
{
    put_number(measured->start_unix_s, out);
    buffer_puts(out, ",");
    csv_quote(out, measured->name);
    buffer_puts(out, ",");
    put_number(measured->time_s, out);
    for (size_t i = 0; i < fly_meter_device_count(meter); i++) {
        if (!is_gpu(meter, i))
            continue;
        buffer_puts(out, ",");
        if (i < measured_count(measured))
            put_number(measured->devices[i].energy_j, out);
    }
    buffer_puts(out, "\n");
}

static void csv_header(const struct fly_meter *meter, struct buffer *out)
{
    (void)meter;
    buffer_puts(out, "schema,start_unix_s,window_name,elapsed_s,kind,index,name,uuid,counted_by,source");
    for (size_t i = 0; i < DEVICE_FIGURES; i++)
        buffer_printf(out, ",%s", device_figures[i].name);
    buffer_puts(out, ",samples,note\n");
}

static void csv_window(const struct fly_meter *meter, const struct fly_measurement *measured,
                       struct buffer *out)
{
    for (size_t i = 0; i < measured_count(measured); i++) {
        const struct fly_device_energy *energy = &measured->devices[i];

        buffer_printf(out, "%s,", csv_schema);
        put_number(measured->start_unix_s, out);
        buffer_puts(out, ",");
        csv_quote(out, measured->name);
        buffer_puts(out, ",");
        put_number(measured->time_s, out);
        buffer_printf(out, ",%s,%d,", fly_meter_device_kind(meter, i), fly_meter_device_index(meter, i));
        csv_quote(out, fly_meter_device_name(meter, i));
        buffer_puts(out, ",");
        csv_quote(out, fly_meter_device_uuid(meter, i));
        buffer_puts(out, ",");
        csv_quote(out, fly_meter_device_counted_by(meter, i));
        buffer_printf(out, ",%s", fly_energy_source_name(energy->source));
        for (size_t j = 0; j < DEVICE_FIGURES; j++) {
            buffer_puts(out, ",");
            put_number(device_figure_of(energy, &device_figures[j]), out);
        }
        buffer_printf(out, ",%" PRIu64 ",", energy->samples);
        csv_quote(out, energy->note);
        buffer_puts(out, "\n");
    }
}

static void json_header(const struct fly_meter *meter, struct buffer *out)
{
    (void)meter;
    (void)out;
}

static void json_figure(const struct fly_device_energy *energy, const struct shape_field *figure,
                        struct buffer *out)
{
    double value = device_figure_of(energy, figure);

    buffer_printf(out, ",\"%s\":", figure->name);
    if (isfinite(value)) {
        put_number(value, out);
        return;
    }
    buffer_printf(out, "null,\"%s_unavailable\":", figure->name);
    put_string(figure->unavailable != NULL ? figure->unavailable
               : energy->note[0] != '\0'   ? energy->note
                                           : "the device does not say",
               out);
}

static void json_counted(const char *by, struct buffer *out)
{
    buffer_printf(out, ",\"counted\":%s", by[0] == '\0' ? "true" : "false");
    if (by[0] == '\0')
        return;
    buffer_puts(out, ",\"counted_by\":");
    put_string(by, out);
}

static void json_window(const struct fly_meter *meter, const struct fly_measurement *measured,
                        struct buffer *out)
{
    buffer_printf(out, "{\"schema\":\"%s\",\"start_unix_s\":", json_schema);
    put_number(measured->start_unix_s, out);
    buffer_puts(out, ",\"window_name\":");
    put_string(measured->name, out);
    buffer_puts(out, ",\"elapsed_s\":");
    put_number(measured->time_s, out);
    buffer_puts(out, ",\"devices\":[");
    for (size_t i = 0; i < measured_count(measured); i++) {
        const struct fly_device_energy *energy = &measured->devices[i];

        buffer_printf(out, "%s{\"kind\":\"%s\",\"index\":%d,\"name\":", i > 0 ? "," : "",
                      fly_meter_device_kind(meter, i), fly_meter_device_index(meter, i));
        put_string(fly_meter_device_name(meter, i), out);
        buffer_puts(out, ",\"uuid\":");
        put_string(fly_meter_device_uuid(meter, i), out);
        json_counted(fly_meter_device_counted_by(meter, i), out);
        buffer_printf(out, ",\"source\":\"%s\"", fly_energy_source_name(energy->source));
        for (size_t j = 0; j < DEVICE_FIGURES; j++)
            json_figure(energy, &device_figures[j], out);
        buffer_printf(out, ",\"samples\":%" PRIu64 ",\"note\":", energy->samples);
        put_string(energy->note, out);
        buffer_puts(out, "}");
    }
    buffer_puts(out, "]}\n");
}

struct form {
    void (*header)(const struct fly_meter *meter, struct buffer *out);
    void (*window)(const struct fly_meter *meter, const struct fly_measurement *measured, struct buffer *out);
};

static const struct form forms[] = {
    [FLY_RECORD_CSV_GPUS] = {gpus_header, gpus_window},
    [FLY_RECORD_CSV] = {csv_header, csv_window},
    [FLY_RECORD_JSON] = {json_header, json_window},
};

/* Returns NULL for a number that is not a form. */
static const struct form *form_of(enum fly_record_form form)
{
    size_t index = (size_t)form;

    return index < sizeof forms / sizeof forms[0] ? &forms[index] : NULL;
}

/* Copies the text to the caller; returns its length or the error. */
static int give(struct buffer *from, char *text, size_t capacity)
{
    size_t kept = from->length < capacity ? from->length : capacity - 1;
    int result = from->error < 0 ? FLY_ENOMEM : (int)from->length;

    if (result >= 0 && capacity > 0) {
        memcpy(text, from->data, kept);
        text[kept] = '\0';
    }
    buffer_deinit(from);
    return result;
}

int fly_record_header(const struct fly_meter *meter, enum fly_record_form form, char *text, size_t capacity)
{
    struct buffer out;

    if (form_of(form) == NULL)
        return FLY_EUSAGE;
    buffer_init(&out, RECORD_MAX);
    form_of(form)->header(meter, &out);
    return give(&out, text, capacity);
}

int fly_record_window(const struct fly_meter *meter, const struct fly_measurement *measured,
                      enum fly_record_form form, char *text, size_t capacity)
{
    struct buffer out;

    if (form_of(form) == NULL)
        return FLY_EUSAGE;
    buffer_init(&out, RECORD_MAX);
    form_of(form)->window(meter, measured, &out);
    return give(&out, text, capacity);
}
