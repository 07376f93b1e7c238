/* SPDX-License-Identifier: Apache-2.0 */
/* Tables against golden texts, in all three forms, with what is unavailable. */
#include "cli/kit/table_print.h"
#include "cli_support.h"

static const struct meaning columns[] = {
    {"workload", "workload", MEANING_TEXT, 0, NULL, MEANING_FACT, "Workload that is simulated."},
    {"tries", "tries", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Of a test."},
    {"energy_j", "energy (J)", MEANING_REAL, 1, "J", MEANING_COUNTER, "Of a test."},
    {"note", "note", MEANING_TEXT, 0, NULL, MEANING_FACT, "Of a test."},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static struct table *sample(void)
{
    struct table *table = table_new("flyball.test/1", columns, COLUMN_COUNT);

    table_add_text(table, "shufflenet");
    table_add_integer(table, 12);
    table_add_real(table, 1234567.0 + 1.0 / 3);
    table_add_text(table, "");
    table_add_text(table, "b\xC3\xA9rt,\"x\"");
    table_add_integer(table, -7);
    table_add_unavailable(table, NULL, "no power reading");
    table_add_text(table, "two\nlines");
    table_add_text(table, "n");
    table_add_unavailable(table, "none", "not run");
    table_add_real(table, NAN);
    table_add_unavailable(table, NULL, "no power reading");
    table_member(table, "baseline", json_string("default"));
    return table;
}

static int write_table(const struct table *table, enum table_format format, FILE *stream,
                       struct fly_error *out_error)
{
    struct buffer bytes;
    int result;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    result = table_print(table, format, false, &bytes, out_error);
    if (result == 0)
        result = table_put(bytes.data, bytes.length, stream, "the table", out_error);
    buffer_deinit(&bytes);
    return result;
}

static char *written(const struct table *table, enum table_format format)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct fly_error error;

    if (write_table(table, format, stream, &error) < 0)
        fail_msg("%s", error.text);
    fclose(stream);
    return text;
}

static void check_golden(enum table_format format, const char *expected)
{
    struct table *table = sample();
    char *text = written(table, format);

    assert_string_equal(text, expected);
    free(text);
    table_free(table);
}

static void test_text(void **state)
{
    (void)state;
    check_golden(TABLE_FORMAT_TABLE, "workload       tries       energy (J)  note\n"
                                     "shufflenet        12        1234567.3  \n"
                                     "b\xC3\xA9rt,\"x\"          -7  unavailable [1]  two?lines\n"
                                     "n           none [2]  unavailable [3]  unavailable [1]\n"
                                     "\n"
                                     "[1] no power reading\n"
                                     "[2] not run\n"
                                     "[3] is not a number\n");
}

static void test_csv(void **state)
{
    (void)state;
    check_golden(TABLE_FORMAT_CSV, "schema,workload,tries,energy_j,note\n"
                                   "flyball.test/1,shufflenet,12,1234567.3333333333,\"\"\n"
                                   "flyball.test/1,\"b\xC3\xA9rt,\"\"x\"\"\",-7,,\"two\nlines\"\n"
                                   "flyball.test/1,n,,,\n");
}

static void test_json(void **state)
{
    (void)state;
    check_golden(TABLE_FORMAT_JSON, "{\n"
                                    "  \"schema\": \"flyball.test/1\",\n"
                                    "  \"baseline\": \"default\",\n"
                                    "  \"rows\": [\n"
                                    "    {\n"
                                    "      \"workload\": \"shufflenet\",\n"
                                    "      \"tries\": 12,\n"
                                    "      \"energy_j\": 1234567.3333333333,\n"
                                    "      \"note\": \"\"\n"
                                    "    },\n"
                                    "    {\n"
                                    "      \"workload\": \"b\xC3\xA9rt,\\\"x\\\"\",\n"
                                    "      \"tries\": -7,\n"
                                    "      \"energy_j\": null,\n"
                                    "      \"energy_j_unavailable\": \"no power reading\",\n"
                                    "      \"note\": \"two\\nlines\"\n"
                                    "    },\n"
                                    "    {\n"
                                    "      \"workload\": \"n\",\n"
                                    "      \"tries\": null,\n"
                                    "      \"tries_unavailable\": \"not run\",\n"
                                    "      \"energy_j\": null,\n"
                                    "      \"energy_j_unavailable\": \"is not a number\",\n"
                                    "      \"note\": null,\n"
                                    "      \"note_unavailable\": \"no power reading\"\n"
                                    "    }\n"
                                    "  ]\n"
                                    "}\n");
}

/* What a program reads is the same double that went in, in both forms. */
static void test_full_precision(void **state)
{
    static const double values[] = {0.1,    1.0 / 3, 1e-300, 1.7976931348623157e308, 123456789.12345679,
                                    5e-324, -0.0};
    static const struct meaning real[] = {{"x", "x", MEANING_REAL, 1, NULL, MEANING_GAUGE, "Of a test."}};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct table *table = table_new("flyball.test/1", real, 1);
        char *csv;
        char *json;
        json_t *document;
        json_t *row;

        table_add_real(table, values[i]);
        csv = written(table, TABLE_FORMAT_CSV);
        json = written(table, TABLE_FORMAT_JSON);
        document = json_loads(json, 0, NULL);
        assert_true(strtod(strrchr(csv, ',') + 1, NULL) == values[i]);
        row = json_array_get(json_object_get(document, "rows"), 0);
        assert_true(json_real_value(json_object_get(row, "x")) == values[i]);
        json_decref(document);
        free(csv);
        free(json);
        table_free(table);
    }
}

