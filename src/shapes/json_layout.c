/* SPDX-License-Identifier: Apache-2.0 */
/* Lays documents out: with one value per line a table would take a page. */
#include "shapes/json_layout.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "shapes/json_words.h"

enum { LINE_WIDTH = 120, INDENT = 2 };

/* From here on doubles have no digits after the point. */
static const double whole_max = 1e15;

/* Writes a scalar; a whole number without ".0". */
static void put_scalar(json_t *value, struct buffer *out)
{
    double number = json_number_value(value);

    if (json_is_real(value) && number == floor(number) && fabs(number) < whole_max)
        buffer_printf(out, "%.0f", number);
    else
        json_words_put(out, value);
}

static bool is_scalar(json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

/* Whether all members are plain values. */
static bool is_leaf(json_t *object)
{
    const char *key;
    json_t *value;
    bool leaf = json_is_object(object);

    json_object_foreach(object, key, value)
    {
        leaf = leaf && is_scalar(value);
    }
    return leaf;
}

static void put_indent(size_t depth, struct buffer *out)
{
    buffer_printf(out, "%*s", (int)(depth * INDENT), "");
}

/* Writes the plain values of a list, as many on a line as fit. */
static void put_numbers(json_t *list, size_t depth, struct buffer *out)
{
    size_t start = out->length;

    for (size_t i = 0; i < json_array_size(list); i++) {
        buffer_puts(out, i == 0 ? "" : out->length - start > LINE_WIDTH - depth * INDENT ? ",\n" : ", ");
        if (out->length > 0 && out->data[out->length - 1] == '\n') {
            put_indent(depth, out);
            start = out->length;
        }
        put_scalar(json_array_get(list, i), out);
    }
}

/* ---- as a file ---- */

static void put_value(json_t *value, size_t depth, struct buffer *out);

static void put_members(json_t *object, size_t depth, bool one_line, struct buffer *out)
{
    const char *key, *separator = "";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        buffer_puts(out, separator);
        if (!one_line) {
            buffer_puts(out, "\n");
            put_indent(depth + 1, out);
        }
        buffer_printf(out, "\"%s\": ", key);
        put_value(value, depth + 1, out);
        separator = one_line ? ", " : ",";
    }
}

static void put_entries(json_t *list, size_t depth, struct buffer *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        buffer_puts(out, i > 0 ? ",\n" : "\n");
        put_indent(depth + 1, out);
        put_value(json_array_get(list, i), depth + 1, out);
    }
    buffer_puts(out, "\n");
    put_indent(depth, out);
}

static void put_list(json_t *list, size_t depth, struct buffer *out)
{
    buffer_puts(out, "[");
    if (json_array_size(list) > 0 && is_scalar(json_array_get(list, 0)))
        put_numbers(list, depth + 1, out);
    else if (json_array_size(list) > 0)
        put_entries(list, depth, out);
    buffer_puts(out, "]");
}

/* Writes a short object of plain values on one line, which keeps tables readable. */
static void put_object(json_t *object, size_t depth, struct buffer *out)
{
    size_t start = out->length;
    bool one_line = is_leaf(object);

    buffer_puts(out, "{");
    if (one_line) {
        put_members(object, depth, true, out);
        one_line = out->error == 0 && out->length - start < LINE_WIDTH;
    }
    if (!one_line && out->error == 0) {
        out->length = start;
        buffer_puts(out, "{");
        put_members(object, depth, false, out);
        buffer_puts(out, "\n");
        put_indent(depth, out);
    }
    buffer_puts(out, "}");
}

static void put_value(json_t *value, size_t depth, struct buffer *out)
{
    if (json_is_object(value))
        put_object(value, depth, out);
    else if (json_is_array(value))
        put_list(value, depth, out);
    else
        put_scalar(value, out);
}

void json_layout_file(json_t *document, struct buffer *out)
{
    put_value(document, 0, out);
    buffer_puts(out, "\n");
}

/* ---- for display ---- */

static void show_scalar(json_t *value, struct buffer *out)
{
    if (json_is_null(value))
        buffer_puts(out, "not known");
    else if (json_is_boolean(value))
        buffer_puts(out, json_is_true(value) ? "yes" : "no");
    else if (json_is_string(value))
        buffer_puts(out, json_string_value(value)[0] != '\0' ? json_string_value(value) : "none");
    else
        put_scalar(value, out);
}

/* Shows "clocks_mhz" as "clocks mhz". */
static void show_key(const char *key, struct buffer *out)
{
    for (; *key != '\0'; key++)
        buffer_append(out, *key == '_' ? " " : key, 1);
}

/* Shows a row as "quantity energy_uj, state ok, value 5". */
static void show_row(json_t *object, struct buffer *out)
{
    const char *key, *separator = "";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        buffer_puts(out, separator);
        show_key(key, out);
        buffer_puts(out, " ");
        show_scalar(value, out);
        separator = ", ";
    }
    buffer_puts(out, "\n");
}

static void show_members(json_t *object, size_t depth, struct buffer *out);

static void show_list(json_t *list, size_t depth, struct buffer *out)
{
    size_t count = json_array_size(list);

    if (count == 0 || is_scalar(json_array_get(list, 0))) {
        buffer_puts(out, count == 0 ? " none" : " ");
        put_numbers(list, depth + 1, out);
        buffer_puts(out, "\n");
        return;
    }
    buffer_puts(out, "\n");
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_array_get(list, i);

        put_indent(depth + 1, out);
        if (is_leaf(entry)) {
            show_row(entry, out);
        } else {
            buffer_printf(out, "%zu:\n", i);
            show_members(entry, depth + 2, out);
        }
    }
}

static void show_members(json_t *object, size_t depth, struct buffer *out)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        put_indent(depth, out);
        show_key(key, out);
        buffer_puts(out, ":");
        if (json_is_array(value)) {
            show_list(value, depth, out);
        } else if (json_is_object(value)) {
            buffer_puts(out, "\n");
            show_members(value, depth + 1, out);
        } else {
            buffer_puts(out, " ");
            show_scalar(value, out);
            buffer_puts(out, "\n");
        }
    }
}

void json_layout_text(json_t *document, struct buffer *out)
{
    show_members(document, 0, out);
}
