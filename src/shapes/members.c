/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/members.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

void members_refuse(struct members *members, const char *name, const char *expected)
{
    if (members->wrong != NULL)
        return;
    members->wrong = name;
    members->expected = expected;
}

struct members members_of(json_t *json)
{
    struct members members = {.object = json};

    if (!json_is_object(json))
        members_refuse(&members, "", "an object");
    return members;
}

bool members_has(const struct members *members, const char *name)
{
    const json_t *value = json_object_get(members->object, name);

    return value != NULL && !json_is_null(value);
}

uint64_t members_u64(struct members *members, const char *name, uint64_t minimum, uint64_t maximum)
{
    const json_t *value = json_object_get(members->object, name);
    json_int_t number = json_integer_value(value);

    if (json_is_integer(value) && number >= 0 && (uint64_t)number >= minimum && (uint64_t)number <= maximum)
        return (uint64_t)number;
    members_refuse(members, name, "a whole number in its range");
    return 0;
}

int64_t members_time_us(struct members *members, const char *name)
{
    return (int64_t)members_u64(members, name, 0, INT64_MAX);
}

double members_number(struct members *members, const char *name)
{
    const json_t *value = json_object_get(members->object, name);

    if (json_is_number(value) && isfinite(json_number_value(value)))
        return json_number_value(value);
    members_refuse(members, name, "a number");
    return 0.0;
}

double members_number_or_null(struct members *members, const char *name, double of_null)
{
    return json_is_null(json_object_get(members->object, name)) ? of_null : members_number(members, name);
}

bool members_bool(struct members *members, const char *name)
{
    const json_t *value = json_object_get(members->object, name);

    if (!json_is_boolean(value))
        members_refuse(members, name, "true or false");
    return json_is_true(value);
}

const char *members_text(struct members *members, const char *name, size_t maximum)
{
    const json_t *value = json_object_get(members->object, name);
    const char *text = json_string_value(value);

    if (text != NULL && strlen(text) == json_string_length(value) && strlen(text) <= maximum)
        return text;
    members_refuse(members, name, "a text that is not too long");
    return "";
}

size_t members_word(struct members *members, const char *name, const char *const *words, size_t count)
{
    const char *text = json_string_value(json_object_get(members->object, name));
    int index = text != NULL ? word_index(text, words, count) : -1;

    if (index >= 0)
        return (size_t)index;
    members_refuse(members, name, "one of the known words");
    return 0;
}

const json_t *members_array(struct members *members, const char *name, size_t maximum)
{
    const json_t *value = json_object_get(members->object, name);

    if (json_is_array(value) && json_array_size(value) <= maximum)
        return value;
    members_refuse(members, name, "a list that is not too long");
    return NULL;
}

struct members members_inside(struct members *members, const char *name)
{
    json_t *value = json_object_get(members->object, name);

    if (!json_is_object(value))
        members_refuse(members, name, "an object");
    return members_of(value);
}

const char *members_unknown(const struct members *members, const char *const *names)
{
    const char *name;
    json_t *value;

    json_object_foreach(members->object, name, value)
    {
        const char *const *known = names;

        while (*known != NULL && strcmp(*known, name) != 0)
            known++;
        if (*known == NULL)
            return name;
    }
    return NULL;
}
