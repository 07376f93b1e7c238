/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a subset of TOML in place: no decoded string is longer than its written form. */
#include "base/text/toml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

enum { CAUSE_MAX = 200, UNICODE_MAX = 0x10FFFF };

struct reader {
    char *at;
    struct toml_place place;
    const struct toml_taker *taker;
    struct fly_error *error;
    const char *table;
    const char *tables[TOML_KEYS_MAX];
    size_t table_count;
    const char *keys[TOML_KEYS_MAX]; /* of the current table */
    size_t key_count;
};

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7F;
}

__attribute__((format(printf, 2, 3))) static int wrong(struct reader *reader, const char *format, ...)
{
    char cause[CAUSE_MAX];
    va_list arguments;

    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    vsnprintf(cause, sizeof cause, format, arguments);
    va_end(arguments);
    for (char *at = cause; *at != '\0'; at++) {
        if (is_control(*at))
            *at = '?';
    }
    return error_set(reader->error, FLY_ECONFIG, "%.200s:%zu: %s", reader->place.file, reader->place.line,
                     cause);
}

/* Skips "\n" or "\r\n", if it is here. */
static bool pass_line_end(struct reader *reader)
{
    if (reader->at[0] == '\r' && reader->at[1] == '\n')
        reader->at++;
    if (*reader->at != '\n')
        return false;
    reader->at++;
    reader->place.line++;
    return true;
}

static void pass_blanks(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t')
        reader->at++;
}

static int pass_comment(struct reader *reader)
{
    if (*reader->at != '#')
        return 0;
    while (*reader->at != '\0' && *reader->at != '\n' && !(reader->at[0] == '\r' && reader->at[1] == '\n')) {
        if (is_control(*reader->at))
            return wrong(reader, "a comment holds a control character; remove it");
        reader->at++;
    }
    return 0;
}

/* Skips blanks, comments and ends of lines. */
static int pass_space(struct reader *reader)
{
    int code;

    do {
        pass_blanks(reader);
        code = pass_comment(reader);
    } while (code == 0 && pass_line_end(reader));
    return code;
}

static int end_line(struct reader *reader)
{
    int code;

    pass_blanks(reader);
    code = pass_comment(reader);
    if (code == 0 && *reader->at != '\0' && !pass_line_end(reader))
        code = wrong(reader, "expected the end of the line and not '%.20s'", reader->at);
    return code;
}

static char *put_utf8(char *to, uint32_t point)
{
    if (point < 0x80) {
        *to++ = (char)point;
    } else if (point < 0x800) {
        *to++ = (char)(0xC0 | point >> 6);
        *to++ = (char)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *to++ = (char)(0xE0 | point >> 12);
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    } else {
        *to++ = (char)(0xF0 | point >> 18);
        *to++ = (char)(0x80 | (point >> 12 & 0x3F));
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    }
    return to;
}

