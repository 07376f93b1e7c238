/* SPDX-License-Identifier: Apache-2.0 */
/* What others wrote: members that need not fit, of any name, in several forms; faults in parts; styles of
 * text. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "shapes/shape_rows.h"

enum { ARENA_MAX = 1 << 20, REST_MAX = 3, NOTHING = -1 };

/* A value, or a list of a word and a code. */
struct said {
    uint32_t state;
    int code;
    int64_t value;
};
static const char *const states[] = {"ok", "denied"};
static const struct shape_field said_rows[] = {
    {SHAPE_AT(said, state), SHAPE_IS_WORD(states, 2), .about = "of it"},
    {SHAPE_AT(said, code), .kind = SHAPE_I32, .least = (uint64_t)-9, .most = 9, .about = "of the driver"},
};
static const struct shape_field said_value = {SHAPE_AT(said, value), .kind = SHAPE_I64,
                                              .least = (uint64_t)INT64_MIN, .most = INT64_MAX,
                                              .expected = "any whole number"};
static const struct shape shape_said = {.name = "Said",
                                        .about = "An answer",
                                        SHAPE_OF(said, said_rows),
                                        .as_list = true,
                                        .longer = true,
                                        .alone = &said_value};

struct entry {
    const char *name;
    struct said said;
};
static const struct shape_field entry_rows[] = {
    {SHAPE_AT(entry, name), SHAPE_IS_TEXT(8)},
    {SHAPE_AT(entry, said), SHAPE_IS_STRUCT(&shape_said), .expected = "a number, or a state and a code"},
};
static const struct shape shape_entry = {SHAPE_OF(entry, entry_rows)};

struct foreign {
    int minor;
    double share;
    char note[8];
    const char *host, *kind;
    uint32_t id;
    const char *const *groups;
    size_t group_count;
    struct said *gpus;
    size_t gpu_count;
    struct entry *errors;
    size_t error_count;
    struct entry rest[REST_MAX];
    size_t rest_count;
};
static const struct foreign usual = {.minor = NOTHING, .id = 77};
static const struct shape_field foreign_rows[] = {
    {SHAPE_AT(foreign, minor), .kind = SHAPE_I32, .most = INT32_MAX, .need = SHAPE_OPTIONAL,
     .null = SHAPE_AS_DEFAULT, .about = "null: not known"},
    {SHAPE_AT(foreign, share), SHAPE_IS_NUMBER(SHAPE_FROM_0), .highest = 100.0, .null = SHAPE_AS_DEFAULT,
     .need = SHAPE_OPTIONAL, .about = "of a whole"},
    {SHAPE_AT(foreign, note), .kind = SHAPE_CHARS, .longest = 7, .null = SHAPE_AS_DEFAULT, .any_bytes = true,
     .need = SHAPE_OPTIONAL, .about = "of anybody's"},
    {SHAPE_AT(foreign, host), SHAPE_IS_TEXT(9), .loose = true, .need = SHAPE_OPTIONAL, .about = "if any"},
    {SHAPE_AT(foreign, kind), SHAPE_IS_TEXT(9), .least = 1, .need = SHAPE_SPARING, .about = "never empty"},
    {SHAPE_AT(foreign, id), SHAPE_IS_U32(1, 99), .loose = true, .need = SHAPE_OPTIONAL, .about = "a number"},
    {SHAPE_AT(foreign, groups), .kind = SHAPE_TEXTS, .longest = 4, .loose = true,
     .beside = offsetof(struct foreign, group_count), .need = SHAPE_OPTIONAL, .about = "words"},
    {SHAPE_AT(foreign, gpus), SHAPE_IS_STRUCTS(&shape_said, 4, foreign, gpu_count), .need = SHAPE_OPTIONAL,
     .about = "their answers"},
    {SHAPE_AT(foreign, errors), .kind = SHAPE_MAP, .shape = &shape_entry, .longest = 2,
     .beside = offsetof(struct foreign, error_count), .need = SHAPE_OPTIONAL, .about = "by name"},
    {SHAPE_AT(foreign, rest), .kind = SHAPE_REST, .shape = &shape_entry, .longest = REST_MAX,
     .beside = offsetof(struct foreign, rest_count), .about = "the others"},
};
static const struct shape shape_foreign = {
    .name = "Foreign", .about = "Of others", SHAPE_OF(foreign, foreign_rows), .defaults = &usual};

/* A list without a name, whose entry may stand for it. */
struct whole {
    struct said *said;
    size_t count;
};
static const struct shape_field whole_rows[] = {{.name = "",
                                                 .kind = SHAPE_STRUCTS,
                                                 .shape = &shape_foreign,
                                                 .longest = 3,
                                                 .or_one = true,
                                                 .at = offsetof(struct whole, said),
                                                 .beside = offsetof(struct whole, count)}};
