/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON from structs. Refuses what could not be read back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes/shape_private.h"
#include "shapes/text_value.h"

enum { NAME_MAX_BYTES = 96 };

struct writing {
    const struct shape_path *path; /* of what is being written */
    const char *reason; /* why members without a reason of their own are null; NULL: they need none */
    struct fly_error *out_error;
};

static int write_inside(struct writing *writing, const struct shape *shape, const char *from,
                        json_t **out_json);
static int write_object(struct writing *writing, const struct shape *shape, const char *from, json_t *object);
static int write_there(struct writing *writing, const struct shape *shape, const struct shape_field *field,
                       const char *from, json_t **out_json);

/* ---- plain values ---- */

static int write_whole(struct writing *writing, const struct shape_field *field, const char *from, bool entry,
                       json_t **out_json)
{
    bool is_signed = field->kind == SHAPE_I32 || field->kind == SHAPE_I64;
    uint64_t value;
    uint32_t narrow;
    size_t size;
    int few;

    if (field->kind == SHAPE_U64 || field->kind == SHAPE_I64) {
        memcpy(&value, from, sizeof value);
    } else if (field->kind == SHAPE_SIZE) {
        memcpy(&size, from, sizeof size);
        value = size;
    } else if (field->kind == SHAPE_I32) {
        memcpy(&few, from, sizeof few);
        value = (uint64_t)few;
    } else {
        memcpy(&narrow, from, sizeof narrow);
        value = narrow;
    }
    if ((value == 0 && field->null == SHAPE_ZERO) ||
        (is_signed && (int64_t)value < 0 && field->null == SHAPE_BELOW_0)) {
        *out_json = json_null();
        return 0;
    }
    if (is_signed ? (int64_t)value < (int64_t)field->least || (int64_t)value > (int64_t)field->most
                  : value < field->least || value > field->most)
        return shape_refuse(writing->path, field, entry, writing->out_error);
    *out_json = json_integer((json_int_t)value);
    return 0;
}

static int write_number(struct writing *writing, const struct shape_field *field, const char *from,
                        bool entry, json_t **out_json)
{
    double value;

    memcpy(&value, from, sizeof value);
    if (field->times != 0.0)
        value *= field->times;
    if (!entry && ((field->null == SHAPE_UNKNOWN && isnan(value)) ||
                   (field->null == SHAPE_NOT_FINITE && !isfinite(value)) ||
                   (field->null == SHAPE_ENDLESS && isinf(value) && value > 0.0))) {
        *out_json = json_null();
        return 0;
    }
    if (!shape_number_fits(field, value))
        return shape_refuse(writing->path, field, entry, writing->out_error);
    *out_json = json_real(value);
    return 0;
}

static int write_word(struct writing *writing, const struct shape_field *field, const char *from,
                      json_t **out_json)
{
    unsigned value;

    memcpy(&value, from, sizeof value);
    if (value >= field->word_count)
        return shape_refuse(writing->path, field, false, writing->out_error);
    *out_json = json_string(field->words[value]);
    return 0;
}

static int write_text(struct writing *writing, const struct shape_field *field, const char *text,
                      json_t **out_json)
{
    int code;

    if (text == NULL && field->null == SHAPE_OR_NULL) {
        *out_json = json_null();
        return 0;
    }
    if (text == NULL)
        text = "";
    code = shape_check_text(writing->path, field, text, strlen(text), writing->out_error);
    if (code < 0)
        return code;
    *out_json = json_string(text);
    if (*out_json == NULL && field->any_bytes)
        *out_json = text_value(text);
    return *out_json != NULL
               ? 0
               : shape_complain(writing->path, FLY_EDATA, writing->out_error, " is not UTF-8; correct it");
}

static int write_coded(struct writing *writing, const struct shape_field *field, const char *from,
                       json_t **out_json)
{
    char text[SHAPE_CODED_MAX];

    field->coding->write(from, text);
    *out_json = json_string(text);
    return *out_json != NULL ? 0 : error_no_memory(writing->out_error);
}

static int write_json(struct writing *writing, const struct shape_field *field, json_t *json,
                      json_t **out_json)
{
    if (json == NULL && field->null == SHAPE_OR_NULL)
        json = json_null();
    if (json == NULL || (field->kind == SHAPE_JSON_OBJECT && !json_is_object(json)))
        return shape_refuse(writing->path, field, false, writing->out_error);
    *out_json = json_incref(json);
    return 0;
}

