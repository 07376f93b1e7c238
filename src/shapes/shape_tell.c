/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what is never read back. */
#include "shapes/shape_told.h"

json_t *shape_tell(const struct shape *shape, const void *from)
{
    json_t *json = NULL;

    return shape_write(shape, from, &json, NULL) == 0 ? json : NULL;
}

json_t *shape_tell_list(const struct shape *shape, const void *first, size_t count)
{
    json_t *list = json_array();
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = json_array_append_new(list, shape_tell(shape, (const char *)first + i * shape->size));
    if (code == 0)
        return list;
    json_decref(list);
    return NULL;
}

struct told_text {
    const char *text;
};

static const struct shape_field text_rows[] = {{SHAPE_AT(told_text, text), TOLD_ANY_TEXT}};
static const struct shape text_shape = {SHAPE_OF(told_text, text_rows), .bare = true};

json_t *shape_tell_texts(const char *const *texts, size_t count)
{
    return shape_tell_list(&text_shape, texts, count);
}
