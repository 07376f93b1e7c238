/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table has one reader per type. A value that does not fit is refused with the same sentence
 * whether it was typed, exported or found in a file; only the subject and the next step differ.
 */
#include "cli/frame/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"

enum { EXPECTED_MAX = 400 };

void value_init(struct cli_value *value)
{
    *value = (struct cli_value){.source = CLI_UNSET, .origin = "unset", .choice = -1};
}

void value_deinit(struct cli_value *value)
{
    free(value->list_text);
    value_init(value);
}

static size_t choice_count(const struct cli_option *option)
{
    size_t count = 0;

    while (option->choices != NULL && option->choices[count] != NULL)
        count++;
    return count;
}

static bool in_range(const struct cli_option *option, double number)
{
    return (option->above_minimum ? number > option->minimum : number >= option->minimum) &&
           number <= option->maximum;
}

static bool parse_text(const struct cli_option *option, const char *text, struct cli_value *value)
{
    (void)option;
    (void)value;
    return text[0] != '\0';
}

static bool parse_choice(const struct cli_option *option, const char *text, struct cli_value *value)
{
    value->choice = word_index(text, option->choices, choice_count(option));
    return value->choice >= 0;
}

/* Returns whether a word that is no choice may still be in the list. */
static bool is_path(const struct cli_option *option, const char *word)
{
    size_t length = strlen(word);

    return option->paths &&
           (strchr(word, '/') != NULL || (length > 3 && strcmp(word + length - 3, ".so") == 0));
}

/* Adds a word to the list, unless it is empty, unknown, a repetition, or one too many. */
static bool list_add(const struct cli_option *option, const char *word, struct cli_list *list)
{
    int choice = word_index(word, option->choices, choice_count(option));

    if (word[0] == '\0' || list->count == CLI_LIST_MAX ||
        (option->choices != NULL && choice < 0 && !is_path(option, word)) ||
        word_index(word, list->words, list->count) >= 0)
        return false;
    list->words[list->count] = word;
    list->choices[list->count] = choice;
    list->count++;
    return true;
}

static bool parse_list(const struct cli_option *option, const char *text, struct cli_value *value)
{
    char *rest;
    char *word;

    free(value->list_text);
    value->list_text = rest = strdup(text);
    value->list.count = 0;
    if (rest == NULL)
        return false;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (!list_add(option, word, &value->list))
            return false;
    }
    return true;
}

static bool parse_integer(const struct cli_option *option, const char *text, struct cli_value *value)
{
    bool negative = text[0] == '-';
    uint64_t magnitude;

    if (!number_parse_u64(text + negative, UINT64_C(1) << 53, &magnitude))
        return false;
    value->integer = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    value->real = (double)value->integer;
    return in_range(option, value->real);
}

static bool parse_real(const struct cli_option *option, const char *text, struct cli_value *value)
{
    if (option->infinite && strcmp(text, "inf") == 0) {
        value->real = INFINITY;
        return true;
    }
    return number_parse_double(text, &value->real) && in_range(option, value->real);
}

bool value_parse_flag(const char *text, bool *out_flag)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    int index = word_index(text, words, sizeof words / sizeof words[0]);

    if (index < 0)
        return false;
    *out_flag = index % 2 == 1;
    return true;
}

static bool parse_flag(const struct cli_option *option, const char *text, struct cli_value *value)
{
    (void)option;
    return value_parse_flag(text, &value->flag);
}

static bool (*const parsers[])(const struct cli_option *, const char *, struct cli_value *) = {
    [CLI_TEXT] = parse_text,       [CLI_CHOICE] = parse_choice, [CLI_LIST] = parse_list,
    [CLI_INTEGER] = parse_integer, [CLI_REAL] = parse_real,     [CLI_FLAG] = parse_flag,
};
_Static_assert(sizeof parsers / sizeof parsers[0] == CLI_FLAG + 1, "one reader for every type");

static void describe_range(const struct cli_option *option, struct buffer *out_text)
{
    const char *kind = option->type == CLI_INTEGER ? "whole number" : "number";
    bool bounded = isfinite(option->maximum);
    char low[NUMBER_TEXT_MAX];
    char high[NUMBER_TEXT_MAX];

    number_format(option->minimum, low);
    number_format(option->maximum, high);
    if (!isfinite(option->minimum))
        buffer_printf(out_text, bounded ? "a %s of at most %s" : "a %s", kind, high);
    else if (option->above_minimum)
        buffer_printf(out_text, bounded ? "a %s above %s, at most %s" : "a %s above %s", kind, low, high);
    else
        buffer_printf(out_text, bounded ? "a %s from %s to %s" : "a %s of at least %s", kind, low, high);
    if (option->infinite)
        buffer_puts(out_text, ", or 'inf'");
}

