/* SPDX-License-Identifier: Apache-2.0 */
#include "node/share/share_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/append_file.h"
#include "base/file/atomic_file.h"
#include "base/harmless.h"
#include "shapes/shape.h"

enum { PATH_BYTES = 4096, NUMBER_BYTES = 8, ARENA_MAX = 1 << 20, FILE_MODE = 0640 };

struct share_record {
    char ended[PATH_BYTES];
    char now[PATH_BYTES];
};

int share_record_open(const char *directory, struct share_record **out_record, struct fly_error *out_error)
{
    struct share_record *record = calloc(1, sizeof *record);

    if (record == NULL)
        return error_no_memory(out_error);
    if (strlen(directory) + strlen(USAGE_NOW_FILE) + NUMBER_BYTES + 2 > PATH_BYTES) {
        free(record);
        return error_set(out_error, FLY_ELIMIT, "the directory '%.64s...' has too long a name; take another",
                         directory);
    }
    snprintf(record->ended, sizeof record->ended, "%s/%s", directory, USAGE_ENDED_FILE);
    snprintf(record->now, sizeof record->now, "%s/%s", directory, USAGE_NOW_FILE);
    *out_record = record;
    return 0;
}

void share_record_close(struct share_record *record)
{
    free(record);
}

/* ---- lines ---- */

static bool read_line(const char *text, size_t length, struct arena *arena, struct usage_line *out_line)
{
    return length < RECORD_LINE_MAX &&
           shape_read_text(&shape_usage_line, text, length, SHAPE_LENIENT, arena, out_line, NULL, NULL) ==
               0 &&
           strcmp(out_line->schema, USAGE_LINE_SCHEMA) == 0;
}

int share_record_each(const char *text, size_t length, share_record_visit *visit, void *state,
                      size_t *out_bad)
{
    const char *end = text + length;
    int code = 0;

    *out_bad = 0;
    while (text < end && code == 0) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((stop != NULL ? stop : end) - text);
        struct usage_line line;
        struct arena arena;

        arena_init(&arena, ARENA_MAX);
        if (bytes > 0 && read_line(text, bytes, &arena, &line))
            code = visit(state, &line, text, bytes);
        else if (bytes > 0)
            ++*out_bad;
        arena_deinit(&arena);
        text += bytes + (stop != NULL);
        end = stop != NULL ? end : text;
    }
    return code;
}

int share_record_put(const struct usage_line *line, struct buffer *text, struct fly_error *out_error)
{
    struct buffer json;
    int code;

    buffer_init(&json, RECORD_LINE_MAX);
    code = shape_put(&shape_usage_line, line, SHAPE_SPARE, &json, out_error);
    if (code == 0) {
        harmless_put_json(text, json.data, json.length);
        buffer_puts(text, "\n");
        code = text->error;
    }
    buffer_deinit(&json);
    return code;
}

/* ---- reading files ---- */

static int cannot_read(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == EACCES ? FLY_EPERM : FLY_EREAD,
                     "the record '%.300s' cannot be read: %s; look at its directory's owner and permissions",
                     path, strerror(cause));
}

static int read_file(const char *path, size_t maximum, struct buffer *text, struct fly_error *out_error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), code = 0;
    char part[1 << 14];
    ssize_t got = 1;

    if (fd < 0)
        return errno == ENOENT ? 0 : cannot_read(path, errno, out_error);
    buffer_init(text, maximum);
    while (got > 0 && text->error == 0) {
        got = read(fd, part, sizeof part);
        if (got > 0)
            buffer_append(text, part, (size_t)got);
    }
    if (got < 0)
        code = cannot_read(path, errno, out_error);
    else if (text->error < 0)
        code = error_set(out_error, text->error, "the record '%.300s' is too long; move it away", path);
    close(fd);
    return code;
}

static int visit_file(const char *path, size_t maximum, share_record_visit *visit, void *state,
                      size_t *out_bad, struct fly_error *out_error)
{
    struct buffer text;
    size_t bad = 0;
    int code;

    buffer_init(&text, maximum);
    code = read_file(path, maximum, &text, out_error);
    if (code == 0)
        code = share_record_each(text.data, text.length, visit, state, &bad);
    *out_bad += bad;
    buffer_deinit(&text);
    return code;
}

int share_record_read_now(struct share_record *record, share_record_visit *visit, void *state,
                          size_t *out_bad, struct fly_error *out_error)
{
    *out_bad = 0;
    return visit_file(record->now, RECORD_NOW_MAX, visit, state, out_bad, out_error);
}

int share_record_read_ended(struct share_record *record, share_record_visit *visit, void *state,
                            size_t *out_bad, struct fly_error *out_error)
{
    char before[PATH_BYTES + NUMBER_BYTES];
    int code;

    *out_bad = 0;
    snprintf(before, sizeof before, "%s.1", record->ended);
    code = visit_file(before, 2 * RECORD_FILE_MAX, visit, state, out_bad, out_error);
    return code < 0 ? code : visit_file(record->ended, 2 * RECORD_FILE_MAX, visit, state, out_bad, out_error);
}

/* ---- writing files ---- */

static int cannot_write(const char *path, int cause, struct fly_error *out_error)
{
    int code = cause == EACCES || cause == EPERM || cause == EROFS ? FLY_EPERM : FLY_EWRITE;

    return error_set(out_error, code,
                     "the record '%.300s' cannot be written: %s; look at its disk, and at its directory's "
                     "owner and permissions",
                     path, strerror(cause));
}

static void turn_over(struct share_record *record)
{
    char from[PATH_BYTES + NUMBER_BYTES], to[PATH_BYTES + NUMBER_BYTES];

    for (int i = RECORD_FILES - 1; i > 0; i--) {
        snprintf(to, sizeof to, "%s.%d", record->ended, i);
        if (i > 1)
            snprintf(from, sizeof from, "%s.%d", record->ended, i - 1);
        else
            snprintf(from, sizeof from, "%s", record->ended);
        (void)rename(from, to); /* what is not there yet need not be moved */
    }
}

static int open_ended(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
}

int share_record_append(struct share_record *record, const char *text, size_t length,
                        struct fly_error *out_error)
{
    int fd = open_ended(record->ended), cause;
    struct stat status = {.st_size = 0};

    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0 &&
        (size_t)status.st_size + length > RECORD_FILE_MAX) {
        close(fd);
        turn_over(record);
        fd = open_ended(record->ended);
        status.st_size = 0;
    }
    if (fd < 0)
        return cannot_write(record->ended, errno, out_error);
    cause = append_file_lines(fd, text, length);
    close(fd);
    return cause == 0 ? 0 : cannot_write(record->ended, cause, out_error);
}

int share_record_replace(struct share_record *record, const char *text, size_t length,
                         struct fly_error *out_error)
{
    struct atomic_file file;
    int code, fd = open(record->now, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);

    if (fd >= 0) /* what replaces a file has its permissions */
        close(fd);
    code = atomic_file_open(record->now, &file, out_error);
    if (code < 0)
        return code;
    (void)fwrite(text, 1, length, file.stream);
    return atomic_file_commit(&file, out_error);
}
