/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies use another server's dialect: numbers that JSON cannot write, 32.0 for a whole
 * number, and all complaints at once in the words of its framework. So a table of their own reads
 * them.
 */
#include "compat/zeus/serve/zeus_body.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "shapes/shape_rows.h"

enum { NAME_MAX_BYTES = 64 /* bytes of a field's name, with room to spare */ };

static const struct shape_field complaint_rows[] = {
    {SHAPE_AT(zeus_complaint, loc), .kind = SHAPE_TEXTS, .longest = NAME_MAX_BYTES,
     .beside = offsetof(struct zeus_complaint, depth)},
    {SHAPE_AT(zeus_complaint, msg), .kind = SHAPE_CHARS, .longest = ZEUS_COMPLAINT_MAX - 1},
    {SHAPE_AT(zeus_complaint, type), SHAPE_IS_TEXT(UINT32_MAX)},
};
static const struct shape shape_complaint = {SHAPE_OF(zeus_complaint, complaint_rows)};

static const struct shape_field complaints_rows[] = {
    {SHAPE_AT_AS("detail", zeus_complaints, list),
     SHAPE_IS_STRUCTS_HERE(&shape_complaint, zeus_complaints, list, count)},
};
const struct shape shape_zeus_complaints = {SHAPE_OF(zeus_complaints, complaints_rows)};

void zeus_complain(struct zeus_complaints *detail, const char *place, const char *name, const char *type,
                   const char *message)
{
    struct zeus_complaint *complaint = &detail->list[detail->count];

    if (detail->count == ZEUS_COMPLAINTS_MAX)
        return;
    detail->count++;
    *complaint = (struct zeus_complaint){
        .loc = complaint->place, .depth = name != NULL ? 2 : 1, .type = type, .place = {place, name}};
    snprintf(complaint->msg, sizeof complaint->msg, "%s", message);
}

/* ---- parsing ---- */

static const char *const not_finite[] = {"NaN", "Infinity", "-Infinity"};
enum { NOT_FINITE = 3 };

/* Returns the length of such a word at the beginning of the text, or 0. */
static size_t not_finite_at(const char *text, size_t length)
{
    for (size_t i = 0; i < NOT_FINITE; i++) {
        size_t word = strlen(not_finite[i]);

        if (word <= length && memcmp(text, not_finite[i], word) == 0)
            return word;
    }
    return 0;
}

/* Puts quotes around numbers of the clients' language that are not JSON. */
static void quote_not_finite(const char *body, size_t length, struct buffer *out)
{
    bool inside = false; /* within a text */
    size_t from = 0, at = 0, word;

    while (at < length) {
        if (inside && body[at] == '\\' && at + 1 < length) {
            at += 2;
            continue;
        }
        inside ^= body[at] == '"';
        word = inside ? 0 : not_finite_at(body + at, length - at);
        if (word > 0) {
            buffer_append(out, body + from, at - from);
            buffer_puts(out, "\"");
            buffer_append(out, body + at, word);
            buffer_puts(out, "\"");
            from = at + word;
        }
        at += word > 0 ? word : 1;
    }
    buffer_append(out, body + from, length - from);
}

static const char *parse_trouble(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_stack_overflow:
        return "it is nested too deep";
    case json_error_numeric_overflow:
        return "a number is too large";
    case json_error_invalid_utf8:
        return "it is no UTF-8";
    case json_error_null_character:
        return "a text holds a zero byte";
    case json_error_out_of_memory:
        return "it is too large";
    default:
        return "it is no JSON";
    }
}

json_t *zeus_parse(const char *body, size_t length, struct zeus_complaints *detail)
{
    char message[ZEUS_COMPLAINT_MAX];
    struct buffer quoted;
    json_error_t error;
    json_t *json;

    if (length == 0) {
        zeus_complain(detail, "body", NULL, "value_error.missing", "the body is missing");
        return NULL;
    }
    buffer_init(&quoted, 2 * length + 16);
    quote_not_finite(body, length, &quoted);
    json = quoted.error < 0 ? NULL : json_loadb(quoted.data, quoted.length, JSON_DECODE_ANY, &error);
    if (quoted.error < 0) {
        zeus_complain(detail, "body", NULL, "value_error.jsondecode", "it is too large");
    } else if (json == NULL) {
        snprintf(message, sizeof message, "the body cannot be read: %s (line %d, column %d)",
                 parse_trouble(&error), error.line, error.column);
        zeus_complain(detail, "body", NULL, "value_error.jsondecode", message);
    } else if (!json_is_object(json)) {
        zeus_complain(detail, "body", NULL, "type_error.dict", "expected an object");
        json_decref(json);
        json = NULL;
    }
    buffer_deinit(&quoted);
    return json;
}

/* ---- fields ---- */

static const struct {
    const char *type, *expected;
} kinds[] = {
    [ZEUS_TEXT] = {"type_error.str", "a text"},
    [ZEUS_WHOLE] = {"type_error.integer", "a whole number"},
    [ZEUS_WHOLES] = {"type_error.list", "a list of whole numbers"},
    [ZEUS_NUMBER] = {"type_error.float", "a number"},
    [ZEUS_METRIC] = {"type_error.float", "a number"},
    [ZEUS_FLAG] = {"type_error.bool", "true or false"},
};

static void complain_kind(struct zeus_complaints *detail, const struct zeus_field *field, const char *name)
{
    char message[ZEUS_COMPLAINT_MAX];

    snprintf(message, sizeof message, "expected %s%s", kinds[field->kind].expected,
             field->nullable ? ", or null" : "");
    zeus_complain(detail, "body", name, kinds[field->kind].type, message);
}