static const struct shape shape_whole = {SHAPE_OF(whole, whole_rows), .bare = true};

/* ---- there and back ---- */

static void test_forms(void **state)
{
#define HEAD "{\"minor\":null,\"share\":null,\"note\":null,\"host\":\"\",\"id\":77,"
#define LISTS "\"gpus\":[],\"errors\":{}}"
    /* What is read, and how that is written. */
    static const char *const rows[][2] = {
        {"{}", HEAD "\"groups\":[]," LISTS},
        {"{\"minor\":null,\"share\":null,\"note\":null}", HEAD "\"groups\":[]," LISTS},
        {"{\"minor\":3,\"share\":12.5,\"note\":\"x\"}",
         "{\"minor\":3,\"share\":12.5,\"note\":\"x\",\"host\":\"\",\"id\":77,\"groups\":[]," LISTS},
        {"{\"host\":5,\"id\":\"x\",\"groups\":[1,\"a\",null]}", HEAD "\"groups\":[\"\",\"a\",\"\"]," LISTS},
        {"{\"id\":100,\"host\":\"too long a name\"}", HEAD "\"groups\":[]," LISTS},
        {"{\"gpus\":[-5,[\"denied\",-9]]}",
         HEAD "\"groups\":[],\"gpus\":[-5,[\"denied\",-9]],\"errors\":{}}"},
        {"{\"errors\":{\"b\":1,\"a\":[\"ok\",1]}}",
         HEAD "\"groups\":[],\"gpus\":[],\"errors\":{\"b\":1,\"a\":[\"ok\",1]}}"},
        {"{\"later\":4,\"kind\":\"k\",\"more\":[\"ok\",1]}",
         "{\"minor\":null,\"share\":null,\"note\":null,\"host\":\"\",\"kind\":\"k\",\"id\":77,\"groups\":[],"
         "\"gpus\":[],\"errors\":{},\"later\":4,\"more\":[\"ok\",1]}"},
        {"{\"gpus\":[[\"denied\",1,\"later\"]]}",
         HEAD "\"groups\":[],\"gpus\":[[\"denied\",1]],\"errors\":{}}"},
        {"{\"minor\":1,\"minor\":null}", HEAD "\"groups\":[]," LISTS},
    };
    struct arena arena;

    (void)state;
    arena_init(&arena, ARENA_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct foreign foreign;
        struct fly_error error = {.text = ""};
        char *text = NULL;

        if (shape_read_text(&shape_foreign, rows[i][0], strlen(rows[i][0]), SHAPE_FOREIGN, &arena, &foreign,
                            NULL, &error) < 0 ||
            shape_write_text(&shape_foreign, &foreign, &text, &error) < 0)
            fail_msg("%s: %s", rows[i][0], error.text);
        assert_string_equal(text, rows[i][1]);
        free(text);
    }
    arena_deinit(&arena);
#undef HEAD
#undef LISTS
}

/* ---- faults ---- */

static void test_faults(void **state)
{
    static const struct {
        const char *text;
        size_t line, column;
        const char *path, *expected, *found;
    } rows[] = {
        {"{\"minor\":1,\n\"share\":}", 2, 9, "", "unexpected token near '}'", ""},
        {"{\"minor\":1,\n\"minor\":1}", 2, 7, "", "duplicate object key near '\"minor\"'", ""},
        {"[[]]", 1, 0, "[0]", "an object", "[]"},
        {"3", 1, 1, "", "'[' or '{' expected near '3'", ""},
        {"[{},\n{\"minor\":-2}]", 2, 0, "[1].minor", "a whole number of at least 0, or null", "-2"},
        {"{\"share\":100.5}", 1, 0, "share", "a number from 0 to 100, or null", "100.5"},
        {"{\n\"kind\":\"\"}", 2, 0, "kind", "a text that is not empty", "\"\""},
        {"{\"kind\":\"far too long\"}", 1, 0, "kind", "at most 9 bytes", "\"far too long\""},
        {"{\"groups\":{}}", 1, 0, "groups", "a list of texts", "{}"},
        {"{\"groups\":[1,2,3,4,5]}", 1, 0, "groups", "at most 4 entries", "[1,2,3,4,5]"},
        {"{\"gpus\":[1,\n[\"denied\",\n10]]}", 3, 0, "gpus[1][1]", "a whole number from -9 to 9", "10"},
        {"{\"gpus\":[[\"ok\"]]}", 1, 0, "gpus[0]", "a list of state, code; or any whole number", "[\"ok\"]"},
        {"{\"gpus\":[\"x\"]}", 1, 0, "gpus[0]", "a list of state, code; or any whole number", "\"x\""},
        {"{\"errors\":{\"0\":\"x\"}}", 1, 0, "errors.0", "a number, or a state and a code", "\"x\""},
        {"{\"errors\":{\"0\":1,\"1\":1,\"2\":1}}", 1, 0, "errors", "at most 2 entries",
         "{\"0\":1,\"1\":1,\"2\":1}"},
        {"{\n\"later\":\ntrue}", 3, 0, "later", "a number, or a state and a code", "true"},
        {"{\"a name of 9\":1}", 1, 0, "a name of 9", "at most 8 bytes", "1"},
        {"{\"a\":1,\"b\":1,\"c\":1,\"d\":1}", 1, 0, "", "at most 3 entries",
         "{\"a\":1,\"b\":1,\"c\":1,\"d\":1}"},
    };
    struct arena arena;

    (void)state;
    arena_init(&arena, ARENA_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct whole whole;
        struct shape_fault fault;
        struct fly_error error = {.text = ""};
        int code = shape_read_text(&shape_whole, rows[i].text, strlen(rows[i].text), SHAPE_LENIENT, &arena,
                                   &whole, &fault, &error);

        if (code == 0)
            fail_msg("%s was read", rows[i].text);
        assert_string_equal(fault.path, rows[i].path);
        assert_string_equal(fault.expected, rows[i].expected);
        assert_string_equal(fault.found, rows[i].found);
        assert_int_equal(fault.line, rows[i].line);
        assert_int_equal(fault.column, rows[i].column);
        assert_int_equal(error.code, code);
    }
    arena_deinit(&arena);
}

