/* SPDX-License-Identifier: Apache-2.0 */
/* JSON from structs. What could not be read again is refused here already. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shapes/shape.h"

struct writing {
    const struct shape_path *path; /* of what is written now */
    struct fly_error *out_error;
};

static int write_inside(struct writing *writing, const struct shape *shape, const char *from,
                        json_t **out_json);

/* ---- plain values ---- */

static int write_whole(struct writing *writing, const struct shape_field *field, const char *from, bool entry,
                       json_t **out_json)
{
    uint64_t value;
    uint32_t narrow;
    size_t size;

    if (field->kind == SHAPE_U64 || field->kind == SHAPE_I64) {
        memcpy(&value, from, sizeof value);
    } else if (field->kind == SHAPE_SIZE) {
        memcpy(&size, from, sizeof size);
        value = size;
    } else {
        memcpy(&narrow, from, sizeof narrow);
        value = narrow;
    }
    if (value == 0 && field->null == SHAPE_ZERO) {
        *out_json = json_null();
        return 0;
    }
    if (value < field->least || value > field->most)
        return shape_refuse(writing->path, field, entry, writing->out_error);
    *out_json = json_integer((json_int_t)value);
    return 0;
}

static int write_number(struct writing *writing, const struct shape_field *field, const char *from,
                        bool entry, json_t **out_json)
{
    double value;

    memcpy(&value, from, sizeof value);
    if (!entry && ((field->null == SHAPE_UNKNOWN && isnan(value)) ||
                   (field->null == SHAPE_NOT_FINITE && !isfinite(value)) ||
                   (field->null == SHAPE_ENDLESS && isinf(value) && value > 0.0))) {
        *out_json = json_null();
        return 0;
    }
    if (!shape_in_range(field->range, value))
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
    if (field->shape != NULL)
        return write_inside(writing, field->shape, entries + i * field->shape->size, out_json);
    if (field->kind == SHAPE_U32S)
        return write_whole(writing, field, entries + i * sizeof(uint32_t), true, out_json);
    return write_number(writing, field, entries + i * sizeof(double), true, out_json);
}

static int write_list(struct writing *writing, const struct shape_field *field, const char *from,
                      json_t **out_json)
{
    const char *entries;
    json_t *list;
    size_t count;
    int code = 0;

    if (field->kind == SHAPE_STRUCTS_HERE)
        entries = from + field->at;
    else
        memcpy(&entries, from + field->at, sizeof entries);
    memcpy(&count, from + field->beside, sizeof count);
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

static const char *pointer_at(const char *from)
{
    const char *text;

    memcpy(&text, from, sizeof text);
    return text;
}

static int write_value(struct writing *writing, const struct shape_field *field, const char *from,
                       json_t **out_json)
{
    const char *at = from + field->at;
    json_t *json;

    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_U64:
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
        return write_text(writing, field, pointer_at(at), out_json);
    case SHAPE_CHARS:
        return write_text(writing, field, at, out_json);
    case SHAPE_OBJECT:
        return write_any_object(writing, field, pointer_at(at), out_json);
    case SHAPE_JSON:
    case SHAPE_JSON_OBJECT:
        memcpy(&json, at, sizeof json);
        return write_json(writing, field, json, out_json);
    case SHAPE_CODED:
        return write_coded(writing, field, at, out_json);
    case SHAPE_STRUCT:
        return write_inside(writing, field->shape, at, out_json);
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        break;
    }
    return write_list(writing, field, from, out_json);
}

static bool is_written(const struct shape_field *field, const char *from)
{
    const char *text;
    double number;
    bool truth;

    if (field->need == SHAPE_FLAGGED)
        return *(const bool *)(from + field->beside);
    if (field->need != SHAPE_SPARING)
        return true;
    if (field->kind == SHAPE_NUMBER) {
        memcpy(&number, from + field->at, sizeof number);
        return !isnan(number);
    }
    if (field->kind == SHAPE_BOOL) {
        memcpy(&truth, from + field->at, sizeof truth);
        return truth;
    }
    text = field->kind == SHAPE_CHARS ? from + field->at : pointer_at(from + field->at);
    return text != NULL && (field->kind == SHAPE_JSON || field->kind == SHAPE_JSON_OBJECT || text[0] != '\0');
}

static int write_object(struct writing *writing, const struct shape *shape, const char *from, json_t *object)
{
    int code = 0;

    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const struct shape_field *field = &shape->fields[i];
        const struct shape_path place = {.outer = writing->path, .name = field->name};
        json_t *value = NULL;

        if (!is_written(field, from))
            continue;
        writing->path = &place;
        code = write_value(writing, field, from, &value);
        if (code == 0 && json_object_set_new(object, field->name, value) < 0)
            code = error_no_memory(writing->out_error);
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
        code = write_value(writing, &shape->fields[i], from, &value);
        if (code == 0 && json_array_append_new(list, value) < 0)
            code = error_no_memory(writing->out_error);
        writing->path = place.outer;
    }
    return code;
}

static int write_inside(struct writing *writing, const struct shape *shape, const char *from,
                        json_t **out_json)
{
    json_t *json = shape->as_list ? json_array() : json_object();
    int code =
        shape->as_list ? write_values(writing, shape, from, json) : write_object(writing, shape, from, json);

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

int shape_write_text(const struct shape *shape, const void *from, char **out_text,
                     struct fly_error *out_error)
{
    json_t *json = NULL;
    int code = shape_write(shape, from, &json, out_error);
    char *text;

    if (code < 0)
        return code;
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return error_no_memory(out_error);
    *out_text = text;
    return 0;
}

/* ---- comparing ---- */

int shape_differences(const struct shape *shape, const void *before, const void *now, shape_difference *visit,
                      void *context, struct fly_error *out_error)
{
    json_t *was = NULL, *is = NULL;
    int code = shape_write(shape, before, &was, out_error);

    if (code == 0)
        code = shape_write(shape, now, &is, out_error);
    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const char *name = shape->fields[i].name;
        const json_t *old = json_object_get(was, name), *new = json_object_get(is, name);

        if (old != NULL && !json_equal(old, new))
            visit(context, name, old, new);
    }
    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const char *name = shape->fields[i].name;

        if (json_object_get(was, name) == NULL && json_object_get(is, name) != NULL)
            visit(context, name, NULL, json_object_get(is, name));
    }
    json_decref(was);
    json_decref(is);
    return code;
}
