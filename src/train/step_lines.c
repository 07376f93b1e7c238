/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"

enum { PATH_MAX_BYTES = 64, NUMBER_MAX = 16, FREE_EVERY = 1 << 16, EPOCH_DIGITS_MAX = 18 };

/* The first free one from 3 on: shells take descriptors of one digit only. */
enum { LOWEST_PROGRAM_END = 3, LOWEST_OWN = 10 };

/* The file again, by its own open: what the flags of the program's end are is its own matter. */
static int open_again(int file, int flags)
{
    char path[PATH_MAX_BYTES];

    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open(path, flags);
}

static int watch(int file)
{
    char path[PATH_MAX_BYTES];
    int notice = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (notice >= 0 && inotify_add_watch(notice, path, IN_MODIFY) < 0) {
        close(notice);
        notice = -1;
    }
    return notice;
}

static void set_variable(struct step_lines *lines)
{
    const char *before = getenv(STEP_VARIABLE);
    char number[NUMBER_MAX];

    lines->before = before != NULL ? strdup(before) : NULL;
    snprintf(number, sizeof number, "%d", lines->program_end);
    setenv(STEP_VARIABLE, number, 1);
}

/* Our side, out of the way of low numbers. */
static int make_file(void)
{
    int low = memfd_create("flyball-steps", MFD_CLOEXEC), file = -1;

    if (low >= 0) {
        file = fcntl(low, F_DUPFD_CLOEXEC, LOWEST_OWN);
        close(low);
    }
    return file;
}

int step_lines_open(struct step_lines *out_lines, struct fly_error *out_error)
{
    *out_lines = (struct step_lines){.file = -1, .notice = -1, .program_end = -1};
    out_lines->file = make_file();
    if (out_lines->file >= 0)
        out_lines->program_end = open_again(out_lines->file, O_WRONLY | O_APPEND);
    if (out_lines->program_end >= 0 && out_lines->program_end < LOWEST_PROGRAM_END) {
        int low = out_lines->program_end;

        out_lines->program_end = fcntl(low, F_DUPFD, LOWEST_PROGRAM_END);
        close(low);
    }
    if (out_lines->program_end < 0) {
        int result = error_set(out_error, FLY_ELIMIT, "no file for a program's steps: %s", strerror(errno));

        step_lines_close(out_lines);
        return result;
    }
    out_lines->notice = watch(out_lines->file);
    set_variable(out_lines);
    return 0;
}

void step_lines_passed(struct step_lines *lines)
{
    if (lines->program_end < 0)
        return;
    close(lines->program_end);
    lines->program_end = -1;
    if (lines->before != NULL)
        setenv(STEP_VARIABLE, lines->before, 1);
    else
        unsetenv(STEP_VARIABLE);
    free(lines->before);
    lines->before = NULL;
}

int step_lines_fd(const struct step_lines *lines)
{
    return lines->notice;
}

void step_lines_noticed(struct step_lines *lines)
{
    char events[STEP_BYTES_MAX];

    while (lines->notice >= 0 && read(lines->notice, events, sizeof events) > 0)
        ;
}

/* Reads on; false when nothing is there. A program that cut the file short has begun anew. */
static bool fill(struct step_lines *lines)
{
    ssize_t count = pread(lines->file, lines->bytes, sizeof lines->bytes, lines->read_to);

    lines->at = lines->count = 0;
    if (count <= 0) {
        off_t size = lseek(lines->file, 0, SEEK_END);

        if (size >= 0 && size < lines->read_to)
            lines->read_to = lines->freed_to = size;
        return false;
    }
    lines->count = (size_t)count;
    lines->read_to += count;
    if (lines->read_to - lines->freed_to >= FREE_EVERY) {
        (void)fallocate(lines->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, lines->freed_to,
                        lines->read_to - lines->freed_to);
        lines->freed_to = lines->read_to;
    }
    return true;
}

static bool is_text(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (((unsigned char)line[i] < ' ' && line[i] != '\t' && line[i] != '\r') || line[i] == 0x7f)
            return false;
    }
    return true;
}