/* Decodes the digits after "\u" or "\U". */
static int take_point(struct reader *reader, int digits, char **to)
{
    static const char hexadecimal[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t point = 0;

    for (int i = 0; i < digits; i++) {
        const char *digit = *reader->at != '\0' ? strchr(hexadecimal, *reader->at) : NULL;

        if (digit == NULL)
            return wrong(reader, "expected %d hexadecimal digits behind a \\u or \\U", digits);
        point = point << 4 | (uint32_t)((digit - hexadecimal) % 16);
        reader->at++;
    }
    if (point == 0 || point > UNICODE_MAX || (point >= 0xD800 && point < 0xE000))
        return wrong(reader, "there is no character U+%04X", (unsigned)point);
    *to = put_utf8(*to, point);
    return 0;
}

/* Decodes the character after a backslash. */
static int take_escape(struct reader *reader, bool several_lines, char **to)
{
    static const char letters[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    const char *letter = *reader->at != '\0' ? strchr(letters, *reader->at) : NULL;
    char *begin = reader->at;

    if (letter != NULL) {
        *(*to)++ = meant[letter - letters];
        reader->at++;
        return 0;
    }
    if (*reader->at == 'u' || *reader->at == 'U') {
        reader->at++;
        return take_point(reader, *begin == 'u' ? 4 : 8, to);
    }
    pass_blanks(reader);
    if (several_lines && pass_line_end(reader)) {
        do
            pass_blanks(reader);
        while (pass_line_end(reader));
        return 0;
    }
    return wrong(
        reader, "unknown escape '\\%.1s' in a string; write \\\\ for a backslash, or '...' around it", begin);
}

/* Returns whether the string ends here. If five quotes end a long string, the first two belong to it. */
static bool is_end(const char *at, char quote, bool several_lines)
{
    return *at == quote && (!several_lines || (at[1] == quote && at[2] == quote && at[3] != quote));
}

static int take_string(struct reader *reader, char **out_text)
{
    char quote = *reader->at, *to;
    bool several_lines = reader->at[1] == quote && reader->at[2] == quote;

    reader->at += several_lines ? 3 : 1;
    if (several_lines)
        pass_line_end(reader);
    to = *out_text = reader->at;
    while (!is_end(reader->at, quote, several_lines)) {
        int code = 0;

        if (several_lines && pass_line_end(reader)) {
            *to++ = '\n';
        } else if (*reader->at == '\0' || *reader->at == '\n' || *reader->at == '\r') {
            return wrong(reader, "a string does not end before its line does");
        } else if (is_control(*reader->at)) {
            return wrong(reader, "a string holds a control character; write it as \\uXXXX");
        } else if (quote == '"' && *reader->at == '\\') {
            reader->at++;
            code = take_escape(reader, several_lines, &to);
        } else {
            *to++ = *reader->at++;
        }
        if (code < 0)
            return code;
    }
    reader->at += several_lines ? 3 : 1;
    *to = '\0'; /* at a closing quote, or before it */
    return 0;
}

static int take_items(struct reader *reader, struct toml_value *value)
{
    int code;

    value->kind = TOML_STRINGS;
    reader->at++;
    for (;;) {
        code = pass_space(reader);
        if (code < 0)
            return code;
        if (*reader->at == ']')
            break;
        if (*reader->at != '"' && *reader->at != '\'')
            return wrong(reader, "expected a string or ']' in an array and not '%.10s'", reader->at);
        if (value->count == TOML_ITEMS_MAX)
            return wrong(reader, "an array has more than %d items", TOML_ITEMS_MAX);
        code = take_string(reader, &value->items[value->count++]);
        if (code == 0)
            code = pass_space(reader);
        if (code < 0)
            return code;
        if (*reader->at == ',')
            reader->at++;
        else if (*reader->at != ']')
            return wrong(reader, "expected ',' or ']' behind an item of an array");
    }
    reader->at++;
    return 0;
}

/* Reads an integer or a boolean. */
static int take_word(struct reader *reader, struct toml_value *value)
{
    static const char ends[] = " \t\r\n#";
    char word[32] = "";
    size_t length = strcspn(reader->at, ends), digits = 0;
    uint64_t number;

    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1,
             reader->at);
    if (length < sizeof word && (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)) {
        value->kind = TOML_BOOLEAN;
        value->integer = word[0] == 't';
    } else {
        digits = word[0] == '-' || word[0] == '+';
        if (length >= sizeof word || !number_parse_u64(word + digits, INT64_MAX, &number) ||
            (word[digits] == '0' && word[digits + 1] != '\0'))
            return wrong(reader,
                         "'%s' is no value that is read here: a string, a whole number, true, false or "
                         "an array of strings",
                         word);
        value->kind = TOML_INTEGER;
        value->integer = word[0] == '-' ? -(int64_t)number : (int64_t)number;
    }
    reader->at += length;
    return 0;
}

static int take_value(struct reader *reader, struct toml_value *value)
{
    memset(value, 0, sizeof *value);
    if (*reader->at == '[')
        return take_items(reader, value);
    if (*reader->at != '"' && *reader->at != '\'')
        return take_word(reader, value);
    value->kind = TOML_STRING;
    return take_string(reader, &value->text);
}

/* Reads a name and puts no NUL after it: the caller does that once it has looked at what follows. */
static int take_name(struct reader *reader, char **out_name, char **out_end)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t length = strspn(reader->at, letters);
    int code = 0;

    if ((*reader->at == '"' || *reader->at == '\'') && reader->at[1] != reader->at[0]) {
        code = take_string(reader, out_name);
        *out_end = NULL;
    } else if (length > 0) {
        *out_name = reader->at;
        reader->at += length;
        *out_end = reader->at;
    } else {
        code = wrong(reader, "expected a name and not '%.10s'", reader->at);
    }
    pass_blanks(reader);
    if (code == 0 && *reader->at == '.')
        code = wrong(reader, "names with dots are not read here; write a table in brackets");
    return code;
}

static int remember(struct reader *reader, const char *name, const char *what, const char **names,
                    size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(names[i], name) == 0)
            return wrong(reader, "the %s '%.60s' is there twice; remove one", what, name);
    }
    if (*count == TOML_KEYS_MAX)
        return wrong(reader, "there are more than %d names; remove some", TOML_KEYS_MAX);
    names[(*count)++] = name;
    return 0;
}

static int read_table(struct reader *reader)
{
    char *name = NULL, *end = NULL;
    int code;

    reader->at++;
    if (*reader->at == '[')
        return wrong(reader, "arrays of tables are not read here; write a table in single brackets");
    pass_blanks(reader);
    code = take_name(reader, &name, &end);
    if (code < 0 || name == NULL)
        return code;
    if (*reader->at != ']')
        return wrong(reader, "expected ']' behind the name of a table");
    reader->at++;
    if (end != NULL)
        *end = '\0';
    code = remember(reader, name, "table", reader->tables, &reader->table_count);
    reader->table = name;
    reader->key_count = 0;
    return code < 0
               ? code
               : reader->taker->take(reader->taker->data, &reader->place, name, NULL, NULL, reader->error);
}

static int read_key(struct reader *reader)
{
    struct toml_place place = reader->place;
    struct toml_value value;
    char *name = NULL, *end = NULL;
    int code = take_name(reader, &name, &end);

    if (code < 0 || name == NULL)
        return code;
    if (*reader->at != '=')
        return wrong(reader, "expected '=' behind the name of a key");
    reader->at++;
    if (end != NULL)
        *end = '\0';
    pass_blanks(reader);
    code = remember(reader, name, "key", reader->keys, &reader->key_count);
    if (code == 0)
        code = take_value(reader, &value);
    return code < 0
               ? code
               : reader->taker->take(reader->taker->data, &place, reader->table, name, &value, reader->error);
}

int toml_read(const char *file, char *text, const struct toml_taker *taker, struct fly_error *out_error)
{
    struct reader reader = {
        .at = text, .place = {.file = file, .line = 1}, .taker = taker, .error = out_error, .table = ""};
    int code = pass_space(&reader);

    while (code == 0 && *reader.at != '\0') {
        code = *reader.at == '[' ? read_table(&reader) : read_key(&reader);
        if (code == 0)
            code = end_line(&reader);
        if (code == 0)
            code = pass_space(&reader);
    }
    return code;
}