static void test_text_that_is_not_utf8(void **state)
{
    struct table *table = table_new("flyball.test/1", columns, 1);
    char *json;

    (void)state;
    table_add_text(table, "a\xFF"
                          "b");
    json = written(table, TABLE_FORMAT_JSON);
    assert_contains("json", json, "\"a?b\"");
    free(json);
    table_free(table);
}

static void test_empty(void **state)
{
    struct table *table = table_new("flyball.test/1", columns, COLUMN_COUNT);
    char *text = written(table, TABLE_FORMAT_CSV);

    (void)state;
    assert_string_equal(text, "schema,workload,tries,energy_j,note\n");
    assert_int_equal(table_row_count(table), 0);
    free(text);
    table_free(table);
}

static void test_defects(void **state)
{
    struct table *table = table_new("flyball.test/1", columns, COLUMN_COUNT);
    struct fly_error error;

    (void)state;
    assert_int_equal(write_table(NULL, TABLE_FORMAT_CSV, stdout, &error), FLY_ENOMEM);
    table_add_text(NULL, "x");
    table_add_text(table, "x");
    assert_int_equal(write_table(table, TABLE_FORMAT_CSV, stdout, &error), FLY_EINTERNAL);
    assert_contains("short row", error.text, "ends within a row");
    table_add_text(table, "7"); /* into a column of integers */
    assert_int_equal(write_table(table, TABLE_FORMAT_JSON, stdout, &error), FLY_EINTERNAL);
    assert_contains("kind", error.text, "column 'tries'");
    table_free(table);
    table_free(NULL);
}

static void test_json_needs_schema(void **state)
{
    json_t *document = json_object();
    struct fly_error error;

    (void)state;
    assert_int_equal(table_write_json(document, stdout, &error), FLY_EINTERNAL);
    assert_int_equal(table_write_json(NULL, stdout, &error), FLY_ENOMEM);
    json_decref(document);
}

static void test_full_disk(void **state)
{
    struct table *table = sample();
    FILE *full = fopen("/dev/full", "w");
    struct fly_error error;

    (void)state;
    if (full == NULL)
        skip();
    assert_int_equal(write_table(table, TABLE_FORMAT_CSV, full, &error), FLY_EWRITE);
    assert_string_equal(error.text,
                        "writing the table failed: No space left on device; the output is not complete");
    fclose(full);
    table_free(table);
}

/* So many decimals that the least amount of a column is told apart from its neighbours. */
static void test_digits(void **state)
{
    static const struct {
        int decimals;
        double least;
        int expected;
    } cases[] = {{1, 3.0, 1},
                 {MEANING_DIGITS(3), 3.0, 2},
                 {MEANING_DIGITS(3), 31.0, 1},
                 {MEANING_DIGITS(3), 312.0, 0},
                 {MEANING_DIGITS(3), 1e9, 0},
                 {MEANING_DIGITS(3), -0.25, 3},
                 {MEANING_DIGITS(3), 1e-12, 6},
                 {MEANING_DIGITS(3), 0.0, 0},
                 {MEANING_DIGITS(3), INFINITY, 0}};
    static const struct meaning times[] = {
        {"time_s", "time (s)", MEANING_REAL, MEANING_DIGITS(3), "s", MEANING_COUNTER, "Of a test."}};
    struct table *table = table_new("flyball.test/1", times, 1);
    char *text;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(table_decimals(cases[i].decimals, cases[i].least), cases[i].expected);
    table_add_real(table, 3.41);
    table_add_real(table, 2.9);
    table_add_real(table, 0.0);
    table_add_unavailable(table, "-", "none");
    text = written(table, TABLE_FORMAT_TABLE);
    assert_string_equal(text, "time (s)\n    3.41\n    2.90\n    0.00\n   - [1]\n\n[1] none\n");
    free(text);
    table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_full_precision),
        cmocka_unit_test(test_text_that_is_not_utf8),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_defects),
        cmocka_unit_test(test_json_needs_schema),
        cmocka_unit_test(test_full_disk),
    };

    return cmocka_run_group_tests_name("cli table", tests, NULL, NULL);
}
