/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that read the error table, and the one that fills a struct fly_error. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/harmless.h"

struct error_row {
    int code;
    int exit_status;
    int http_status;
    const char *name;
    const char *sentence;
};

#define ERROR_ROW(name, code, exit_status, http_status, sentence) \
    {code, exit_status, http_status, #name, sentence},
static const struct error_row error_rows[] = {{0, 0, 200, "FLY_OK", "success"}, FLY_ERROR_MAP(ERROR_ROW)};
#undef ERROR_ROW

#define ERROR_ROW_COUNT (sizeof error_rows / sizeof error_rows[0])

/* The codes go down from 0 without a gap, so the code is the row. */
#define ERROR_COUNT(name, code, exit_status, http_status, sentence) +1
_Static_assert(ERROR_ROW_COUNT == 1 + (0 FLY_ERROR_MAP(ERROR_COUNT)), "one row for every code");
_Static_assert(-FLY_ECONFLICT == ERROR_ROW_COUNT - 1, "codes are contiguous");

static const struct error_row *error_row(int code)
{
    if (code > 0 || code <= -(int)ERROR_ROW_COUNT)
        code = FLY_EINTERNAL;
    return &error_rows[-code];
}

const char *fly_error_name(int code)
{
    return error_row(code)->name;
}

const char *fly_error_sentence(int code)
{
    return error_row(code)->sentence;
}

int fly_error_exit_status(int code)
{
    return error_row(code)->exit_status;
}

int fly_error_http_status(int code)
{
    return error_row(code)->http_status;
}

int error_set(struct fly_error *out_error, int code, const char *format, ...)
{
    va_list arguments;

    if (out_error == NULL)
        return code;
    va_start(arguments, format);
    vsnprintf(out_error->text, sizeof out_error->text, format, arguments);
    va_end(arguments);
    /* The text may quote others' text, and may have been cut within a character. */
    harmless_make(out_error->text, strlen(out_error->text), true);
    out_error->code = code;
    return code;
}
