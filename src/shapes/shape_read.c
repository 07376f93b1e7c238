/* SPDX-License-Identifier: Apache-2.0 */
/* Reads structs from JSON: objects, lists, and their parts. */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "shapes/shape_private.h"

enum { KNOWN_MAX = 64, SMALL_MAX = 2048 };

static int read_inside(struct shape_reading *reading, const struct shape *shape, json_t *json, char *out);
static int read_value(struct shape_reading *reading, const struct shape_field *field, json_t *json,
                      char *out_struct);
static int read_there(struct shape_reading *reading, const struct shape *shape,
                      const struct shape_field *field, json_t *value, char *out);

/* Notes only the first fault, which is the innermost. */
static int note(const struct shape_reading *reading, const struct shape_field *field, bool entry, int code,
                json_t *found)
{
    if (code < 0 && reading->fault != NULL && reading->fault->expected[0] == '\0')
        shape_fault_fill(reading->fault, reading->path, field, entry, code, found);
    return code;
}

/* ---- structs and lists ---- */

/* Reads a struct's value from `json`, or from what may stand for it. */
static int read_struct(struct shape_reading *reading, const struct shape_field *field, bool entry,
                       json_t *json, char *out)
{
    const struct shape *shape = field->shape;
    int code;

    if (shape_is_form(shape, json))
        return read_inside(reading, shape, json, out);
    if (shape->alone == NULL || json_is_array(json))
        return shape_refuse(reading->path, field, entry, reading->out_error);
    for (size_t i = 0; i < shape->count; i++)
        shape_put_default(shape, &shape->fields[i], out);
    code = read_value(reading, shape->alone, json, out);
    return code == FLY_EDATA ? shape_refuse(reading->path, field, entry, reading->out_error) : code;
}

static size_t entry_size(const struct shape_field *field)
{
    return shape_inside(field) != NULL  ? field->shape->size
           : field->kind == SHAPE_U32S  ? sizeof(uint32_t)
           : field->kind == SHAPE_TEXTS ? sizeof(char *)
                                        : sizeof(double);
}

static void put_entry_default(const struct shape_field *field, char *out)
{
    static const char *const nothing = "";

    memset(out, 0, entry_size(field));
    if (field->kind == SHAPE_TEXTS)
        memcpy(out, &nothing, sizeof nothing);
    for (size_t i = 0; shape_inside(field) != NULL && i < field->shape->count; i++)
        shape_put_default(field->shape, &field->shape->fields[i], out);
}

/* Whether a value that did not fit may be ignored. */
static bool is_passed_over(const struct shape_field *field, int code)
{
    return field->loose && (code == FLY_EDATA || code == FLY_ELIMIT);
}

static int read_entry(struct shape_reading *reading, const struct shape_field *field, json_t *json, char *out)
{
    struct shape_reading quiet = *reading, *mine = field->loose ? &quiet : reading;
    int code;

    quiet.fault = NULL;
    quiet.out_error = NULL;
    code = shape_inside(field) != NULL ? read_struct(mine, field, true, json, out)
                                       : shape_read_plain(mine, field, true, json, out);
    if (!is_passed_over(field, code))
        return note(reading, field, true, code, json);
    put_entry_default(field, out);
    return 0;
}

static int read_entries(struct shape_reading *reading, const struct shape_field *field, json_t *json,
                        char *entries, size_t count)
{
    bool one = !json_is_array(json);
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct shape_path place = {.outer = reading->path, .index = i};

        if (!one)
            reading->path = &place;
        code =
            read_entry(reading, field, one ? json : json_array_get(json, i), entries + i * entry_size(field));
        reading->path = place.outer;
    }
    return code;
}

/* Makes room for a list's entries, and stores their number beside it; NULL without memory. */
static char *put_list(const struct shape_reading *reading, const struct shape_field *field, size_t count,
                      char *out_struct)
{
    bool here = field->kind == SHAPE_STRUCTS_HERE || field->kind == SHAPE_REST;
    char *out = out_struct + field->at;
    char *entries = here ? out : arena_alloc(reading->arena, count > 0 ? count : 1, entry_size(field));

    memcpy(out_struct + field->beside, &count, sizeof count);
    if (!here)
        memcpy(out, &entries, sizeof entries);
    return entries;
}

static int read_list(struct shape_reading *reading, const struct shape_field *field, json_t *json,
                     char *out_struct)
{
    bool one = field->or_one && json_is_object(json);
    size_t count = one ? 1 : json_array_size(json);
    char *entries;

    if (!one && !json_is_array(json))
        return shape_refuse(reading->path, field, false, reading->out_error);
    if (count > field->longest)
        return shape_too_long(reading->path, field->longest, "entries", reading->out_error);
    entries = put_list(reading, field, count, out_struct);
    return entries != NULL ? read_entries(reading, field, json, entries, count)
                           : error_no_memory(reading->out_error);
}