static void describe_choices(const struct cli_option *option, struct buffer *out_text)
{
    bool list = option->type == CLI_LIST;

    if (option->choices == NULL) {
        buffer_puts(out_text, "words separated by commas, each once");
        return;
    }
    buffer_puts(out_text, list ? "one or more of " : "one of ");
    for (size_t i = 0; option->choices[i] != NULL; i++)
        buffer_printf(out_text, "%s%s", i > 0 ? ", " : "", option->choices[i]);
    if (option->paths)
        buffer_puts(out_text, ", or paths of shared objects such as ./mine.so");
    if (list)
        buffer_puts(out_text, ", separated by commas, each once");
}

void value_describe(const struct cli_option *option, struct buffer *out_text)
{
    switch (option->type) {
    case CLI_INTEGER:
    case CLI_REAL:
        describe_range(option, out_text);
        break;
    case CLI_CHOICE:
    case CLI_LIST:
        describe_choices(option, out_text);
        break;
    case CLI_TEXT:
    case CLI_FLAG:
        break;
    }
}

/* Returns the choice that the text, or the first unknown word of a list, may have meant; NULL for none. */
static const char *nearest_choice(const struct cli_option *option, const char *text)
{
    char word[VALUE_TEXT_MAX + 1];
    int nearest;

    for (; option->choices != NULL; text++) {
        size_t length = option->type == CLI_LIST ? strcspn(text, ",") : strlen(text);

        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (word_index(word, option->choices, choice_count(option)) < 0 && !is_path(option, word)) {
            nearest = word_nearest(word, option->choices, choice_count(option));
            return nearest < 0 ? NULL : option->choices[nearest];
        }
        text += length;
        if (*text == '\0')
            return NULL;
    }
    return NULL;
}

/* Writes what was expected, for a message: the description, and the choice that was probably meant. */
static void expect(const struct cli_option *option, const char *text, struct buffer *out_text)
{
    const char *nearest = nearest_choice(option, text);

    value_describe(option, out_text);
    if (option->type == CLI_FLAG)
        buffer_puts(out_text, "yes or no");
    if (option->type == CLI_TEXT)
        buffer_printf(out_text, "a text of 1 to %d bytes", VALUE_TEXT_MAX);
    if (nearest != NULL)
        buffer_printf(out_text, " (did you mean '%s'?)", nearest);
}

int value_error(const struct cli_option *option, enum cli_source source, const char *origin, const char *text,
                const char *expected, const char *words, struct fly_error *out_error)
{
    if (source == CLI_FILE)
        return error_set(out_error, FLY_ECONFIG,
                         "%s: bad value '%.80s' of '%s': expected %s; correct that line", origin, text,
                         option->key, expected);
    if (source == CLI_VARIABLE)
        return error_set(out_error, FLY_ECONFIG,
                         "bad value '%.80s' of variable '%s': expected %s; correct or unset it", text, origin,
                         expected);
    if (source == CLI_DEFAULT)
        return error_set(out_error, FLY_EINTERNAL, "bad default '%.80s' of '--%s': expected %s", text,
                         option->name, expected);
    return error_set(out_error, FLY_EUSAGE, "bad value '%.80s' of '%s': expected %s; see 'flyball help%s%s'",
                     text, origin, expected, words != NULL ? " " : "", words != NULL ? words : "");
}

int value_set(struct cli_value *value, const struct cli_option *option, enum cli_source source,
              const char *origin, const char *text, const char *words, struct fly_error *out_error)
{
    struct buffer expected;
    int result;

    if (strlen(text) <= VALUE_TEXT_MAX && parsers[option->type](option, text, value)) {
        value->source = source;
        value->origin = origin;
        value->text = text;
        return 0;
    }
    buffer_init(&expected, EXPECTED_MAX);
    expect(option, text, &expected);
    result = value_error(option, source, origin, text, expected.data, words, out_error);
    buffer_deinit(&expected);
    return result;
}
