/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/json_words.h"

#include <stdlib.h>
#include <string.h>

#include <flyball/error.h>

#include "base/number.h"

static void put_real(struct buffer *out, double value)
{
    char text[NUMBER_TEXT_MAX];

    buffer_puts(out, number_format(value, text));
    if (text[strcspn(text, ".en")] == '\0')
        buffer_puts(out, ".0");
}

/* A text, or what is none of the others. */
static void put_plain(struct buffer *out, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    if (text == NULL)
        out->error = out->error < 0 ? out->error : FLY_ENOMEM;
    else
        buffer_puts(out, text);
    free(text);
}

static void put_key(struct buffer *out, const char *key)
{
    json_t *text = json_string(key);

    put_plain(out, text);
    json_decref(text);
}

static void put_array(struct buffer *out, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        buffer_puts(out, i > 0 ? "," : "[");
        json_words_put(out, json_array_get(array, i));
    }
    buffer_puts(out, json_array_size(array) > 0 ? "]" : "[]");
}

static void put_object(struct buffer *out, json_t *object)
{
    const char *key, *before = "{";
    json_t *member;

    json_object_foreach(object, key, member)
    {
        buffer_puts(out, before);
        put_key(out, key);
        buffer_puts(out, ":");
        json_words_put(out, member);
        before = ",";
    }
    buffer_puts(out, json_object_size(object) > 0 ? "}" : "{}");
}

/* As deep as the value, and jansson reads none that is too deep. */
void json_words_put(struct buffer *out, json_t *value)
{
    if (value == NULL)
        buffer_puts(out, "null");
    else if (json_is_real(value))
        put_real(out, json_real_value(value));
    else if (json_is_array(value))
        put_array(out, value);
    else if (json_is_object(value))
        put_object(out, value);
    else
        put_plain(out, value);
}

char *json_words(const json_t *value, size_t maximum)
{
    json_t *copy = json_deep_copy(value); /* jansson looks into none that is constant */
    struct buffer out;
    char *text;

    buffer_init(&out, maximum);
    json_words_put(&out, copy);
    text = out.error == 0 && (copy != NULL || value == NULL) ? strdup(out.data) : NULL;
    buffer_deinit(&out);
    json_decref(copy);
    return text;
}
