/* SPDX-License-Identifier: Apache-2.0 */
/* What members of each kind refuse, and how two structs differ. */
#include "test.h"

#include <math.h>

#include "base/buffer.h"
#include "job/core/shapes.h"
#include "shape_kinds.h"

static void test_one_member(void **state)
{
    const struct job_epoch epoch = {.attempt = 1, .epoch = 7, .reference_per_kwh = NAN};
    json_t *object = json_loads("{\"later\":1,\"epoch\":2,\"metric\":3}", 0, NULL);
    char *text;

    (void)state;
    assert_int_equal(shape_write_member(&shape_epoch, "epoch", &epoch, object, NULL), 0);
    text = json_dumps(object, JSON_COMPACT);
    assert_string_equal(text, "{\"later\":1,\"epoch\":7,\"metric\":3}");
    free(text);
    json_decref(object);
}

/* Where in lists of lists something is wrong; and what null is. */
static void test_kinds(void **state)
{
#define KINDS(rest) \
    "{\"index\":1,\"from\":null,\"mean\":null,\"any\":0,\"object\":{\"a\":\"text\"},\"digits\":null," rest "}"
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {KINDS("\"best\":[1,null],\"pairs\":[[2,3.5]],\"host\":null,\"newer\":1"), NULL},
        {KINDS("\"best\":{},\"pairs\":[]"), "member 'best': expected a list of limit_w, time_s"},
        {KINDS("\"best\":[1],\"pairs\":[]"), "member 'best': expected a list of 2 values, not of 1"},
        {KINDS("\"best\":[1,1],\"pairs\":[[1,1],3]"),
         "member 'pairs[1]': expected a list of limit_w, time_s"},
        {KINDS("\"best\":[1,1],\"pairs\":[[1,1],[1,-1]]"),
         "member 'pairs[1][1]': expected a number from 0, or null"},
        {KINDS("\"best\":[1,1],\"pairs\":{}"), "member 'pairs': expected a list of lists"},
        {"{\"index\":100}", "member 'index': expected a whole number from 0 to 99"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fly_error error = {.text = ""};
        struct kinds kinds = {.digits = 7};
        json_t *json = json_loads(rows[i].text, 0, NULL);
        int code = shape_read(&shape_kinds, json, SHAPE_BORROWING, NULL, &kinds, &error);

        assert_int_equal(code, rows[i].expected == NULL ? 0 : FLY_EDATA);
        assert_string_equal(error.text, rows[i].expected == NULL ? "" : rows[i].expected);
        if (code == 0) {
            assert_true(kinds.from == 0 && isnan(kinds.mean) && !kinds.numbered && kinds.pair_count == 1);
            assert_ptr_equal(kinds.object, json_object_get(json, "object")); /* borrowed */
            assert_string_equal(kinds.host, "");
            check_double(kinds.pairs[0].time_s, 3.5);
        }
        json_decref(json);
    }
#undef KINDS
}

static void note_difference(void *context, const char *name, const json_t *before, const json_t *now)
{
    struct buffer *text = context;

    buffer_printf(text, "%s%s%s ", before == NULL ? "+" : "", name, now == NULL ? "-" : "");
}

static void test_differences(void **state)
{
    struct job_epoch before = {.attempt = 1, .epoch = 1, .reference_per_kwh = 230.5}, now = before;
    struct buffer text;

    (void)state;
    buffer_init(&text, 1000);
    assert_int_equal(shape_differences(&shape_epoch, &before, &now, note_difference, &text, NULL), 0);
    assert_string_equal(text.data, "");
    now = (struct job_epoch){.attempt = 1, .epoch = 2, .reference_per_kwh = NAN, .afterwards = true};
    assert_int_equal(shape_differences(&shape_epoch, &before, &now, note_difference, &text, NULL), 0);
    assert_string_equal(text.data, "epoch reference_per_kwh- +afterwards ");
    buffer_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_differences),
                                       cmocka_unit_test(test_one_member)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
