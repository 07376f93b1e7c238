/* SPDX-License-Identifier: Apache-2.0 */
/* What readers and writers of shapes share: paths, ranges, and the words of errors. */
#include "shapes/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"

enum { NAME_SHOWN = 60, EXPECTED_MAX = 256 };

static const struct shape_bounds bounds[] = {
    [SHAPE_ANY] = {"a number", -INFINITY, INFINITY, false},
    [SHAPE_FROM_0] = {"a number from 0", 0.0, INFINITY, false},
    [SHAPE_ABOVE_0] = {"a number above 0", 0.0, INFINITY, true},
    [SHAPE_FROM_0_TO_1] = {"a number from 0 to 1", 0.0, 1.0, false},
    [SHAPE_FROM_1] = {"a number from 1", 1.0, INFINITY, false},
};

const struct shape_bounds *shape_bounds_of(enum shape_range range)
{
    return &bounds[range];
}

bool shape_in_range(enum shape_range range, double value)
{
    const struct shape_bounds *within = &bounds[range];

    return isfinite(value) && value <= within->most &&
           (within->above ? value > within->least : value >= within->least);
}

double shape_of_null(enum shape_null null)
{
    return null == SHAPE_UNKNOWN ? NAN : null == SHAPE_ENDLESS ? INFINITY : 0.0;
}

/* ---- paths ---- */

size_t shape_path_enter(struct shape_path *path, const char *name)
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

size_t shape_path_enter_entry(struct shape_path *path, size_t index)
{
    size_t before = path->length, room = sizeof path->text - before;
    int written = snprintf(path->text + before, room, "[%zu]", index);

    path->length = (size_t)written < room ? before + (size_t)written : sizeof path->text - 1;
    return before;
}

void shape_path_leave(struct shape_path *path, size_t length)
{
    path->length = length;
    path->text[length] = '\0';
}

/* ---- errors ---- */

static void expect_whole(struct buffer *words, const struct shape_field *field)
{
    uint64_t highest = field->kind == SHAPE_U64 || field->kind == SHAPE_I64 ? INT64_MAX : UINT32_MAX;

    if (field->most >= highest)
        buffer_printf(words, "a whole number of at least %" PRIu64, field->least);
    else
        buffer_printf(words, "a whole number from %" PRIu64 " to %" PRIu64, field->least, field->most);
}

static void expect_word(struct buffer *words, const struct shape_field *field)
{
    buffer_puts(words, "one of");
    for (size_t i = 0; i < field->word_count; i++)
        buffer_printf(words, "%s '%s'", i > 0 ? "," : "", field->words[i]);
}

static void expect(struct buffer *words, const struct shape_field *field, bool entry)
{
    switch (field->kind) {
    case SHAPE_U32S:
        if (!entry)
            buffer_puts(words, "a list, each entry ");
        expect_whole(words, field);
        break;
    case SHAPE_U32:
    case SHAPE_U64:
    case SHAPE_I64:
        expect_whole(words, field);
        break;
    case SHAPE_NUMBERS:
    case SHAPE_NUMBER:
        buffer_printf(words, "%s%s", field->kind == SHAPE_NUMBERS && !entry ? "a list, each entry " : "",
                      bounds[field->range].words);
        break;
    case SHAPE_BOOL:
        buffer_puts(words, "true or false");
        break;
    case SHAPE_WORD:
        expect_word(words, field);
        break;
    case SHAPE_TEXT:
    case SHAPE_CHARS:
        buffer_puts(words, "a text");
        break;
    case SHAPE_OBJECT:
    case SHAPE_STRUCT:
        buffer_puts(words, "an object");
        break;
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        buffer_puts(words, entry ? "an object" : "a list of objects");
        break;
    }
    if (field->null != SHAPE_NOT_NULL && !entry)
        buffer_puts(words, ", or null");
}

int shape_refuse(const struct shape_path *path, const struct shape_field *field, bool entry,
                 struct fly_error *out_error)
{
    struct buffer words;

    buffer_init(&words, EXPECTED_MAX);
    expect(&words, field, entry);
    error_set(out_error, FLY_EDATA, "member '%s': expected %s", path->text, words.data);
    buffer_deinit(&words);
    return FLY_EDATA;
}

int shape_too_long(const struct shape_path *path, size_t longest, const char *what,
                   struct fly_error *out_error)
{
    return error_set(out_error, FLY_ELIMIT, "member '%s': longer than %zu %s; shorten it", path->text,
                     longest, what);
}

int shape_check_text(const struct shape_path *path, const struct shape_field *field, const char *text,
                     size_t length, struct fly_error *out_error)
{
    if (strlen(text) != length)
        return error_set(out_error, FLY_EDATA, "member '%s': expected a text without the character 0",
                         path->text);
    if (length > field->longest)
        return shape_too_long(path, field->longest, "bytes", out_error);
    for (size_t i = 0; i < length && !field->free_text; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return error_set(out_error, FLY_EDATA, "member '%s' has a control character; leave it out",
                             path->text);
    }
    return 0;
}
