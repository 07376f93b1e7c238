/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens pipes without blocking. Then end-of-file tells a reader that no writer has come yet, and
 * EAGAIN that there is one; ENXIO tells a writer that there is no reader.
 */
#include "base/file/patient_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/wait.h"

enum { LOOK_MS = 20, PIECE = 1 << 14, NULL_MAJOR = 1, NULL_MINOR = 3 };

static const struct {
    int error;
    const char *words;
} causes[] = {
    {ENXIO, "nobody is at the other end of this pipe"},
    {ETIME, "nothing moved through this pipe for a minute"},
    {ENODEV, "it is a device or a socket, no file"},
};

const char *patient_file_cause(int error)
{
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (causes[i].error == error)
            return causes[i].words;
    }
    return strerror(error);
}

static void sleep_ms(long duration_ms)
{
    mono_sleep_s((double)duration_ms * 1e-3);
}

static int wait_for(int fd, short event)
{
    struct pollfd source = {.fd = fd, .events = event};
    int ready;

    do
        ready = mono_poll(&source, 1, mono_after_s(mono_now(), PATIENT_SILENT_S));
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = ETIME;
    return ready > 0 ? 0 : -1;
}

int patient_file_wait(int fd)
{
    return wait_for(fd, POLLOUT);
}

struct pipe {
    int fd;
    ssize_t held; /* bytes that came during the wait for a writer: one or none */
    char byte;
};

static ssize_t pipe_read(void *cookie, char *bytes, size_t count)
{
    struct pipe *pipe = cookie;
    ssize_t got;

    if (pipe->held > 0 && count > 0) {
        bytes[0] = pipe->byte;
        pipe->held = 0;
        return 1;
    }
    while ((got = read(pipe->fd, bytes, count)) < 0 && (errno == EINTR || errno == EAGAIN)) {
        if (errno == EAGAIN && wait_for(pipe->fd, POLLIN) < 0)
            return -1;
    }
    return got;
}

static int pipe_close(void *cookie)
{
    struct pipe *pipe = cookie;
    int result = close(pipe->fd);

    free(pipe);
    return result;
}

/* Returns whether a pipe has, or had, a writer; keeps the byte that this check may read. */
static bool has_writer(struct pipe *pipe)
{
    struct pollfd source = {.fd = pipe->fd, .events = POLLIN};

    if (poll(&source, 1, 0) != 0)
        return true;
    pipe->held = read(pipe->fd, &pipe->byte, 1);
    return pipe->held != 0;
}

/* Takes the descriptor only on success; else returns NULL with errno. */
static FILE *open_pipe(int fd)
{
    static const cookie_io_functions_t functions = {.read = pipe_read, .close = pipe_close};
    struct pipe *pipe = malloc(sizeof *pipe);
    FILE *stream = NULL;
    int waited_ms = 0;

    if (pipe == NULL)
        return NULL;
    *pipe = (struct pipe){.fd = fd};
    for (; !has_writer(pipe) && waited_ms < PATIENT_OPEN_S * 1000; waited_ms += LOOK_MS)
        sleep_ms(LOOK_MS);
    errno = ENXIO;
    if (waited_ms < PATIENT_OPEN_S * 1000)
        stream = fopencookie(pipe, "r", functions);
    if (stream == NULL)
        free(pipe);
    return stream;
}

static FILE *open_plain(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return NULL;
    return fdopen(fd, "r");
}

/* Returns 0 for a file that can be read to its end, else an errno. */
static int refusal(int fd, const struct stat *status)
{
    bool null = S_ISCHR(status->st_mode) && status->st_rdev == makedev(NULL_MAJOR, NULL_MINOR);

    if (S_ISDIR(status->st_mode))
        return EISDIR;
    return S_ISREG(status->st_mode) || S_ISFIFO(status->st_mode) || null || isatty(fd) == 1 ? 0 : ENODEV;
}

FILE *patient_file_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), cause;
    struct stat status;
    FILE *stream = NULL;

    if (fd < 0) {
        errno = errno == ENXIO ? ENODEV : errno; /* a socket */
        return NULL;
    }
    if (fstat(fd, &status) == 0 && (errno = refusal(fd, &status)) == 0)
        stream = S_ISFIFO(status.st_mode) ? open_pipe(fd) : open_plain(fd);
    if (stream == NULL) {
        cause = errno;
        close(fd);
        errno = cause;
    }
    return stream;
}

int patient_file_read_all(const char *path, struct buffer *text, struct fly_error *out_error)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *stream = standard ? stdin : patient_file_read(path);
    char piece[PIECE];
    size_t count;
    int code = 0;

    if (stream == NULL)
        return error_set(out_error,
                         errno == ENOENT   ? FLY_ENOTFOUND
                         : errno == EACCES ? FLY_EPERM
                                           : FLY_EREAD,
                         "'%s' cannot be read: %s", path, patient_file_cause(errno));
    while (text->error == 0 && (count = fread(piece, 1, sizeof piece, stream)) > 0)
        buffer_append(text, piece, count);
    if (ferror(stream))
        code = error_set(out_error, FLY_EREAD, "'%s' cannot be read: %s", path, patient_file_cause(errno));
    else if (text->error == FLY_ELIMIT)
        code = error_set(out_error, FLY_ELIMIT, "'%s': more than %zu bytes", path, text->maximum);
    else if (text->error < 0)
        code = error_no_memory(out_error);
    if (!standard)
        fclose(stream);
    return code;
}

int patient_file_write(const char *path)
{
    struct stat status;
    int fd;

    if (stat(path, &status) < 0 || !S_ISFIFO(status.st_mode))
        return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    for (int waited_ms = 0;; waited_ms += LOOK_MS) {
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd >= 0 || errno != ENXIO || waited_ms >= PATIENT_OPEN_S * 1000)
            return fd;
        sleep_ms(LOOK_MS);
    }
}
