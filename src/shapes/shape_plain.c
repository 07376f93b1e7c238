/* SPDX-License-Identifier: Apache-2.0 */
/* Members that are neither structs nor lists: how they are read, and their defaults. */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "shapes/shape_private.h"

static int refuse(const struct shape_reading *reading, const struct shape_field *field, bool entry)
{
    return shape_refuse(reading->path, field, entry, reading->out_error);
}

static bool whole_fits(const struct shape_field *field, json_t *json)
{
    json_int_t value = json_integer_value(json);

    if (field->kind == SHAPE_I32 || field->kind == SHAPE_I64)
        return json_is_integer(json) && value >= (int64_t)field->least && value <= (int64_t)field->most;
    return json_is_integer(json) && value >= 0 && (uint64_t)value >= field->least &&
           (uint64_t)value <= field->most;
}

static void put_whole(const struct shape_field *field, json_t *json, void *out)
{
    uint64_t value = (uint64_t)json_integer_value(json);
    uint32_t narrow = (uint32_t)value;
    int64_t date = (int64_t)value;
    size_t size = (size_t)value;

    if (field->kind == SHAPE_U64)
        memcpy(out, &value, sizeof value);
    else if (field->kind == SHAPE_I64)
        memcpy(out, &date, sizeof date);
    else if (field->kind == SHAPE_SIZE)
        memcpy(out, &size, sizeof size);
    else
        memcpy(out, &narrow, sizeof narrow);
}

static int read_whole(const struct shape_reading *reading, const struct shape_field *field, bool entry,
                      json_t *json, char *out)
{
    if (json_is_null(json) && field->null == SHAPE_ZERO && !entry)
        return 0;
    if (!whole_fits(field, json))
        return refuse(reading, field, entry);
    put_whole(field, json, out);
    return 0;
}

static int read_number(const struct shape_reading *reading, const struct shape_field *field, bool entry,
                       json_t *json, char *out)
{
    bool nothing = json_is_null(json) && !entry;
    double value = nothing ? shape_of_null(field->null) : json_number_value(json);
    bool fits =
        nothing ? field->null != SHAPE_NOT_NULL : json_is_number(json) && shape_number_fits(field, value);

    if (!fits)
        return refuse(reading, field, entry);
    memcpy(out, &value, sizeof value);
    return 0;
}

static int read_bool(const struct shape_reading *reading, const struct shape_field *field, json_t *json,
                     char *out)
{
    bool flag = json_is_true(json);

    if (!json_is_boolean(json))
        return refuse(reading, field, false);
    memcpy(out, &flag, sizeof flag);
    return 0;
}

static int read_word(const struct shape_reading *reading, const struct shape_field *field, json_t *json,
                     char *out)
{
    const char *word = json_string_value(json);
    int index = word != NULL ? word_index(word, field->words, field->word_count) : -1;

    if (index < 0)
        return refuse(reading, field, false);
    memcpy(out, &index, sizeof index);
    return 0;
}

static int read_text(const struct shape_reading *reading, const struct shape_field *field, bool entry,
                     json_t *json, char *out)
{
    const char *text = json_string_value(json), *copy = text;
    int code;

    if (json_is_null(json) && field->null == SHAPE_OR_NULL && !entry)
        return 0;
    if (text == NULL)
        return refuse(reading, field, entry);
    code = shape_check_text(reading->path, field, text, json_string_length(json), reading->out_error);
    if (code < 0)
        return code;
    if (field->kind == SHAPE_CHARS) {
        memcpy(out, text, strlen(text) + 1);
        return 0;
    }
    if (reading->manners != SHAPE_BORROWING)
        copy = arena_strdup(reading->arena, text);
    if (copy == NULL)
        return error_no_memory(reading->out_error);
    memcpy(out, &copy, sizeof copy);
    return 0;
}

static int read_coded(const struct shape_reading *reading, const struct shape_field *field, json_t *json,
                      char *out)
{
    const char *text = json_string_value(json);

    if (text == NULL || strlen(text) != json_string_length(json) || !field->coding->read(text, out))
        return refuse(reading, field, false);
    return 0;
}