/* " metric 0.61" behind an epoch's number; `rest` ends with NUL. */
static bool read_metric(const char *rest, double *out_metric)
{
    static const char word[] = " metric ";

    if (strncmp(rest, word, sizeof word - 1) != 0)
        return false;
    rest += sizeof word - 1;
    if (strcmp(rest, "nan") == 0) {
        *out_metric = NAN;
        return true;
    }
    return number_parse_double(rest, out_metric);
}

/* What follows "epoch". */
static enum step_event epoch_event(const char *rest, struct step_report *out_report)
{
    size_t digits = strspn(rest[0] == ' ' ? rest + 1 : rest, "0123456789");
    struct step_report report = {.metric = NAN};
    uint64_t number = 0;
    char text[EPOCH_DIGITS_MAX + 1] = "";

    if (strcmp(rest, " end") == 0)
        return STEP_EPOCH_END;
    if (rest[0] != ' ' || digits == 0 || digits > EPOCH_DIGITS_MAX)
        return STEP_MALFORMED;
    if (rest[1 + digits] == '\0')
        return STEP_EPOCH_BEGIN;
    memcpy(text, rest + 1, digits);
    if (!number_parse_u64(text, UINT32_MAX, &number) || !read_metric(rest + 1 + digits, &report.metric))
        return STEP_MALFORMED;
    report.epoch = (uint32_t)number;
    *out_report = report;
    return STEP_REPORT;
}

enum step_event step_line_event(const char *line, size_t length, struct step_report *out_report)
{
    static const char epoch[] = "epoch";
    char text[STEP_LINE_MAX + 1] = "";

    if (length > STEP_LINE_MAX || !is_text(line, length))
        return STEP_MALFORMED;
    memcpy(text, line, length);
    text[length] = '\0';
    if (strcmp(text, "session") == 0)
        return STEP_SESSION;
    if (strcmp(text, "out of memory") == 0)
        return STEP_OUT_OF_MEMORY;
    if (strncmp(text, epoch, sizeof epoch - 1) != 0)
        return STEP_BEGIN;
    return epoch_event(text + sizeof epoch - 1, out_report);
}

bool step_lines_next(struct step_lines *lines, enum step_event *out_event)
{
    if (lines->file < 0)
        return false;
    for (;;) {
        char byte;

        if (lines->at == lines->count && !fill(lines))
            return false;
        byte = lines->bytes[lines->at++];
        if (byte == '\n')
            break;
        if (lines->length < sizeof lines->line)
            lines->line[lines->length++] = byte;
    }
    *out_event = step_line_event(lines->line, lines->length, &lines->report);
    lines->length = 0;
    lines->events[*out_event]++;
    return true;
}

off_t step_lines_at(const struct step_lines *lines)
{
    return lines->read_to - (off_t)(lines->count - lines->at);
}

off_t step_lines_end(const struct step_lines *lines)
{
    struct stat status;

    return lines->file >= 0 && fstat(lines->file, &status) == 0 ? status.st_size : 0;
}

void step_lines_close(struct step_lines *lines)
{
    step_lines_passed(lines);
    if (lines->notice >= 0)
        close(lines->notice);
    if (lines->file >= 0)
        close(lines->file);
    lines->notice = lines->file = -1;
}

int step_lines_given(void)
{
    const char *value = getenv(STEP_VARIABLE);
    char *end;
    long fd = value != NULL ? strtol(value, &end, 10) : -1;
    int flags;

    if (value == NULL || end == value || *end != '\0' || fd < 0 || fd > INT_MAX)
        return -1;
    flags = fcntl((int)fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? (int)fd : -1;
}

void step_line_write(int fd, const char *format, ...)
{
    char line[STEP_LINE_MAX + 1];
    int saved = errno, length;
    va_list arguments;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || length > STEP_LINE_MAX)
        return;
    line[length] = '\n';
    if (write(fd, line, (size_t)length + 1) < 0)
        errno = saved;
}
