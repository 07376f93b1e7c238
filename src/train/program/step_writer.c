/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "meter/identity.h"
#include "train/program/step_file.h"
#include "train/program/step_words.h"

enum { LOWEST = 10 };

/* The descriptor that FLYBALL_STEP_FD names, whatever kind of file it is; -1 for none. */
static int inherited(void)
{
    const char *value = getenv(STEP_VARIABLE);
    uint64_t number;

    return value != NULL && number_parse_u64(value, INT_MAX, &number) ? (int)number : -1;
}

static bool may_be_written(int fd)
{
    int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;

    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/*
 * Copies the descriptor: the program may close the inherited one, and open something else under its number.
 */
static int copy_of(int fd)
{
    return may_be_written(fd) ? fcntl(fd, F_DUPFD_CLOEXEC, LOWEST) : -1;
}

static void open_place(const struct step_place *place, struct step_writer *writer)
{
    int fd = inherited();

    /* An inherited descriptor also works inside a container. */
    if (step_place_is(place, fd))
        writer->fd = copy_of(fd);
    if (writer->fd < 0)
        writer->fd = step_place_open(place);
}

static int rank_of_process(void)
{
    struct identity identity;

    identity_find((const char *const *)environ, "", &identity);
    return identity.rank;
}

enum step_way step_writer_open(struct step_writer *out_writer)
{
    const char *value = getenv(STEP_PLACE_VARIABLE);
    struct step_place place;

    *out_writer = (struct step_writer){.fd = -1, .rank = -1};
    if (value != NULL && step_place_read(value, &place)) {
        out_writer->rank = rank_of_process();
        open_place(&place, out_writer);
        return out_writer->fd >= 0 ? STEPS_OPEN : STEPS_OUT_OF_REACH;
    }
    return STEPS_NOT_WANTED;
}

/* Writes "rank 0 pid 4711 ", or the known part; returns the length. */
static int write_sender(const struct step_writer *writer, char *text, size_t size)
{
    if (writer->rank >= 0)
        return snprintf(text, size, "rank %d pid %d ", writer->rank, (int)getpid());
    return snprintf(text, size, "pid %d ", (int)getpid());
}

void step_writer_write(const struct step_writer *writer, const char *format, ...)
{
    char line[STEP_LINE_MAX + 1];
    int saved = errno, length, said;
    va_list arguments;

    if (writer->fd < 0)
        return;
    length = write_sender(writer, line, sizeof line);
    va_start(arguments, format);
    said = vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    va_end(arguments);
    if (said < 0 || length + said > STEP_LINE_MAX)
        return;
    length += said;
    line[length] = '\n';
    if (write(writer->fd, line, (size_t)length + 1) < 0)
        errno = saved;
}

void step_writer_close(struct step_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    writer->fd = -1;
}
