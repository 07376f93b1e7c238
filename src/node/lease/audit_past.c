/* SPDX-License-Identifier: Apache-2.0 */
#include "node/lease/audit_past.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "shapes/shape_rows.h"

enum { ARENA_BYTES = 1 << 16 };

/* What counts of a line. */
struct past_line {
    const char *what, *outcome, *lease, *program, *token;
    int64_t uid, pid; /* -1: unknown */
};
static const struct past_line usual = {
    .what = "", .outcome = "", .lease = "", .program = "", .token = "", .uid = -1, .pid = -1};

#define PAST_TEXT(member)                                                                          \
    {                                                                                              \
        SHAPE_AT(past_line, member), .kind = SHAPE_TEXT, .longest = UINT32_MAX, .free_text = true, \
                                     .any_bytes = true, .need = SHAPE_OPTIONAL, .loose = true      \
    }
static const struct shape_field line_rows[] = {
    PAST_TEXT(what),
    PAST_TEXT(outcome),
    PAST_TEXT(lease),
    PAST_TEXT(program),
    PAST_TEXT(token),
    {SHAPE_AT(past_line, uid), .kind = SHAPE_I64, .most = UINT32_MAX, .need = SHAPE_OPTIONAL, .loose = true},
    {SHAPE_AT(past_line, pid), .kind = SHAPE_I64, .most = INT32_MAX, .need = SHAPE_OPTIONAL, .loose = true},
};
static const struct shape line_shape = {SHAPE_OF(past_line, line_rows), .defaults = &usual};

static size_t place_of(const struct audit_lost *lost, size_t count, const char *lease)
{
    size_t i = 0;

    while (i < count && strcmp(lost[i].lease, lease) != 0)
        i++;
    return i;
}

/*
 * Other lines come after the end, too: a GPU is put back when its last lease has ended. And of a change that
 * failed the id is what a client said.
 */
static bool is_granted(const struct past_line *line)
{
    return strcmp(line->what, "grant") == 0 &&
           (line->outcome[0] == '\0' || strcmp(line->outcome, "done") == 0);
}

static void take(const struct past_line *line, struct audit_lost *lost, size_t maximum, size_t *count)
{
    size_t place = place_of(lost, *count, line->lease);
    struct lease_holder holder = {.uid = line->uid < 0 ? LEASE_NOBODY : (uid_t)line->uid,
                                  .pid = line->pid < 0 ? 0 : (pid_t)line->pid};

    if (line->lease[0] == '\0' || strlen(line->lease) >= LEASE_ID_MAX)
        return;
    if (strcmp(line->what, "end") == 0 && place < *count) {
        --*count;
        memmove(&lost[place], &lost[place + 1], (*count - place) * sizeof *lost);
        return;
    }
    if (!is_granted(line) || place < *count || *count == maximum)
        return;
    snprintf(holder.program, sizeof holder.program, "%s", line->program);
    snprintf(holder.token, sizeof holder.token, "%s", line->token);
    lost[place].holder = holder;
    snprintf(lost[place].lease, sizeof lost[place].lease, "%s", line->lease);
    ++*count;
}

size_t audit_past_parse(const char *text, size_t length, struct audit_lost *out_lost, size_t maximum)
{
    size_t count = 0;

    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t bytes = end != NULL ? (size_t)(end - text) : length;
        struct past_line line;
        struct arena arena;

        arena_init(&arena, ARENA_BYTES);
        if (end != NULL &&
            shape_read_text(&line_shape, text, bytes, SHAPE_LENIENT, &arena, &line, NULL, NULL) == 0)
            take(&line, out_lost, maximum, &count);
        arena_deinit(&arena);
        bytes += end != NULL;
        text += bytes;
        length -= bytes;
    }
    return count;
}

/* Reads the end of a file; the first line may be cut then, which is no JSON. */
static size_t read_end(int fd, char *text)
{
    struct stat status;
    size_t length = 0;
    off_t start;
    ssize_t got;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    start = status.st_size > AUDIT_PAST_BYTES ? status.st_size - AUDIT_PAST_BYTES : 0;
    while (length < AUDIT_PAST_BYTES &&
           (got = pread(fd, text + length, AUDIT_PAST_BYTES - length, start + (off_t)length)) > 0)
        length += (size_t)got;
    return length;
}

size_t audit_past_lost(const char *path, struct audit_lost *out_lost, size_t maximum)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *text = fd >= 0 ? malloc(AUDIT_PAST_BYTES) : NULL;
    size_t count = 0;

    if (text != NULL)
        count = audit_past_parse(text, read_end(fd, text), out_lost, maximum);
    free(text);
    if (fd >= 0)
        close(fd);
    return count;
}
