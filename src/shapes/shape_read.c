/* SPDX-License-Identifier: Apache-2.0 */
/* Structs from JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "shapes/shape.h"

enum { KNOWN_MAX = 64, DEPTH_MAX = 8 };

struct reading {
    enum shape_manners manners;
    struct arena *arena;
    struct shape_path path;
    struct fly_error *out_error;
};

static int read_object(struct reading *reading, const struct shape *shape, json_t *json, char *out);

int shape_parse(const char *text, size_t length, json_t **out_json, struct fly_error *out_error)
{
    json_error_t why;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);

    if (json == NULL && json_error_code(&why) == json_error_out_of_memory)
        return error_no_memory(out_error);
    if (json == NULL)
        return error_set(out_error, FLY_EUSAGE, "line %d, column %d is no JSON: %.120s", why.line, why.column,
                         why.text);
    *out_json = json;
    return 0;
}

/* ---- plain values ---- */

static bool whole_fits(const struct shape_field *field, json_t *json)
{
    json_int_t value = json_integer_value(json);

    return json_is_integer(json) && value >= 0 && (uint64_t)value >= field->least &&
           (uint64_t)value <= field->most;
}

static void put_whole(const struct shape_field *field, json_t *json, void *out)
{
    uint64_t value = (uint64_t)json_integer_value(json);
    uint32_t narrow = (uint32_t)value;
    int64_t date = (int64_t)value;

    if (field->kind == SHAPE_U64)
        memcpy(out, &value, sizeof value);
    else if (field->kind == SHAPE_I64)
        memcpy(out, &date, sizeof date);
    else
        memcpy(out, &narrow, sizeof narrow);
}

static int read_number(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    double value = json_is_null(json) ? shape_of_null(field->null) : json_number_value(json);
    bool fits = json_is_null(json) ? field->null != SHAPE_NOT_NULL
                                   : json_is_number(json) && shape_in_range(field->range, value);

    if (!fits)
        return shape_refuse(&reading->path, field, false, reading->out_error);
    memcpy(out, &value, sizeof value);
    return 0;
}

static int read_word(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    const char *word = json_string_value(json);
    int index = word != NULL ? word_index(word, field->words, field->word_count) : -1;

    if (index < 0)
        return shape_refuse(&reading->path, field, false, reading->out_error);
    memcpy(out, &index, sizeof index);
    return 0;
}

static int read_text(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    const char *text = json_string_value(json);
    char *copy;
    int code;

    if (text == NULL)
        return shape_refuse(&reading->path, field, false, reading->out_error);
    code = shape_check_text(&reading->path, field, text, json_string_length(json), reading->out_error);
    if (code < 0)
        return code;
    if (field->kind == SHAPE_CHARS) {
        memcpy(out, text, strlen(text) + 1);
        return 0;
    }
    copy = arena_strdup(reading->arena, text);
    if (copy == NULL)
        return error_no_memory(reading->out_error);
    memcpy(out, &copy, sizeof copy);
    return 0;
}

static int read_any_object(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    char *text, *copy;

    if (!json_is_object(json))
        return shape_refuse(&reading->path, field, false, reading->out_error);
    text = json_dumps(json, JSON_COMPACT);
    copy = text != NULL ? arena_strdup(reading->arena, text) : NULL;
    free(text);
    if (copy == NULL)
        return error_no_memory(reading->out_error);
    memcpy(out, &copy, sizeof copy);
    return strlen(copy) <= field->longest
               ? 0
               : shape_too_long(&reading->path, field->longest, "bytes", reading->out_error);
}

/* ---- lists ---- */

static size_t entry_size(const struct shape_field *field)
{
    return field->shape != NULL        ? field->shape->size
           : field->kind == SHAPE_U32S ? sizeof(uint32_t)
                                       : sizeof(double);
}

static int read_entry(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    double value = json_number_value(json);

    if (field->shape != NULL)
        return json_is_object(json) ? read_object(reading, field->shape, json, out)
                                    : shape_refuse(&reading->path, field, true, reading->out_error);
    if (field->kind == SHAPE_U32S) {
        if (!whole_fits(field, json))
            return shape_refuse(&reading->path, field, true, reading->out_error);
        put_whole(field, json, out);
        return 0;
    }
    if (!json_is_number(json) || !shape_in_range(field->range, value))
        return shape_refuse(&reading->path, field, true, reading->out_error);
    memcpy(out, &value, sizeof value);
    return 0;
}

static int read_list(struct reading *reading, const struct shape_field *field, json_t *json, char *out,
                     char *out_count)
{
    size_t count = json_array_size(json), size = entry_size(field);
    bool here = field->kind == SHAPE_STRUCTS_HERE;
    char *entries = out;
    int code = 0;

    if (!json_is_array(json))
        return shape_refuse(&reading->path, field, false, reading->out_error);
    if (count > field->longest)
        return shape_too_long(&reading->path, field->longest, "entries", reading->out_error);
    if (!here)
        entries = arena_alloc(reading->arena, count > 0 ? count : 1, size);
    if (entries == NULL)
        return error_no_memory(reading->out_error);
    for (size_t i = 0; i < count && code == 0; i++) {
        size_t before = shape_path_enter_entry(&reading->path, i);

        code = read_entry(reading, field, json_array_get(json, i), entries + i * size);
        shape_path_leave(&reading->path, before);
    }
    if (!here)
        memcpy(out, &entries, sizeof entries);
    memcpy(out_count, &count, sizeof count);
    return code;
}

