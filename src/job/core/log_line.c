/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/log_line.h"

#include "base/error.h"
#include "shapes/shape_rows.h"

static const struct shape_field rows[] = {
    {SHAPE_AT_AS("time_us", log_line, event.time_us), SHAPE_IS_TIME},
    {SHAPE_AT_AS("kind", log_line, event.kind), SHAPE_IS_TEXT(STORE_KIND_MAX)},
    {SHAPE_AT_AS("trial", log_line, event.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT_AS("key", log_line, event.key), SHAPE_IS_TEXT(STORE_KEY_MAX)},
    {SHAPE_AT(log_line, body), .kind = SHAPE_JSON_OBJECT},
    {SHAPE_AT_AS("number", log_line, event.number), SHAPE_IS_U64(1, INT64_MAX)},
};
static const struct shape shape_log_line = {SHAPE_OF(log_line, rows)};

int log_line_read(const char *line, size_t length, uint64_t number, struct log_line *out_line,
                  struct fly_error *out_error)
{
    struct shape_fault fault;
    struct log_line read;
    json_t *json;
    int code;

    if (length > LOG_LINE_MAX) /* parsed, a line takes up to eighty times its length */
        return error_set(out_error, FLY_EUSAGE, "is longer than %d bytes", (int)LOG_LINE_MAX);
    code = shape_parse_as(line, length, SHAPE_LENIENT, &json, &fault, out_error);
    if (code == FLY_ENOMEM)
        return code;
    if (code < 0)
        return error_set(out_error, FLY_EUSAGE, "is no JSON object (column %zu: %.120s)", fault.column,
                         fault.expected);
    code = shape_read(&shape_log_line, json, SHAPE_BORROWING, NULL, &read, out_error);
    if (code == 0 && read.event.number != number)
        code = error_set(out_error, FLY_EDATA, "member 'number': expected the next number");
    if (code < 0) {
        json_decref(json);
        return code == FLY_ENOMEM ? code : FLY_EDATA;
    }
    read.json = json;
    *out_line = read;
    return 0;
}

void log_line_deinit(struct log_line *line)
{
    json_decref(line->json);
}