static bool too_small(const struct zeus_field *field, double value)
{
    return field->above ? !(value > field->least) : !(value >= field->least);
}

/* Returns whether the value keeps the range; otherwise adds a complaint. */
static bool in_range(struct zeus_complaints *detail, const struct zeus_field *field, double value)
{
    bool small = too_small(field, value), text = field->kind == ZEUS_TEXT;
    char message[ZEUS_COMPLAINT_MAX], most[48] = "";

    if (!small && value <= field->most)
        return true;
    if (isfinite(field->most))
        snprintf(most, sizeof most, ", at most %s", number_text(field->most).text);
    snprintf(message, sizeof message, "expected %s %s %s%s%s", kinds[field->kind].expected,
             field->above ? "above" : "from", number_text(field->least).text, most, text ? " bytes" : "");
    zeus_complain(detail, "body", field->name,
                  text           ? "value_error.any_str.length"
                  : !small       ? "value_error.number.not_le"
                  : field->above ? "value_error.number.not_gt"
                                 : "value_error.number.not_ge",
                  message);
    return false;
}

/* Returns whether the value is a whole number, also if it is written as 32.0. */
static bool whole_value(const json_t *value, int64_t *out_whole)
{
    double number = json_number_value(value);

    if (!json_is_number(value) || (json_is_real(value) && (number != floor(number) || fabs(number) > 0x1p53)))
        return false;
    *out_whole = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
    return true;
}

/* Also accepts the words that JSON lacks. */
static bool number_value(const json_t *value, double *out_number)
{
    static const double numbers[NOT_FINITE] = {NAN, INFINITY, -INFINITY};
    const char *word = json_string_value(value);

    for (size_t i = 0; word != NULL && i < NOT_FINITE; i++) {
        if (strcmp(word, not_finite[i]) == 0) {
            *out_number = numbers[i];
            return true;
        }
    }
    *out_number = json_number_value(value);
    return json_is_number(value);
}

static void read_text(const json_t *value, const struct zeus_field *field, const char **out,
                      struct zeus_complaints *detail)
{
    const char *text = json_string_value(value);

    if (text == NULL)
        complain_kind(detail, field, field->name);
    else if (in_range(detail, field, (double)strlen(text)))
        *out = text;
}

static void read_whole(const json_t *value, const struct zeus_field *field, int64_t *out,
                       struct zeus_complaints *detail)
{
    int64_t whole;

    if (!whole_value(value, &whole))
        complain_kind(detail, field, field->name);
    else if (in_range(detail, field, (double)whole))
        *out = whole;
}

static void read_number(const json_t *value, const struct zeus_field *field, double *out,
                        struct zeus_complaints *detail)
{
    double number;

    if (!number_value(value, &number))
        complain_kind(detail, field, field->name);
    else if (field->kind == ZEUS_METRIC)
        *out = isfinite(number) ? number : NAN;
    else if (in_range(detail, field, number))
        *out = number;
}

static void read_wholes(const json_t *value, const struct zeus_field *field, struct zeus_wholes *out,
                        struct zeus_complaints *detail)
{
    size_t count = json_array_size(value);
    char message[ZEUS_COMPLAINT_MAX];

    if (!json_is_array(value)) {
        complain_kind(detail, field, field->name);
        return;
    }
    if (count == 0 || count > JOB_BATCHES_MAX) {
        snprintf(message, sizeof message, "expected 1 to %d numbers, not %zu", JOB_BATCHES_MAX, count);
        zeus_complain(detail, "body", field->name, "value_error", message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t whole;

        if (!whole_value(json_array_get(value, i), &whole)) {
            complain_kind(detail, field, field->name);
            return;
        }
        if (!in_range(detail, field, (double)whole))
            return;
        out->values[i] = (uint32_t)whole;
    }
    out->count = count;
}

static void read_null(const struct zeus_field *field, void *out, struct zeus_complaints *detail)
{
    if (!field->nullable)
        zeus_complain(detail, "body", field->name, "type_error.none.not_allowed", "null is not allowed");
    else if (field->kind == ZEUS_TEXT)
        *(const char **)out = NULL;
    else if (field->kind == ZEUS_WHOLE)
        *(int64_t *)out = ZEUS_NULL;
    else
        *(double *)out = INFINITY;
}

static void read_field(const json_t *value, const struct zeus_field *field, void *out,
                       struct zeus_complaints *detail)
{
    switch (field->kind) {
    case ZEUS_TEXT:
        read_text(value, field, out, detail);
        break;
    case ZEUS_WHOLE:
        read_whole(value, field, out, detail);
        break;
    case ZEUS_WHOLES:
        read_wholes(value, field, out, detail);
        break;
    case ZEUS_NUMBER:
    case ZEUS_METRIC:
        read_number(value, field, out, detail);
        break;
    case ZEUS_FLAG:
        if (json_is_boolean(value))
            *(bool *)out = json_is_true(value);
        else
            complain_kind(detail, field, field->name);
        break;
    }
}

void zeus_read(const json_t *object, const struct zeus_field *fields, size_t count, void *out,
               struct zeus_complaints *detail)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, fields[i].name);
        void *at = (char *)out + fields[i].offset;

        if (value == NULL && fields[i].needed)
            zeus_complain(detail, "body", fields[i].name, "value_error.missing", "it is missing");
        else if (json_is_null(value))
            read_null(&fields[i], at, detail);
        else if (value != NULL)
            read_field(value, &fields[i], at, detail);
    }
}
