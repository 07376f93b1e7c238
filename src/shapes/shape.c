/* SPDX-License-Identifier: Apache-2.0 */
/* What reading and writing by shapes share: paths, ranges, and the wording of errors. */
#include "shapes/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/harmless.h"
#include "shapes/json_words.h"

enum { NAME_SHOWN = 60, PATH_BYTES_MAX = 4096, TOLD_MAX = 320, FOUND_BYTES_MAX = 1 << 16 };

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

bool shape_number_fits(const struct shape_field *field, double value)
{
    return shape_in_range(field->range, value) && !(field->highest > 0.0 && value > field->highest);
}

bool shape_is_form(const struct shape *shape, const json_t *json)
{
    return shape->bare || (shape->as_list ? json_is_array(json) : json_is_object(json));
}

double shape_of_null(enum shape_null null)
{
    return null == SHAPE_UNKNOWN || null == SHAPE_NOT_FINITE ? NAN : null == SHAPE_ENDLESS ? INFINITY : 0.0;
}

/* ---- paths ---- */

static void put_path(struct buffer *text, const struct shape_path *path)
{
    if (path->outer != NULL)
        put_path(text, path->outer);
    if (path->name == NULL)
        buffer_printf(text, "[%zu]", path->index);
    else
        buffer_printf(text, "%s%.*s", text->length > 0 ? "." : "", (int)NAME_SHOWN, path->name);
}

/* Writes "hardware.limits_w[3]"; names may come from strangers. */
static void tell_path(const struct shape_path *path, char text[SHAPE_PATH_SHOWN])
{
    struct buffer whole;

    buffer_init(&whole, PATH_BYTES_MAX);
    if (path != NULL)
        put_path(&whole, path);
    snprintf(text, SHAPE_PATH_SHOWN, "%s", whole.data != NULL ? whole.data : "");
    buffer_deinit(&whole);
    harmless_hide_controls(text);
}

const struct shape *shape_inside(const struct shape_field *field)
{
    switch (field->kind) {
    case SHAPE_STRUCT:
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
    case SHAPE_MAP:
    case SHAPE_REST:
    case SHAPE_MERGED:
    case SHAPE_POINTED:
        return field->shape;
    default:
        return NULL;
    }
}

/* ---- errors ---- */

static void expect_whole(struct buffer *words, const struct shape_field *field)
{
    uint64_t highest = field->kind == SHAPE_U32 || field->kind == SHAPE_U32S ? UINT32_MAX
                       : field->kind == SHAPE_I32                            ? INT32_MAX
                                                                             : INT64_MAX;

    if (field->most >= highest)
        buffer_printf(words, "a whole number of at least %" PRId64, (int64_t)field->least);
    else
        buffer_printf(words, "a whole number from %" PRId64 " to %" PRIu64, (int64_t)field->least,
                      field->most);
}

static void expect_word(struct buffer *words, const struct shape_field *field)
{
    buffer_puts(words, "one of");
    for (size_t i = 0; i < field->word_count; i++)
        buffer_printf(words, "%s '%s'", i > 0 ? "," : "", field->words[i]);
}

static void expect_number(struct buffer *words, const struct shape_field *field)
{
    buffer_puts(words, bounds[field->range].words);
    if (field->highest > 0.0)
        buffer_printf(words,
                      field->range == SHAPE_FROM_0 || field->range == SHAPE_FROM_1 ? " to %g" : " up to %g",
                      field->highest);
}

static void expect(struct buffer *words, const struct shape_field *field, bool entry);

/* Appends "an object", or "a list of limit_w, power_w, time_s". */
static void expect_inside(struct buffer *words, const struct shape *shape)
{
    if (!shape->as_list) {
        buffer_puts(words, "an object");
        return;
    }
    buffer_puts(words, "a list of");
    for (size_t i = 0; i < shape->count; i++)
        buffer_printf(words, "%s %s", i > 0 ? "," : "", shape->fields[i].name);
    if (shape->alone != NULL) {
        buffer_puts(words, "; or ");
        expect(words, shape->alone, false);
    }
}

