/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV text: any bytes either give rows as long as the header, whose fields end with NUL, or are refused with
 * the file's name and a line. The first byte chooses how many columns are wanted; the rest is the text.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/text/csv.h"
#include "fuzz.h"

enum { WANTED_MAX = 3 };
static const char *const wanted[WANTED_MAX] = {"a", "b", "c"};

static void check_refusal(int code, const struct fly_error *error)
{
    FUZZ_CHECK(code == FLY_EDATA || code == FLY_ELIMIT);
    FUZZ_CHECK(error->code == code);
    FUZZ_CHECK(strncmp(error->text, "f.csv:", 6) == 0);
}

static void check_number(const struct csv *csv, size_t column)
{
    struct fly_error error = {.code = 0};
    double value = NAN;
    int code = csv_number(csv, column, 0.0, DBL_MAX, "a number above 0", &value, &error);

    if (code == 0) {
        FUZZ_CHECK(isfinite(value) && value > 0.0);
    } else {
        FUZZ_CHECK(isnan(value));
        check_refusal(code, &error);
        FUZZ_CHECK(strstr(error.text, wanted[column]) != NULL);
    }
}

static void check_row(const struct csv *csv, size_t length)
{
    size_t total = 0;

    for (size_t i = 0; i < csv->field_count; i++)
        total += strlen(csv->fields[i]);
    FUZZ_CHECK(total <= length);
    FUZZ_CHECK(csv->column_count <= WANTED_MAX);
    for (size_t i = 0; i < csv->column_count && i < WANTED_MAX; i++) {
        FUZZ_CHECK(csv->at[i] < csv->field_count);
        FUZZ_CHECK(csv_field(csv, i) == csv->fields[csv->at[i]]);
        check_number(csv, i);
    }
}

/* There are no more lines than line ends, and rows never go back. */
static void check_rows(struct csv *csv, size_t length)
{
    struct fly_error error = {.code = 0};
    size_t line = csv->line;
    int more;

    while ((more = csv_next(csv, &error)) > 0) {
        FUZZ_CHECK(csv->line > line && csv->line <= length + 1);
        line = csv->line;
        check_row(csv, length);
    }
    if (more < 0)
        check_refusal(more, &error);
    else
        FUZZ_CHECK(csv_next(csv, &error) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = size > 0 ? data[0] % WANTED_MAX + 1u : 1;
    const char *text = size > 0 ? (const char *)data + 1 : "";
    size_t length = size > 0 ? size - 1 : 0;
    struct fly_error error = {.code = 0};
    struct csv csv;
    int code = csv_open_text(&csv, "f.csv", text, length, wanted, count, &error);

    if (code < 0) {
        check_refusal(code, &error);
        return 0;
    }
    FUZZ_CHECK(csv.field_count >= count && csv.field_count <= CSV_COLUMNS_MAX);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(strcmp(csv_field(&csv, i), wanted[i]) == 0);
    check_rows(&csv, length);
    csv_close(&csv);
    return 0;
}
