/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a table's writer, and writes the bytes out. */
#include "cli/kit/table_print.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "cli/kit/table_render_private.h"

static int print_json(const struct table *table, struct buffer *out, struct fly_error *out_error)
{
    json_t *document = table_render_json(table);
    int result = document == NULL ? error_no_memory(out_error) : table_print_json(document, out, out_error);

    json_decref(document);
    return result;
}

int table_print(const struct table *table, enum table_format format, bool color, struct buffer *out,
                struct fly_error *out_error)
{
    int result = table_check(table, out_error);

    if (result < 0)
        return result;
    if (format == TABLE_FORMAT_JSON)
        return print_json(table, out, out_error);
    if (format == TABLE_FORMAT_CSV)
        table_render_csv(table, true, out);
    else
        table_render_text(table, color, out);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

int table_print_lines(const struct table *table, enum table_format format, bool heading, struct buffer *out,
                      struct fly_error *out_error)
{
    int result = table_check(table, out_error);

    if (result < 0)
        return result;
    if (format != TABLE_FORMAT_JSON)
        table_render_csv(table, heading, out);
    else if (!table_render_json_lines(table, out))
        return error_no_memory(out_error);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

int table_put(const char *bytes, size_t length, FILE *stream, const char *what, struct fly_error *out_error)
{
    errno = 0;
    if (fwrite(bytes, 1, length, stream) == length && fflush(stream) == 0)
        return 0;
    return error_set(out_error, FLY_EWRITE, "writing %s failed: %s; the output is not complete", what,
                     errno != 0 ? strerror(errno) : "unknown cause");
}

int table_write(const struct table *table, enum table_format format, FILE *stream,
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

int table_write_json(const json_t *document, FILE *stream, struct fly_error *out_error)
{
    struct buffer bytes;
    int result;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    result = table_print_json(document, &bytes, out_error);
    if (result == 0)
        result = table_put(bytes.data, bytes.length, stream, "the document", out_error);
    buffer_deinit(&bytes);
    return result;
}

int table_save_json(json_t *document, const char *path, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = document == NULL ? error_no_memory(out_error) : atomic_file_open(path, &file, out_error);

    if (code == 0) {
        code = table_write_json(document, file.stream, out_error);
        if (code == 0)
            code = atomic_file_commit(&file, out_error);
        else
            atomic_file_discard(&file);
    }
    json_decref(document);
    return code;
}
