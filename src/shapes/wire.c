/* SPDX-License-Identifier: Apache-2.0 */
/* What readers and writers of shapes share: paths, ranges, and the words of errors. */
#include "shapes/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"

enum { NAME_SHOWN = 60, EXPECTED_MAX = 256 };

static const struct wire_bounds bounds[] = {
    [WIRE_ANY] = {"a number", -INFINITY, INFINITY, false},
    [WIRE_FROM_0] = {"a number from 0", 0.0, INFINITY, false},
    [WIRE_ABOVE_0] = {"a number above 0", 0.0, INFINITY, true},
    [WIRE_FROM_0_TO_1] = {"a number from 0 to 1", 0.0, 1.0, false},
    [WIRE_FROM_1] = {"a number from 1", 1.0, INFINITY, false},
};

const struct wire_bounds *wire_bounds_of(enum wire_range range)
{
    return &bounds[range];
}

bool wire_in_range(enum wire_range range, double value)
{
    const struct wire_bounds *within = &bounds[range];

    return isfinite(value) && value <= within->most &&
           (within->above ? value > within->least : value >= within->least);
}

double wire_of_null(enum wire_null null)
{
    return null == WIRE_UNKNOWN ? NAN : null == WIRE_ENDLESS ? INFINITY : 0.0;
}

/* ---- paths ---- */

size_t wire_path_enter(struct wire_path *path, const char *name)
{
    size_t before = path->length, room = sizeof path->text - before;
    int written = snprintf(path->text + before, room, "%s%.*s", before > 0 ? "." : "", (int)NAME_SHOWN, name);

    path->length = (size_t)written < room ? before + (size_t)written : sizeof path->text - 1;
    for (char *at = path->text + before; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    }
    return before;
}

size_t wire_path_enter_entry(struct wire_path *path, size_t index)
{
    size_t before = path->length, room = sizeof path->text - before;
    int written = snprintf(path->text + before, room, "[%zu]", index);

    path->length = (size_t)written < room ? before + (size_t)written : sizeof path->text - 1;
    return before;
}

void wire_path_leave(struct wire_path *path, size_t length)
{
    path->length = length;
    path->text[length] = '\0';
}

/* ---- errors ---- */

static void expect_whole(struct buffer *words, const struct wire_field *field)
{
    uint64_t highest = field->kind == WIRE_U64 || field->kind == WIRE_I64 ? INT64_MAX : UINT32_MAX;

    if (field->most >= highest)
        buffer_printf(words, "a whole number of at least %" PRIu64, field->least);
    else
        buffer_printf(words, "a whole number from %" PRIu64 " to %" PRIu64, field->least, field->most);
}

static void expect_word(struct buffer *words, const struct wire_field *field)
{
    buffer_puts(words, "one of");
    for (size_t i = 0; i < field->word_count; i++)
        buffer_printf(words, "%s '%s'", i > 0 ? "," : "", field->words[i]);
}

static void expect(struct buffer *words, const struct wire_field *field, bool entry)
{
    switch (field->kind) {
    case WIRE_U32S:
        if (!entry)
            buffer_puts(words, "a list, each entry ");
        expect_whole(words, field);
        break;
    case WIRE_U32:
    case WIRE_U64:
    case WIRE_I64:
        expect_whole(words, field);
        break;
    case WIRE_NUMBERS:
    case WIRE_NUMBER:
        buffer_printf(words, "%s%s", field->kind == WIRE_NUMBERS && !entry ? "a list, each entry " : "",
                      bounds[field->range].words);
        break;
    case WIRE_BOOL:
        buffer_puts(words, "true or false");
        break;
    case WIRE_WORD:
        expect_word(words, field);
        break;
    case WIRE_TEXT:
    case WIRE_CHARS:
        buffer_puts(words, "a text");
        break;
    case WIRE_OBJECT:
    case WIRE_STRUCT:
        buffer_puts(words, "an object");
        break;
    case WIRE_STRUCTS:
    case WIRE_STRUCTS_HERE:
        buffer_puts(words, entry ? "an object" : "a list of objects");
        break;
    }
    if (field->null != WIRE_NOT_NULL && !entry)
        buffer_puts(words, ", or null");
}

int wire_refuse(const struct wire_path *path, const struct wire_field *field, bool entry,
                struct fly_error *out_error)
{
    struct buffer words;

    buffer_init(&words, EXPECTED_MAX);
    expect(&words, field, entry);
    error_set(out_error, FLY_EDATA, "member '%s': expected %s", path->text, words.data);
    buffer_deinit(&words);
    return FLY_EDATA;
}

int wire_too_long(const struct wire_path *path, size_t longest, const char *what, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ELIMIT, "member '%s': longer than %zu %s; shorten it", path->text,
                     longest, what);
}

int wire_check_text(const struct wire_path *path, const struct wire_field *field, const char *text,
                    size_t length, struct fly_error *out_error)
{
    if (strlen(text) != length)
        return error_set(out_error, FLY_EDATA, "member '%s': expected a text without the character 0",
                         path->text);
    if (length > field->longest)
        return wire_too_long(path, field->longest, "bytes", out_error);
    for (size_t i = 0; i < length && !field->free_text; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return error_set(out_error, FLY_EDATA, "member '%s' has a control character; leave it out",
                             path->text);
    }
    return 0;
}