static void test_missing(void **state)
{
    static const char lacking[] = "{\"name\":\"x\"}", more[] = "{\"name\":\"x\",\"said\":1,\"saib\":2}";
    struct entry entry;
    struct shape_fault fault;
    struct fly_error error;
    struct arena arena;

    (void)state;
    arena_init(&arena, ARENA_MAX);
    assert_int_equal(
        shape_read_text(&shape_entry, lacking, strlen(lacking), SHAPE_STRICT, &arena, &entry, &fault, &error),
        FLY_EDATA);
    assert_string_equal(error.text, "member 'said' is missing; add it");
    assert_string_equal(fault.expected, "a number, or a state and a code");
    assert_string_equal(fault.found, "nothing");
    assert_int_equal(
        shape_read_text(&shape_entry, more, strlen(more), SHAPE_STRICT, &arena, &entry, &fault, &error),
        FLY_EDATA);
    assert_string_equal(fault.path, "saib");
    assert_string_equal(fault.found, "2");
    arena_deinit(&arena);
}

/* ---- styles ---- */

static void test_styles(void **state)
{
    static const struct {
        enum shape_style style;
        const char *text;
    } rows[] = {
        {SHAPE_COMPACT, "{\"minor\":null,\"share\":0.10000000000000001,\"note\":\"\xc3\xa4\"}"},
        {SHAPE_NINE_DIGITS, "{\"minor\":null,\"share\":0.1,\"note\":\"\xc3\xa4\"}"},
        {SHAPE_SPARE, "{\"minor\":null,\"share\":0.1,\"note\":\"\xc3\xa4\"}"},
        {SHAPE_SPARE_ASCII, "{\"minor\":null,\"share\":0.1,\"note\":\"\\u00E4\"}"},
        {SHAPE_INDENTED,
         "{\n  \"minor\": null,\n  \"share\": 0.10000000000000001,\n  \"note\": \"\xc3\xa4\"\n}"},
    };
    static const struct shape shape = {
        .size = sizeof(struct foreign), .fields = foreign_rows, .count = 3, .defaults = &usual};
    struct foreign foreign = {.minor = NOTHING, .share = 0.1, .note = "\xc3\xa4"};
    struct buffer text;

    (void)state;
    buffer_init(&text, 1000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        buffer_clear(&text);
        assert_int_equal(shape_put(&shape, &foreign, rows[i].style, &text, NULL), 0);
        assert_string_equal(text.data, rows[i].text);
    }
    foreign = (struct foreign){.minor = 2, .share = 50.0, .note = "\xff\xc3x"};
    buffer_clear(&text);
    assert_int_equal(shape_put(&shape, &foreign, SHAPE_SPARE, &text, NULL), 0);
    assert_string_equal(text.data, "{\"minor\":2,\"share\":50,\"note\":\"??x\"}");
    foreign.share = 101.0;
    assert_int_equal(shape_put(&shape, &foreign, SHAPE_SPARE, &text, NULL), FLY_EDATA);
    buffer_deinit(&text);
}

static void test_schema(void **state)
{
    json_t *schema = shape_schema(&shape_foreign, true), *said = shape_schema(&shape_said, true);

    (void)state;
    assert_non_null(json_object_get(json_object_get(schema, "additionalProperties"), "$ref"));
    assert_int_equal(json_array_size(json_object_get(said, "anyOf")), 2);
    json_decref(schema);
    json_decref(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),  cmocka_unit_test(test_faults), cmocka_unit_test(test_missing),
        cmocka_unit_test(test_styles), cmocka_unit_test(test_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