/* ---- objects ---- */

static int read_value(struct reading *reading, const struct shape_field *field, json_t *json,
                      char *out_struct)
{
    char *out = out_struct + field->at;
    bool flag = json_is_true(json);

    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_U64:
    case SHAPE_I64:
        if (!whole_fits(field, json))
            break;
        put_whole(field, json, out);
        return 0;
    case SHAPE_NUMBER:
        return read_number(reading, field, json, out);
    case SHAPE_BOOL:
        if (!json_is_boolean(json))
            break;
        memcpy(out, &flag, sizeof flag);
        return 0;
    case SHAPE_WORD:
        return read_word(reading, field, json, out);
    case SHAPE_TEXT:
    case SHAPE_CHARS:
        return json_is_null(json) && field->null == SHAPE_OR_NULL ? 0 : read_text(reading, field, json, out);
    case SHAPE_OBJECT:
        return read_any_object(reading, field, json, out);
    case SHAPE_STRUCT:
        if (!json_is_object(json))
            break;
        return read_object(reading, field->shape, json, out);
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        return read_list(reading, field, json, out, out_struct + field->beside);
    }
    return shape_refuse(&reading->path, field, false, reading->out_error);
}

static size_t field_size(const struct shape_field *field)
{
    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_WORD:
        return sizeof(uint32_t);
    case SHAPE_U64:
    case SHAPE_I64:
        return sizeof(uint64_t);
    case SHAPE_NUMBER:
        return sizeof(double);
    case SHAPE_BOOL:
        return sizeof(bool);
    case SHAPE_CHARS:
        return field->longest + 1;
    case SHAPE_STRUCT:
        return field->shape->size;
    case SHAPE_STRUCTS_HERE:
        return field->shape->size * field->longest;
    case SHAPE_TEXT:
    case SHAPE_OBJECT:
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_STRUCTS:
        break;
    }
    return sizeof(void *);
}

/* What a member has that is not there. */
static void put_default(const struct shape *shape, const struct shape_field *field, char *out_struct)
{
    static const char *const nothing = "";
    char *out = out_struct + field->at;
    double value = shape_of_null(field->null);
    const char *text = NULL;

    for (size_t i = 0; field->kind == SHAPE_STRUCT && shape->defaults == NULL && i < field->shape->count; i++)
        put_default(field->shape, &field->shape->fields[i], out);
    if (shape->defaults != NULL)
        memcpy(out, (const char *)shape->defaults + field->at, field_size(field));
    else if (field->kind == SHAPE_NUMBER)
        memcpy(out, &value, sizeof value);
    if (field->kind == SHAPE_TEXT)
        memcpy(&text, out, sizeof text);
    if (field->kind == SHAPE_TEXT && text == NULL && field->null != SHAPE_OR_NULL)
        memcpy(out, &nothing, sizeof nothing);
}

static int read_member(struct reading *reading, const struct shape *shape, const struct shape_field *field,
                       json_t *json, char *out)
{
    json_t *value = json_object_get(json, field->name);
    bool there = value != NULL;

    if (field->need == SHAPE_FLAGGED)
        memcpy(out + field->beside, &there, sizeof there);
    if (!there) {
        put_default(shape, field, out);
        return field->need == SHAPE_NEEDED ? error_set(reading->out_error, FLY_EDATA,
                                                       "member '%s' is missing; add it", reading->path.text)
                                           : 0;
    }
    return read_value(reading, field, value, out);
}

static int refuse_unknown(struct reading *reading, const struct shape *shape, json_t *json)
{
    const char *known[KNOWN_MAX], *name;
    json_t *value;

    for (size_t i = 0; i < shape->count && i < KNOWN_MAX; i++)
        known[i] = shape->fields[i].name;
    json_object_foreach(json, name, value)
    {
        int nearest;

        if (word_index(name, known, shape->count) >= 0)
            continue;
        nearest = word_nearest(name, known, shape->count);
        (void)shape_path_enter(&reading->path, name);
        if (nearest >= 0)
            return error_set(reading->out_error, FLY_EDATA,
                             "member '%s' is not known here; did you mean '%s'?", reading->path.text,
                             known[nearest]);
        return error_set(reading->out_error, FLY_EDATA, "member '%s' is not known here; leave it out",
                         reading->path.text);
    }
    return 0;
}

static int read_object(struct reading *reading, const struct shape *shape, json_t *json, char *out)
{
    int code = 0;

    for (size_t i = 0; i < shape->count && code == 0; i++) {
        size_t before = shape_path_enter(&reading->path, shape->fields[i].name);

        code = read_member(reading, shape, &shape->fields[i], json, out);
        shape_path_leave(&reading->path, before);
    }
    return code == 0 && reading->manners == SHAPE_STRICT ? refuse_unknown(reading, shape, json) : code;
}

int shape_read(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
               void *out_struct, struct fly_error *out_error)
{
    struct reading reading = {.manners = manners, .arena = arena, .out_error = out_error};
    char *read = calloc(1, shape->size);
    int code;

    if (read == NULL)
        return error_no_memory(out_error);
    if (json_is_object(json))
        code = read_object(&reading, shape, json, read);
    else
        code = error_set(out_error, FLY_EDATA, "the body is no JSON object; see its description");
    if (code == 0)
        memcpy(out_struct, read, shape->size);
    free(read);
    return code;
}