static int write_any_object(struct writing *writing, const struct shape_field *field, const char *text,
                            json_t **out_json)
{
    json_t *json = json_loads(text, 0, NULL);

    if (!json_is_object(json)) {
        json_decref(json);
        return shape_refuse(writing->path, field, false, writing->out_error);
    }
    *out_json = json;
    return 0;
}

/* ---- lists ---- */

static int write_entry(struct writing *writing, const struct shape_field *field, const char *entries,
                       size_t i, json_t **out_json)
{
    if (shape_inside(field) != NULL)
        return write_inside(writing, field->shape, entries + i * field->shape->size, out_json);
    if (field->kind == SHAPE_U32S)
        return write_whole(writing, field, entries + i * sizeof(uint32_t), true, out_json);
    if (field->kind == SHAPE_TEXTS)
        return write_text(writing, field, shape_pointer_at(entries + i * sizeof(char *)), out_json);
    return write_number(writing, field, entries + i * sizeof(double), true, out_json);
}

static const char *list_of(const struct shape_field *field, const char *from, size_t *out_count)
{
    bool here = field->kind == SHAPE_STRUCTS_HERE || field->kind == SHAPE_REST;

    memcpy(out_count, from + field->beside, sizeof *out_count);
    return here ? from + field->at : shape_pointer_at(from + field->at);
}

static int write_list(struct writing *writing, const struct shape_field *field, const char *from,
                      json_t **out_json)
{
    const char *entries;
    json_t *list;
    size_t count;
    int code = 0;

    entries = list_of(field, from, &count);
    if (count > field->longest)
        return shape_too_long(writing->path, field->longest, "entries", writing->out_error);
    list = json_array();
    for (size_t i = 0; i < count && code == 0; i++) {
        const struct shape_path place = {.outer = writing->path, .index = i};
        json_t *entry = NULL;

        writing->path = &place;
        code = write_entry(writing, field, entries, i, &entry);
        if (code == 0 && json_array_append_new(list, entry) < 0)
            code = error_no_memory(writing->out_error);
        writing->path = place.outer;
    }
    if (code < 0) {
        json_decref(list);
        return code;
    }
    *out_json = list;
    return 0;
}

/* ---- objects ---- */

/* Adds one entry of a map to the object. */
static int write_named(struct writing *writing, const struct shape *entry, const char *from, json_t *object)
{
    json_t *name = NULL, *value = NULL;
    int code = write_there(writing, entry, &entry->fields[0], from, &name);

    if (code == 0)
        code = write_there(writing, entry, &entry->fields[1], from, &value);
    if (code == 0 && json_object_set_new(object, json_string_value(name), value) < 0)
        code = error_no_memory(writing->out_error);
    json_decref(name);
    return code;
}

static int write_entries(struct writing *writing, const struct shape_field *field, const char *from,
                         json_t *object)
{
    size_t count;
    const char *entries = list_of(field, from, &count);
    int code = 0;

    if (count > field->longest)
        return shape_too_long(writing->path, field->longest, "entries", writing->out_error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = write_named(writing, field->shape, entries + i * field->shape->size, object);
    return code;
}

static int write_map(struct writing *writing, const struct shape_field *field, const char *from,
                     json_t **out_json)
{
    json_t *object = json_object();
    int code = write_entries(writing, field, from, object);

    if (code < 0) {
        json_decref(object);
        return code;
    }
    *out_json = object;
    return 0;
}

static int write_pointed(struct writing *writing, const struct shape_field *field, const char *inside,
                         json_t **out_json)
{
    if (inside != NULL)
        return write_inside(writing, field->shape, inside, out_json);
    *out_json = json_null();
    return 0;
}

static int write_value(struct writing *writing, const struct shape_field *field, const char *from,
                       json_t **out_json)
{
    const char *at = from + field->at;
    json_t *json;

    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_U64:
    case SHAPE_I32:
    case SHAPE_I64:
    case SHAPE_SIZE:
        return write_whole(writing, field, at, false, out_json);
    case SHAPE_NUMBER:
        return write_number(writing, field, at, false, out_json);
    case SHAPE_BOOL:
        *out_json = json_boolean(*(const bool *)at);
        return 0;
    case SHAPE_WORD:
        return write_word(writing, field, at, out_json);
    case SHAPE_TEXT:
        return write_text(writing, field, shape_pointer_at(at), out_json);
    case SHAPE_CHARS:
        return write_text(writing, field, at, out_json);
    case SHAPE_OBJECT:
        return write_any_object(writing, field, shape_pointer_at(at), out_json);
    case SHAPE_JSON:
    case SHAPE_JSON_OBJECT:
        memcpy(&json, at, sizeof json);
        return write_json(writing, field, json, out_json);
    case SHAPE_CODED:
        return write_coded(writing, field, at, out_json);
    case SHAPE_POINTED:
        return write_pointed(writing, field, shape_pointer_at(at), out_json);
    case SHAPE_MADE:
        json = field->make(from);
        *out_json = json != NULL ? json : json_null();
        return 0;
    case SHAPE_STRUCT:
        return write_inside(writing, field->shape, at, out_json);
    case SHAPE_MAP:
    case SHAPE_REST:
    case SHAPE_MERGED:
        return write_map(writing, field, from, out_json);
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_TEXTS:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        break;
    }
    return write_list(writing, field, from, out_json);
}

