/* SPDX-License-Identifier: Apache-2.0 */
/* Makes JSON Schemas of shapes. */
#include <math.h>
#include <stdio.h>

#include "shapes/shape.h"

static json_t *reference(const struct shape *shape)
{
    return json_pack("{s:s+}", "$ref", "#/components/schemas/", shape->name);
}

static json_t *value(const struct shape_field *field);

static json_t *whole(const struct shape_field *field)
{
    json_t *schema = json_pack("{s:s,s:I}", "type", "integer", "minimum", (json_int_t)field->least);

    json_object_set_new(schema, "maximum", json_integer((json_int_t)field->most));
    return schema;
}

static json_t *number(const struct shape_field *field)
{
    const struct shape_bounds *bounds = shape_bounds_of(field->range);
    json_t *schema = json_pack("{s:s}", "type", "number");

    if (isfinite(bounds->least))
        json_object_set_new(schema, bounds->above ? "exclusiveMinimum" : "minimum", json_real(bounds->least));
    if (isfinite(bounds->most) || field->highest > 0.0)
        json_object_set_new(schema, "maximum",
                            json_real(field->highest > 0.0 ? field->highest : bounds->most));
    return schema;
}

/* A text has at least as many bytes as characters, so this refuses nothing that would fit. */
static json_t *text(const struct shape_field *field)
{
    json_t *schema = json_pack("{s:s,s:I}", "type", "string", "maxLength", (json_int_t)field->longest);

    if (field->least > 0)
        json_object_set_new(schema, "minLength", json_integer(1));
    return schema;
}

static json_t *word(const struct shape_field *field)
{
    json_t *words = json_array();

    for (size_t i = 0; i < field->word_count; i++)
        json_array_append_new(words, json_string(field->words[i]));
    return json_pack("{s:s,s:o}", "type", "string", "enum", words);
}

static json_t *list(const struct shape_field *field, json_t *entry)
{
    return json_pack("{s:s,s:o,s:I}", "type", "array", "items", entry, "maxItems",
                     (json_int_t)field->longest);
}

/* An object with any members, whose values the second row of its entries describes. */
static json_t *map(const struct shape_field *field)
{
    return json_pack("{s:s,s:o}", "type", "object", "additionalProperties", value(&field->shape->fields[1]));
}

static json_t *structs(const struct shape_field *field)
{
    json_t *entries = list(field, reference(field->shape));

    return field->or_one ? json_pack("{s:[o,o]}", "anyOf", entries, reference(field->shape)) : entries;
}

static json_t *value(const struct shape_field *field)
{
    switch (field->kind) {
    case SHAPE_U32:
    case SHAPE_U64:
    case SHAPE_I32:
    case SHAPE_I64:
    case SHAPE_SIZE:
        return whole(field);
    case SHAPE_NUMBER:
        return number(field);
    case SHAPE_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case SHAPE_WORD:
        return word(field);
    case SHAPE_TEXT:
    case SHAPE_CHARS:
        return text(field);
    case SHAPE_CODED:
        return json_pack("{s:s}", "type", "string");
    case SHAPE_JSON:
    case SHAPE_MERGED:
    case SHAPE_POINTED:
    case SHAPE_MADE:
        return json_object();
    case SHAPE_JSON_OBJECT:
    case SHAPE_OBJECT:
        return json_pack("{s:s}", "type", "object");
    case SHAPE_STRUCT:
        return reference(field->shape);
    case SHAPE_U32S:
        return list(field, whole(field));
    case SHAPE_NUMBERS:
        return list(field, number(field));
    case SHAPE_TEXTS:
        return list(field, text(field));
    case SHAPE_MAP:
    case SHAPE_REST:
        return map(field);
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        break;
    }
    return structs(field);
}

static json_t *property_of(const struct shape_field *field)
{
    json_t *property = value(field), *type = json_object_get(property, "type");

    if (field->null != SHAPE_NOT_NULL && type != NULL)
        json_object_set_new(property, "type", json_pack("[O,s]", type, "null"));
    if (field->about != NULL)
        json_object_set_new(property, "description", json_string(field->about));
    return property;
}

static json_t *list_schema(const struct shape *shape)
{
    json_t *entries = json_array();

    for (size_t i = 0; i < shape->count; i++)
        json_array_append_new(entries, property_of(&shape->fields[i]));
    entries = json_pack("{s:s,s:s,s:o,s:I,s:I}", "type", "array", "description", shape->about, "prefixItems",
                        entries, "minItems", (json_int_t)shape->count, "maxItems", (json_int_t)shape->count);
    return shape->alone != NULL ? json_pack("{s:[o,o]}", "anyOf", entries, property_of(shape->alone))
                                : entries;
}

json_t *shape_schema(const struct shape *shape, bool closed)
{
    json_t *properties, *required, *schema, *rest = NULL;

    if (shape->bare)
        return property_of(&shape->fields[0]);
    if (shape->as_list)
        return list_schema(shape);
    properties = json_object();
    required = json_array();
    for (size_t i = 0; i < shape->count; i++) {
        const struct shape_field *field = &shape->fields[i];

        if (field->kind == SHAPE_REST) {
            rest = value(&field->shape->fields[1]);
            continue;
        }
        json_object_set_new(properties, field->name, property_of(field));
        if (field->need == SHAPE_NEEDED)
            json_array_append_new(required, json_string(field->name));
    }
    schema =
        json_pack("{s:s,s:s,s:o}", "type", "object", "description", shape->about, "properties", properties);
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    if (closed || rest != NULL)
        json_object_set_new(schema, "additionalProperties", rest != NULL ? rest : json_false());
    return schema;
}
