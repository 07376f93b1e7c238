/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schemas of shapes. */
#include <math.h>
#include <stdio.h>

#include "shapes/wire.h"

static json_t *reference(const struct wire_shape *shape)
{
    return json_pack("{s:s+}", "$ref", "#/components/schemas/", shape->name);
}

static json_t *whole(const struct wire_field *field)
{
    json_t *schema = json_pack("{s:s,s:I}", "type", "integer", "minimum", (json_int_t)field->least);

    json_object_set_new(schema, "maximum", json_integer((json_int_t)field->most));
    return schema;
}

static json_t *number(const struct wire_field *field)
{
    const struct wire_bounds *bounds = wire_bounds_of(field->range);
    json_t *schema = json_pack("{s:s}", "type", "number");

    if (isfinite(bounds->least))
        json_object_set_new(schema, bounds->above ? "exclusiveMinimum" : "minimum", json_real(bounds->least));
    if (isfinite(bounds->most))
        json_object_set_new(schema, "maximum", json_real(bounds->most));
    return schema;
}

/* Bytes are at least as many as characters, so this refuses nothing that would fit. */
static json_t *text(const struct wire_field *field)
{
    return json_pack("{s:s,s:I}", "type", "string", "maxLength", (json_int_t)field->longest);
}

static json_t *word(const struct wire_field *field)
{
    json_t *words = json_array();

    for (size_t i = 0; i < field->word_count; i++)
        json_array_append_new(words, json_string(field->words[i]));
    return json_pack("{s:s,s:o}", "type", "string", "enum", words);
}

static json_t *list(const struct wire_field *field, json_t *entry)
{
    return json_pack("{s:s,s:o,s:I}", "type", "array", "items", entry, "maxItems",
                     (json_int_t)field->longest);
}

static json_t *value(const struct wire_field *field)
{
    switch (field->kind) {
    case WIRE_U32:
    case WIRE_U64:
    case WIRE_I64:
        return whole(field);
    case WIRE_NUMBER:
        return number(field);
    case WIRE_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case WIRE_WORD:
        return word(field);
    case WIRE_TEXT:
    case WIRE_CHARS:
        return text(field);
    case WIRE_OBJECT:
        return json_pack("{s:s}", "type", "object");
    case WIRE_STRUCT:
        return reference(field->shape);
    case WIRE_U32S:
        return list(field, whole(field));
    case WIRE_NUMBERS:
        return list(field, number(field));
    case WIRE_STRUCTS:
    case WIRE_STRUCTS_HERE:
        break;
    }
    return list(field, reference(field->shape));
}

json_t *wire_schema(const struct wire_shape *shape, bool closed)
{
    json_t *properties = json_object(), *required = json_array(), *schema;

    for (size_t i = 0; i < shape->count; i++) {
        const struct wire_field *field = &shape->fields[i];
        json_t *property = value(field);

        if (field->null != WIRE_NOT_NULL)
            json_object_set_new(property, "type",
                                json_pack("[O,s]", json_object_get(property, "type"), "null"));
        json_object_set_new(property, "description", json_string(field->about));
        json_object_set_new(properties, field->name, property);
        if (field->need == WIRE_NEEDED)
            json_array_append_new(required, json_string(field->name));
    }
    schema =
        json_pack("{s:s,s:s,s:o}", "type", "object", "description", shape->about, "properties", properties);
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    if (closed)
        json_object_set_new(schema, "additionalProperties", json_false());
    return schema;
}