/* ---- members of any name ---- */

/* Reads a member's name, as the kind of text that the row says. */
static int read_name(const struct shape_reading *reading, const struct shape_field *field, const char *name,
                     char *out)
{
    json_t *text;
    int code;

    if (field->kind == SHAPE_CODED)
        return field->coding->read(name, out) ? 0
                                              : shape_refuse(reading->path, field, false, reading->out_error);
    if (field->kind == SHAPE_TEXT && reading->manners == SHAPE_BORROWING) {
        memcpy(out, &name, sizeof name);
        return 0;
    }
    text = json_string(name);
    code = text != NULL ? shape_read_plain(reading, field, false, text, out)
                        : error_no_memory(reading->out_error);
    json_decref(text);
    return code;
}

static int read_named(struct shape_reading *reading, const struct shape_field *field, const char *name,
                      json_t *value, char *out)
{
    const struct shape_path place = {.outer = reading->path, .name = name};
    const struct shape_field *rows = field->shape->fields;
    int code;

    reading->path = &place;
    code = note(reading, &rows[0], false, read_name(reading, &rows[0], name, out + rows[0].at), value);
    if (code == 0)
        code = read_there(reading, field->shape, &rows[1], value, out);
    reading->path = place.outer;
    return code;
}

static int read_map(struct shape_reading *reading, const struct shape_field *field, json_t *json,
                    char *out_struct)
{
    size_t count = 0;
    char *entries;
    const char *name;
    json_t *value;
    int code = 0;

    if (!json_is_object(json))
        return shape_refuse(reading->path, field, false, reading->out_error);
    if (json_object_size(json) > field->longest)
        return shape_too_long(reading->path, field->longest, "entries", reading->out_error);
    entries = put_list(reading, field, json_object_size(json), out_struct);
    if (entries == NULL)
        return error_no_memory(reading->out_error);
    json_object_foreach(json, name, value)
    {
        if (code == 0)
            code = read_named(reading, field, name, value, entries + count++ * field->shape->size);
    }
    return code;
}

/* Recordings look up every value of every line: most names differ in their first letter. */
static bool is_known(const struct shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->count; i++) {
        const char *known = shape->fields[i].name;

        if (known[0] == name[0] && shape->fields[i].kind != SHAPE_REST && strcmp(known, name) == 0)
            return true;
    }
    return false;
}

static int read_rest(struct shape_reading *reading, const struct shape *shape, json_t *json, char *out)
{
    const struct shape_field *field = &shape->fields[shape->count - 1];
    size_t count = 0;
    const char *name;
    json_t *value;
    int code = 0;

    json_object_foreach(json, name, value)
    {
        if (code < 0 || is_known(shape, name))
            continue;
        if (count == field->longest)
            code = note(reading, field, false,
                        shape_too_long(reading->path, field->longest, "members", reading->out_error), json);
        else
            code = read_named(reading, field, name, value, out + field->at + count++ * field->shape->size);
    }
    memcpy(out + field->beside, &count, sizeof count);
    return code;
}

/* ---- objects ---- */

static int read_value(struct shape_reading *reading, const struct shape_field *field, json_t *json,
                      char *out_struct)
{
    switch (field->kind) {
    case SHAPE_STRUCT:
        return read_struct(reading, field, false, json, out_struct + field->at);
    case SHAPE_MAP:
        return read_map(reading, field, json, out_struct);
    case SHAPE_U32S:
    case SHAPE_NUMBERS:
    case SHAPE_TEXTS:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        return read_list(reading, field, json, out_struct);
    default:
        return shape_read_plain(reading, field, false, json, out_struct + field->at);
    }
}

static bool is_list(const struct shape_field *field)
{
    return field->kind == SHAPE_U32S || field->kind == SHAPE_NUMBERS || field->kind == SHAPE_TEXTS ||
           field->kind == SHAPE_STRUCTS || field->kind == SHAPE_STRUCTS_HERE;
}

/* Reads a value that need not fit. */
static int read_loosely(const struct shape_reading *reading, const struct shape *shape,
                        const struct shape_field *field, json_t *value, char *out)
{
    struct shape_reading quiet = *reading;
    int code;

    quiet.fault = NULL;
    quiet.out_error = NULL;
    code = read_value(&quiet, field, value, out);
    if (!is_passed_over(field, code))
        return code < 0 ? error_no_memory(reading->out_error) : 0;
    memset(out + field->at, 0, shape_field_size(field));
    shape_put_default(shape, field, out);
    return 0;
}

/* Reads a member, or an entry of a struct that is a list. */
static int read_there(struct shape_reading *reading, const struct shape *shape,
                      const struct shape_field *field, json_t *value, char *out)
{
    if (json_is_null(value) && field->null == SHAPE_AS_DEFAULT) {
        shape_put_default(shape, field, out);
        return 0;
    }
    if (field->loose && !is_list(field))
        return read_loosely(reading, shape, field, value, out);
    return note(reading, field, false, read_value(reading, field, value, out), value);
}

