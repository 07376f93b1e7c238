/* SPDX-License-Identifier: Apache-2.0 */
/* Writes structs as text, and finds the differences between two. */
#include <stdlib.h>
#include <string.h>

#include "shapes/json_words.h"
#include "shapes/shape.h"

/* Writes by jansson, or with fewer digits. */
static void put_text(struct buffer *out, json_t *json, enum shape_style style)
{
    static const size_t flags[] = {[SHAPE_COMPACT] = JSON_COMPACT,
                                   [SHAPE_INDENTED] = JSON_INDENT(2),
                                   [SHAPE_NINE_DIGITS] = JSON_COMPACT | JSON_REAL_PRECISION(9)};
    char *text;

    if (style == SHAPE_SPARE || style == SHAPE_SPARE_ASCII) {
        json_words_spare(out, json, style == SHAPE_SPARE_ASCII);
        return;
    }
    text = json_dumps(json, flags[style]);
    if (text == NULL)
        out->error = out->error < 0 ? out->error : FLY_ENOMEM;
    else
        buffer_puts(out, text);
    free(text);
}

int shape_put(const struct shape *shape, const void *from, enum shape_style style, struct buffer *out,
              struct fly_error *out_error)
{
    json_t *json = NULL;
    int code = shape_write(shape, from, &json, out_error);

    if (code < 0)
        return code;
    put_text(out, json, style);
    json_decref(json);
    return 0;
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

int shape_write_member(const struct shape *shape, const char *name, const void *from, json_t *object,
                       struct fly_error *out_error)
{
    struct shape one = *shape;
    json_t *json = NULL;
    int code;

    while (one.count > 0 && strcmp(one.fields->name, name) != 0) {
        one.fields++;
        one.count--;
    }
    one.count = one.count > 0;
    code = shape_write(&one, from, &json, out_error);
    if (code == 0 && json_object_update(object, json) < 0)
        code = error_no_memory(out_error);
    json_decref(json);
    return code;
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
