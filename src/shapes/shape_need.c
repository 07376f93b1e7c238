/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which members are written: those without information may be left out, or null. */
#include <math.h>
#include <string.h>

#include "shapes/shape_private.h"

const char *shape_pointer_at(const char *from)
{
    const char *text;

    memcpy(&text, from, sizeof text);
    return text;
}

/* Whether the member has its shape's default. */
bool shape_is_default(const struct shape *shape, const struct shape_field *field, const char *from)
{
    const char *at = from + field->at, *usual = shape->defaults;
    size_t size = shape_field_size(field);

    if (field->kind == SHAPE_TEXT || field->kind == SHAPE_CHARS) {
        const char *text = field->kind == SHAPE_TEXT ? shape_pointer_at(at) : at;
        const char *other = usual == NULL               ? ""
                            : field->kind == SHAPE_TEXT ? shape_pointer_at(usual + field->at)
                                                        : usual + field->at;

        return strcmp(text != NULL ? text : "", other != NULL ? other : "") == 0;
    }
    for (size_t i = 0; i < size; i++) {
        if (at[i] != (usual != NULL ? usual[field->at + i] : '\0'))
            return false;
    }
    return true;
}

bool shape_says_nothing(const struct shape *shape, const char *from)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (!shape_is_default(shape, &shape->fields[i], from))
            return false;
    }
    return true;
}

static bool is_pointer(const struct shape_field *field)
{
    return field->kind == SHAPE_JSON || field->kind == SHAPE_JSON_OBJECT || field->kind == SHAPE_POINTED ||
           field->kind == SHAPE_MADE;
}

bool shape_is_written(const struct shape_field *field, const char *from)
{
    const char *text;
    double number;
    uint32_t whole;
    bool truth;

    if (field->need == SHAPE_FLAGGED)
        return *(const bool *)(from + field->beside);
    if (field->need != SHAPE_SPARING)
        return true;
    if (field->kind == SHAPE_NUMBER) {
        memcpy(&number, from + field->at, sizeof number);
        return !isnan(number);
    }
    if (field->kind == SHAPE_U32) {
        memcpy(&whole, from + field->at, sizeof whole);
        return whole != 0;
    }
    if (field->kind == SHAPE_BOOL) {
        memcpy(&truth, from + field->at, sizeof truth);
        return truth;
    }
    text = field->kind == SHAPE_CHARS ? from + field->at : shape_pointer_at(from + field->at);
    return text != NULL && (is_pointer(field) || text[0] != '\0');
}