static int read_any_object(const struct shape_reading *reading, const struct shape_field *field, json_t *json,
                           char *out)
{
    char *text, *copy;

    if (!json_is_object(json))
        return refuse(reading, field, false);
    text = json_dumps(json, JSON_COMPACT);
    copy = text != NULL ? arena_strdup(reading->arena, text) : NULL;
    free(text);
    if (copy == NULL)
        return error_no_memory(reading->out_error);
    memcpy(out, &copy, sizeof copy);
    return strlen(copy) <= field->longest
               ? 0
               : shape_too_long(reading->path, field->longest, "bytes", reading->out_error);
}

static int read_json(const struct shape_reading *reading, const struct shape_field *field, json_t *json,
                     char *out)
{
    if (field->kind == SHAPE_JSON_OBJECT && !json_is_object(json))
        return refuse(reading, field, false);
    memcpy(out, &json, sizeof json);
    return 0;
}

int shape_read_plain(const struct shape_reading *reading, const struct shape_field *field, bool entry,
                     json_t *json, char *out)
{
    switch (field->kind) {
    case SHAPE_NUMBER:
    case SHAPE_NUMBERS:
        return read_number(reading, field, entry, json, out);
    case SHAPE_BOOL:
        return read_bool(reading, field, json, out);
    case SHAPE_WORD:
        return read_word(reading, field, json, out);
    case SHAPE_TEXT:
    case SHAPE_TEXTS:
    case SHAPE_CHARS:
        return read_text(reading, field, entry, json, out);
    case SHAPE_OBJECT:
        return read_any_object(reading, field, json, out);
    case SHAPE_JSON_OBJECT:
    case SHAPE_JSON:
        return read_json(reading, field, json, out);
    case SHAPE_CODED:
        return read_coded(reading, field, json, out);
    default:
        return read_whole(reading, field, entry, json, out);
    }
}

size_t shape_field_size(const struct shape_field *field)
{
    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_I32:
    case SHAPE_WORD:
        return sizeof(uint32_t);
    case SHAPE_U64:
    case SHAPE_I64:
        return sizeof(uint64_t);
    case SHAPE_SIZE:
        return sizeof(size_t);
    case SHAPE_NUMBER:
        return sizeof(double);
    case SHAPE_BOOL:
        return sizeof(bool);
    case SHAPE_CHARS:
        return field->longest + 1;
    case SHAPE_STRUCT:
        return field->shape->size;
    case SHAPE_STRUCTS_HERE:
    case SHAPE_REST:
        return field->shape->size * field->longest;
    case SHAPE_CODED:
        return field->coding->size;
    case SHAPE_TEXT:
    case SHAPE_OBJECT:
    case SHAPE_JSON:
    case SHAPE_JSON_OBJECT:
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_TEXTS:
    case SHAPE_STRUCTS:
    case SHAPE_MAP:
    case SHAPE_MERGED:
    case SHAPE_POINTED:
        break;
    case SHAPE_MADE:
        return 0;
    }
    return sizeof(void *);
}

void shape_put_default(const struct shape *shape, const struct shape_field *field, char *out_struct)
{
    static const char *const nothing = "";
    const void *defaults = shape != NULL ? shape->defaults : NULL;
    char *out = out_struct + field->at;
    double value = shape_of_null(field->null);
    const char *text = NULL;

    for (size_t i = 0; field->kind == SHAPE_STRUCT && defaults == NULL && i < field->shape->count; i++)
        shape_put_default(field->shape, &field->shape->fields[i], out);
    if (defaults != NULL)
        memcpy(out, (const char *)defaults + field->at, shape_field_size(field));
    else if (field->kind == SHAPE_NUMBER)
        memcpy(out, &value, sizeof value);
    if (field->kind == SHAPE_TEXT)
        memcpy(&text, out, sizeof text);
    if (field->kind == SHAPE_TEXT && text == NULL && field->null != SHAPE_OR_NULL)
        memcpy(out, &nothing, sizeof nothing);
}