static void expect(struct buffer *words, const struct shape_field *field, bool entry)
{
    if (field->expected != NULL && !entry) {
        buffer_puts(words, field->expected);
        return;
    }
    switch (field->kind) {
    case SHAPE_U32S:
        if (!entry)
            buffer_puts(words, "a list, each entry ");
        expect_whole(words, field);
        break;
    case SHAPE_U32:
    case SHAPE_U64:
    case SHAPE_I32:
    case SHAPE_I64:
    case SHAPE_SIZE:
        expect_whole(words, field);
        break;
    case SHAPE_NUMBERS:
    case SHAPE_NUMBER:
        if (field->kind == SHAPE_NUMBERS && !entry)
            buffer_puts(words, "a list, each entry ");
        expect_number(words, field);
        break;
    case SHAPE_BOOL:
        buffer_puts(words, "true or false");
        break;
    case SHAPE_WORD:
        expect_word(words, field);
        break;
    case SHAPE_TEXT:
    case SHAPE_CHARS:
        buffer_puts(words, field->least > 0 ? "a text that is not empty" : "a text");
        break;
    case SHAPE_TEXTS:
        buffer_puts(words, entry ? "a text" : "a list of texts");
        break;
    case SHAPE_CODED:
        buffer_puts(words, field->coding->expected);
        break;
    case SHAPE_JSON:
    case SHAPE_MERGED:
    case SHAPE_POINTED:
    case SHAPE_MADE:
        buffer_puts(words, "a value");
        break;
    case SHAPE_OBJECT:
    case SHAPE_JSON_OBJECT:
    case SHAPE_MAP:
    case SHAPE_REST:
        buffer_puts(words, "an object");
        break;
    case SHAPE_STRUCT:
        expect_inside(words, field->shape);
        break;
    case SHAPE_STRUCTS:
    case SHAPE_STRUCTS_HERE:
        if (entry)
            expect_inside(words, field->shape);
        else
            buffer_puts(words, field->shape->as_list ? "a list of lists" : "a list of objects");
        break;
    }
    if (field->null != SHAPE_NOT_NULL && !entry)
        buffer_puts(words, ", or null");
}

int shape_complain(const struct shape_path *path, int code, struct fly_error *out_error, const char *rest,
                   ...)
{
    char place[SHAPE_PATH_SHOWN], told[TOLD_MAX];
    va_list arguments;

    va_start(arguments, rest);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    vsnprintf(told, sizeof told, rest, arguments);
    va_end(arguments);
    tell_path(path, place);
    return error_set(out_error, code, "member '%s'%s", place, told);
}

int shape_refuse(const struct shape_path *path, const struct shape_field *field, bool entry,
                 struct fly_error *out_error)
{
    struct buffer words;

    buffer_init(&words, SHAPE_EXPECTED_MAX);
    expect(&words, field, entry);
    shape_complain(path, FLY_EDATA, out_error, ": expected %s", words.data);
    buffer_deinit(&words);
    return FLY_EDATA;
}

int shape_too_long(const struct shape_path *path, size_t longest, const char *what,
                   struct fly_error *out_error)
{
    return shape_complain(path, FLY_ELIMIT, out_error, ": longer than %zu %s; shorten it", longest, what);
}

int shape_check_text(const struct shape_path *path, const struct shape_field *field, const char *text,
                     size_t length, struct fly_error *out_error)
{
    if (strlen(text) != length)
        return shape_complain(path, FLY_EDATA, out_error, ": expected a text without the character 0");
    if (length > field->longest)
        return shape_too_long(path, field->longest, "bytes", out_error);
    if (length < field->least)
        return shape_refuse(path, field, false, out_error);
    for (size_t i = 0; i < length && !field->free_text; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return shape_complain(path, FLY_EDATA, out_error, " has a control character; leave it out");
    }
    return 0;
}

/* ---- faults ---- */

static bool is_text(enum shape_kind kind, bool entry)
{
    return kind == SHAPE_TEXT || kind == SHAPE_CHARS || kind == SHAPE_OBJECT ||
           (kind == SHAPE_TEXTS && entry);
}

void shape_fault_fill(struct shape_fault *fault, const struct shape_path *path,
                      const struct shape_field *field, bool entry, int code, json_t *found)
{
    struct buffer words;

    fault->no_json = false;
    fault->line = fault->column = 0;
    tell_path(path, fault->path);
    buffer_init(&words, SHAPE_EXPECTED_MAX);
    if (code == FLY_ELIMIT && field->expected == NULL)
        buffer_printf(&words, "at most %u %s", field->longest,
                      is_text(field->kind, entry) ? "bytes" : "entries");
    else
        expect(&words, field, entry);
    snprintf(fault->expected, sizeof fault->expected, "%s", words.data != NULL ? words.data : "");
    buffer_deinit(&words);
    buffer_init(&words, FOUND_BYTES_MAX);
    if (found != NULL)
        json_words_put(&words, found);
    snprintf(fault->found, sizeof fault->found, "%s",
             found != NULL && words.data != NULL ? words.data : "nothing");
    buffer_deinit(&words);
}