static int read_member(struct shape_reading *reading, const struct shape *shape,
                       const struct shape_field *field, json_t *json, char *out)
{
    json_t *value = json_object_get(json, field->name);
    bool there = value != NULL && !(field->null == SHAPE_AS_MISSING && json_is_null(value));

    if (field->need == SHAPE_FLAGGED)
        memcpy(out + field->beside, &there, sizeof there);
    if (there)
        return read_there(reading, shape, field, value, out);
    shape_put_default(shape, field, out);
    if (field->need != SHAPE_NEEDED)
        return 0;
    return note(reading, field, false,
                shape_complain(reading->path, FLY_EDATA, reading->out_error, " is missing; add it"), NULL);
}

static int refuse_unknown(struct shape_reading *reading, const struct shape *shape, json_t *json)
{
    static const struct shape_field nothing = {.expected = "nothing of this name"};
    const char *known[KNOWN_MAX], *name;
    json_t *value;

    for (size_t i = 0; i < shape->count && i < KNOWN_MAX; i++)
        known[i] = shape->fields[i].name;
    json_object_foreach(json, name, value)
    {
        const struct shape_path place = {.outer = reading->path, .name = name};
        int nearest, code;

        if (word_index(name, known, shape->count) >= 0)
            continue;
        nearest = word_nearest(name, known, shape->count);
        reading->path = &place;
        code = nearest >= 0 ? shape_complain(&place, FLY_EDATA, reading->out_error,
                                             " is not known here; did you mean '%s'?", known[nearest])
                            : shape_complain(&place, FLY_EDATA, reading->out_error,
                                             " is not known here; leave it out");
        (void)note(reading, &nothing, false, code, value);
        reading->path = place.outer;
        return code;
    }
    return 0;
}

static int read_object(struct shape_reading *reading, const struct shape *shape, json_t *json, char *out)
{
    bool rest = shape->count > 0 && shape->fields[shape->count - 1].kind == SHAPE_REST;
    int code = 0;

    for (size_t i = 0; i + rest < shape->count && code == 0; i++) {
        const struct shape_path place = {.outer = reading->path, .name = shape->fields[i].name};

        reading->path = &place;
        code = read_member(reading, shape, &shape->fields[i], json, out);
        reading->path = place.outer;
    }
    if (code == 0 && rest)
        return read_rest(reading, shape, json, out);
    return code == 0 && reading->manners == SHAPE_STRICT ? refuse_unknown(reading, shape, json) : code;
}

static int read_values(struct shape_reading *reading, const struct shape *shape, json_t *list, char *out)
{
    int code = 0;

    if (json_array_size(list) < shape->count || (json_array_size(list) > shape->count && !shape->longer))
        return shape_complain(reading->path, FLY_EDATA, reading->out_error,
                              ": expected a list of %zu values, not of %zu", shape->count,
                              json_array_size(list));
    for (size_t i = 0; i < shape->count && code == 0; i++) {
        const struct shape_path place = {.outer = reading->path, .index = i};

        reading->path = &place;
        code = read_there(reading, shape, &shape->fields[i], json_array_get(list, i), out);
        reading->path = place.outer;
    }
    return code;
}

static int read_inside(struct shape_reading *reading, const struct shape *shape, json_t *json, char *out)
{
    return shape->bare      ? read_there(reading, shape, &shape->fields[0], json, out)
           : shape->as_list ? read_values(reading, shape, json, out)
                            : read_object(reading, shape, json, out);
}

/* ---- the whole ---- */

int shape_read_as(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
                  void *out_struct, struct shape_fault *out_fault, struct fly_error *out_error)
{
    struct shape_reading reading = {
        .manners = manners, .arena = arena, .fault = out_fault, .out_error = out_error};
    const struct shape_field whole = {.kind = SHAPE_STRUCT, .shape = shape};
    _Alignas(max_align_t) char small[SMALL_MAX];
    char *read = shape->size <= sizeof small ? memset(small, 0, shape->size) : calloc(1, shape->size);
    int code;

    if (read == NULL)
        return error_no_memory(out_error);
    if (out_fault != NULL)
        out_fault->expected[0] = '\0';
    if (shape_is_form(shape, json))
        code = read_inside(&reading, shape, json, read);
    else
        code = error_set(out_error, FLY_EDATA, "the body is no JSON object; see its description");
    if (code == 0)
        memcpy(out_struct, read, shape->size);
    if (read != small)
        free(read);
    return note(&reading, &whole, false, code, json);
}

int shape_read(const struct shape *shape, json_t *json, enum shape_manners manners, struct arena *arena,
               void *out_struct, struct fly_error *out_error)
{
    return shape_read_as(shape, json, manners, arena, out_struct, NULL, out_error);
}
