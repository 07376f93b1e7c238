/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/json_words.h"

#include <stdlib.h>
#include <string.h>

#include <flyball/error.h>

#include "base/number.h"

/* Where the text goes, and how it is written. */
struct words {
    struct buffer *out;
    bool spare; /* 250, not 250.0 */
    size_t flags;
};

static void put_value(const struct words *words, json_t *value);

static void put_real(const struct words *words, double value)
{
    char text[NUMBER_TEXT_MAX];

    buffer_puts(words->out, number_format(value, text));
    if (!words->spare && text[strcspn(text, ".en")] == '\0')
        buffer_puts(words->out, ".0");
}

/* Writes a text, or any other kind of value. */
static void put_plain(const struct words *words, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | words->flags);

    if (text == NULL)
        words->out->error = words->out->error < 0 ? words->out->error : FLY_ENOMEM;
    else
        buffer_puts(words->out, text);
    free(text);
}

static void put_key(const struct words *words, const char *key)
{
    json_t *text = json_string(key);

    put_plain(words, text);
    json_decref(text);
}

static void put_array(const struct words *words, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        buffer_puts(words->out, i > 0 ? "," : "[");
        put_value(words, json_array_get(array, i));
    }
    buffer_puts(words->out, json_array_size(array) > 0 ? "]" : "[]");
}

static void put_object(const struct words *words, json_t *object)
{
    const char *key, *before = "{";
    json_t *member;

    json_object_foreach(object, key, member)
    {
        buffer_puts(words->out, before);
        put_key(words, key);
        buffer_puts(words->out, ":");
        put_value(words, member);
        before = ",";
    }
    buffer_puts(words->out, json_object_size(object) > 0 ? "}" : "{}");
}

/* Recurses as deep as the value; jansson reads none that is too deep. */
static void put_value(const struct words *words, json_t *value)
{
    if (value == NULL || json_is_null(value))
        buffer_puts(words->out, "null");
    else if (json_is_real(value))
        put_real(words, json_real_value(value));
    else if (json_is_integer(value))
        buffer_printf(words->out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_array(value))
        put_array(words, value);
    else if (json_is_object(value))
        put_object(words, value);
    else
        put_plain(words, value);
}

void json_words_put(struct buffer *out, json_t *value)
{
    put_value(&(struct words){.out = out}, value);
}

void json_words_spare(struct buffer *out, json_t *value, bool ascii)
{
    put_value(&(struct words){.out = out, .spare = true, .flags = ascii ? JSON_ENSURE_ASCII : 0}, value);
}

char *json_words(const json_t *value, size_t maximum)
{
    json_t *copy = json_deep_copy(value); /* jansson's functions take no constant value */
    struct buffer out;
    char *text;

    buffer_init(&out, maximum);
    json_words_put(&out, copy);
    text = out.error == 0 && (copy != NULL || value == NULL) ? strdup(out.data) : NULL;
    buffer_deinit(&out);
    json_decref(copy);
    return text;
}