static int write_there(struct writing *writing, const struct shape *shape, const struct shape_field *field,
                       const char *from, json_t **out_json)
{
    if (field->null != SHAPE_AS_DEFAULT || !shape_is_default(shape, field, from))
        return write_value(writing, field, from, out_json);
    *out_json = json_null();
    return 0;
}

static const char *reason_of(const struct writing *writing, const struct shape_field *field, const char *from)
{
    const char *reason = field->because > 0 ? shape_pointer_at(from + field->because) : NULL;

    if (reason == NULL)
        reason = field->unavailable;
    return reason != NULL ? reason : writing->reason;
}

/* Adds the reason why the value is missing, after it. */
static int write_reason(struct writing *writing, const struct shape_field *field, const char *from,
                        json_t *object)
{
    const char *reason = reason_of(writing, field, from);
    char name[NAME_MAX_BYTES];
    json_t *text;

    if (reason == NULL)
        return 0;
    text = json_string(reason);
    if (text == NULL)
        text = text_value(reason);
    snprintf(name, sizeof name, "%s_unavailable", field->name);
    return json_object_set_new(object, name, text) < 0 ? error_no_memory(writing->out_error) : 0;
}

static int write_merged(struct writing *writing, const struct shape_field *field, const char *from,
                        json_t *object)
{
    const char *outer = writing->reason;
    int code;

    writing->reason = reason_of(writing, field, from);
    code = write_object(writing, field->shape, shape_pointer_at(from + field->at), object);
    writing->reason = outer;
    return code;
}

static int write_member(struct writing *writing, const struct shape *shape, const struct shape_field *field,
                        const char *from, json_t *object)
{
    json_t *value = NULL;
    int code;

    if (field->kind == SHAPE_REST)
        return write_entries(writing, field, from, object);
    if (field->kind == SHAPE_MERGED)
        return write_merged(writing, field, from, object);
    code = write_there(writing, shape, field, from, &value);
    if (code == 0 && json_object_set_new(object, field->name, value) < 0)
        code = error_no_memory(writing->out_error);
    return code == 0 && json_is_null(value) ? write_reason(writing, field, from, object) : code;
}

static int write_object(struct writing *writing, const struct shape *shape, const char *from, json_t *object)
{
    int code = 0;

    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const struct shape_field *field = &shape->fields[i];
        const struct shape_path place = {.outer = writing->path, .name = field->name};

        if (!shape_is_written(field, from))
            continue;
        writing->path = &place;
        code = write_member(writing, shape, field, from, object);
        writing->path = place.outer;
    }
    return code;
}

static int write_values(struct writing *writing, const struct shape *shape, const char *from, json_t *list)
{
    int code = 0;

    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const struct shape_path place = {.outer = writing->path, .index = i};
        json_t *value = NULL;

        writing->path = &place;
        code = write_there(writing, shape, &shape->fields[i], from, &value);
        if (code == 0 && json_array_append_new(list, value) < 0)
            code = error_no_memory(writing->out_error);
        writing->path = place.outer;
    }
    return code;
}

static int write_inside(struct writing *writing, const struct shape *shape, const char *from,
                        json_t **out_json)
{
    const char *outer;
    json_t *json;
    int code;

    if (shape->bare)
        return write_there(writing, shape, &shape->fields[0], from, out_json);
    if (shape->alone != NULL && shape_says_nothing(shape, from))
        return write_value(writing, shape->alone, from, out_json);
    json = shape->as_list ? json_array() : json_object();
    outer = writing->reason;
    writing->reason = NULL;
    code =
        shape->as_list ? write_values(writing, shape, from, json) : write_object(writing, shape, from, json);
    writing->reason = outer;
    if (code < 0) {
        json_decref(json);
        return code;
    }
    *out_json = json;
    return 0;
}

int shape_write(const struct shape *shape, const void *from, json_t **out_json, struct fly_error *out_error)
{
    struct writing writing = {.out_error = out_error};

    return write_inside(&writing, shape, from, out_json);
}
