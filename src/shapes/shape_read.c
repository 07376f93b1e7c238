/* SPDX-License-Identifier: Apache-2.0 */
/* Structs from JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "shapes/shape.h"

enum { KNOWN_MAX = 64, SMALL_MAX = 1024 };

struct reading {
    enum shape_manners manners;
    struct arena *arena;
    const struct shape_path *path; /* of what is read now */
    struct fly_error *out_error;
};

static int read_inside(struct reading *reading, const struct shape *shape, json_t *json, char *out);

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

static int read_whole(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    if (json_is_null(json) && field->null == SHAPE_ZERO)
        return 0;
    if (!whole_fits(field, json))
        return shape_refuse(reading->path, field, false, reading->out_error);
    put_whole(field, json, out);
    return 0;
}

static int read_number(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    double value = json_is_null(json) ? shape_of_null(field->null) : json_number_value(json);
    bool fits = json_is_null(json) ? field->null != SHAPE_NOT_NULL
                                   : json_is_number(json) && shape_in_range(field->range, value);

    if (!fits)
        return shape_refuse(reading->path, field, false, reading->out_error);
    memcpy(out, &value, sizeof value);
    return 0;
}

static int read_word(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    const char *word = json_string_value(json);
    int index = word != NULL ? word_index(word, field->words, field->word_count) : -1;

    if (index < 0)
        return shape_refuse(reading->path, field, false, reading->out_error);
    memcpy(out, &index, sizeof index);
    return 0;
}

static int read_text(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    const char *text = json_string_value(json), *copy = text;
    int code;

    if (text == NULL)
        return shape_refuse(reading->path, field, false, reading->out_error);
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

static int read_coded(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    const char *text = json_string_value(json);

    if (text == NULL || strlen(text) != json_string_length(json) || !field->coding->read(text, out))
        return shape_refuse(reading->path, field, false, reading->out_error);
    return 0;
}

static int read_any_object(struct reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    char *text, *copy;

    if (!json_is_object(json))
        return shape_refuse(reading->path, field, false, reading->out_error);
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
        return (field->shape->as_list ? json_is_array(json) : json_is_object(json))
                   ? read_inside(reading, field->shape, json, out)
                   : shape_refuse(reading->path, field, true, reading->out_error);
    if (field->kind == SHAPE_U32S) {
        if (!whole_fits(field, json))
            return shape_refuse(reading->path, field, true, reading->out_error);
        put_whole(field, json, out);
        return 0;
    }
    if (!json_is_number(json) || !shape_in_range(field->range, value))
        return shape_refuse(reading->path, field, true, reading->out_error);
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
        return shape_refuse(reading->path, field, false, reading->out_error);
    if (count > field->longest)
        return shape_too_long(reading->path, field->longest, "entries", reading->out_error);
    if (!here)
        entries = arena_alloc(reading->arena, count > 0 ? count : 1, size);
    if (entries == NULL)
        return error_no_memory(reading->out_error);
    for (size_t i = 0; i < count && code == 0; i++) {
        const struct shape_path place = {.outer = reading->path, .index = i};

        reading->path = &place;
        code = read_entry(reading, field, json_array_get(json, i), entries + i * size);
        reading->path = place.outer;
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
    case SHAPE_SIZE:
        return read_whole(reading, field, json, out);
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
    case SHAPE_JSON_OBJECT:
        if (!json_is_object(json))
            break;
        memcpy(out, &json, sizeof json);
        return 0;
    case SHAPE_JSON:
        memcpy(out, &json, sizeof json);
        return 0;
    case SHAPE_CODED:
        return read_coded(reading, field, json, out);
    case SHAPE_STRUCT:
        if (!(field->shape->as_list ? json_is_array(json) : json_is_object(json)))
            break;
        return read_inside(reading, field->shape, json, out);
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        return read_list(reading, field, json, out, out_struct + field->beside);
    }
    return shape_refuse(reading->path, field, false, reading->out_error);
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
        return field->shape->size * field->longest;
    case SHAPE_CODED:
        return field->coding->size;
    case SHAPE_TEXT:
    case SHAPE_OBJECT:
    case SHAPE_JSON:
    case SHAPE_JSON_OBJECT:
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
    bool there = value != NULL && !(field->null == SHAPE_AS_MISSING && json_is_null(value));

    if (field->need == SHAPE_FLAGGED)
        memcpy(out + field->beside, &there, sizeof there);
    if (there)
        return read_value(reading, field, value, out);
    put_default(shape, field, out);
    return field->need == SHAPE_NEEDED
               ? shape_complain(reading->path, FLY_EDATA, reading->out_error, " is missing; add it")
               : 0;
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
        if (nearest >= 0)
            return shape_complain(&(struct shape_path){.outer = reading->path, .name = name}, FLY_EDATA,
                                  reading->out_error, " is not known here; did you mean '%s'?",
                                  known[nearest]);
        return shape_complain(&(struct shape_path){.outer = reading->path, .name = name}, FLY_EDATA,
                              reading->out_error, " is not known here; leave it out");
    }
    return 0;
}

static int read_object(struct reading *reading, const struct shape *shape, json_t *json, char *out)
{
    int code = 0;

    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const struct shape_path place = {.outer = reading->path, .name = shape->fields[i].name};

        reading->path = &place;
        code = read_member(reading, shape, &shape->fields[i], json, out);
        reading->path = place.outer;
    }
    return code == 0 && reading->manners == SHAPE_STRICT ? refuse_unknown(reading, shape, json) : code;
}

static int read_values(struct reading *reading, const struct shape *shape, json_t *list, char *out)
{
    int code = 0;

    if (json_array_size(list) != shape->count)
        return shape_complain(reading->path, FLY_EDATA, reading->out_error,
                              ": expected a list of %zu values, not of %zu", shape->count,
                              json_array_size(list));
    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const struct shape_path place = {.outer = reading->path, .index = i};

        reading->path = &place;
        code = read_value(reading, &shape->fields[i], json_array_get(list, i), out);
        reading->path = place.outer;
    }
    return code;
}

static int read_inside(struct reading *reading, const struct shape *shape, json_t *json, char *out)
{
    return shape->as_list ? read_values(reading, shape, json, out) : read_object(reading, shape, json, out);
}

int shape_read(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
               void *out_struct, struct fly_error *out_error)
{
    struct reading reading = {.manners = manners, .arena = arena, .out_error = out_error};
    _Alignas(max_align_t) char small[SMALL_MAX];
    char *read = shape->size <= sizeof small ? memset(small, 0, shape->size) : calloc(1, shape->size);
    int code;

    if (read == NULL)
        return error_no_memory(out_error);
    if (json_is_object(json))
        code = read_object(&reading, shape, json, read);
    else
        code = error_set(out_error, FLY_EDATA, "the body is no JSON object; see its description");
    if (code == 0)
        memcpy(out_struct, read, shape->size);
    if (read != small)
        free(read);
    return code;
}
