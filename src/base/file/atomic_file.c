/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that appear whole: written without a name, linked and renamed at the end. The stream has
 * its own write function because stdio loses the errno of a failed write, and the user needs it:
 * "disk full" and "quota exceeded" have different remedies.
 */
#include "base/file/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/patient_file.h"

enum { STREAM_BUFFER_SIZE = 1 << 18, NAME_TRIES = 1000 };

struct atomic_sink {
    int fd;
    int cause; /* errno of the first failed write */
    char buffer[STREAM_BUFFER_SIZE];
};

struct remedy {
    int cause;
    int code;
    const char *text;
};

static const struct remedy remedies[] = {
    {EACCES, FLY_EPERM, "choose a place that you may write to"},
    {EPERM, FLY_EPERM, "choose a place that you may write to"},
    {EROFS, FLY_EPERM, "choose a file system that is not read-only"},
    {ENOENT, FLY_ENOTFOUND, "make its directory first"},
    {ENOTDIR, FLY_ENOTFOUND, "name a file in a directory"},
    {EISDIR, FLY_EWRITE, "name a file"},
    {ENOSPC, FLY_EWRITE, "free space there, or choose another place"},
    {EDQUOT, FLY_EWRITE, "free space there, or choose another place"},
    {EFBIG, FLY_EWRITE, "raise the limit of file sizes (ulimit -f)"},
    {ENOMEM, FLY_ENOMEM, "free some memory"},
    {ENXIO, FLY_EWRITE, "start what reads it first"},
    {ETIME, FLY_EWRITE, "let its other end read, or name a file"},
    {0, FLY_EWRITE, "choose another place"},
};

static int write_failed(const char *path, int cause, struct fly_error *out_error)
{
    const struct remedy *remedy = remedies;

    while (remedy->cause != 0 && remedy->cause != cause)
        remedy++;
    return error_set(out_error, remedy->code, "writing '%s' failed: %s; %s", path, patient_file_cause(cause),
                     remedy->text);
}

static ssize_t sink_write(void *cookie, const char *bytes, size_t count)
{
    struct atomic_sink *sink = cookie;
    size_t written = 0;

    while (written < count && sink->cause == 0) {
        ssize_t step = write(sink->fd, bytes + written, count - written);

        if (step >= 0)
            written += (size_t)step;
        else if (errno != EINTR && (errno != EAGAIN || patient_file_wait(sink->fd) < 0))
            sink->cause = errno;
    }
    return (ssize_t)written;
}

static int sink_close(void *cookie)
{
    struct atomic_sink *sink = cookie;
    int fd = sink->fd;

    sink->fd = -1;
    return close(fd);
}

/* Returns the length of the directory part of a path, up to its slash; "" is the working directory. */
static int directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (int)(slash - path) + 1;
}

/* Returns the next candidate for a temporary name beside `target`; NULL without memory. */
static char *temporary_name(const char *target)
{
    static atomic_uint counter;
    char *name;

    if (asprintf(&name, "%.*s.flyball-%ld-%u", directory_length(target), target, (long)getpid(),
                 atomic_fetch_add(&counter, 1) + 1) < 0)
        return NULL;
    return name;
}

/* Opens a file without a name; -1 if the file system or a missing /proc does not allow one. */
static int open_nameless(const char *target)
{
    char link[64];
    char *directory;
    int fd;

    if (asprintf(&directory, "%.*s.", directory_length(target), target) < 0)
        return -1;
    fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(directory);
    if (fd < 0)
        return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (access(link, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

static int open_named(struct atomic_file *file)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        int fd;

        file->temporary = temporary_name(file->target);
        if (file->temporary == NULL)
            return -1;
        fd = open(file->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        free(file->temporary);
        file->temporary = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Returns whether `status` is the file that stdout writes to: replacing it would lose what stdout writes. */
static int is_stdout(const struct stat *status)
{
    struct stat out;

    return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == status->st_dev && out.st_ino == status->st_ino;
}

/* Opens what exists at the path, if it has to be written in place; -1 with errno. */
static int open_direct(const char *path, const struct stat *status)
{
    if (is_stdout(status))
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return patient_file_write(path);
}

/* Opens the file that will replace the target; `status` is NULL for a new target. -1 with errno. */
static int open_replacement(struct atomic_file *file, const struct stat *status)
{
    int fd;

    file->target = status != NULL ? realpath(file->path, NULL) : strdup(file->path);
    if (file->target == NULL)
        return -1;
    fd = open_nameless(file->target);
    if (fd < 0)
        fd = open_named(file);
    if (fd >= 0 && status != NULL && fchmod(fd, status->st_mode & 0777) < 0) {
        int cause = errno;

        close(fd);
        errno = cause;
        return -1;
    }
    return fd;
}

/* Returns the descriptor to write to, or -1 with errno. */
static int open_sink(struct atomic_file *file)
{
    struct stat status;

    if (stat(file->path, &status) < 0) {
        if (errno != ENOENT || file->path[0] == '\0')
            return -1;
        if (lstat(file->path, &status) == 0) {
            errno = ENOENT; /* a symbolic link whose target is missing */
            return -1;
        }
        return open_replacement(file, NULL);
    }
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (!S_ISREG(status.st_mode) || is_stdout(&status))
        return open_direct(file->path, &status);
    if (access(file->path, W_OK) < 0)
        return -1;
    return open_replacement(file, &status);
}

static int open_stream(struct atomic_file *file)
{
    static const cookie_io_functions_t functions = {.write = sink_write, .close = sink_close};

    file->stream = fopencookie(file->sink, "w", functions);
    if (file->stream == NULL)
        return -1;
    return setvbuf(file->stream, file->sink->buffer, _IOFBF, STREAM_BUFFER_SIZE);
}

int atomic_file_open(const char *path, struct atomic_file *out_file, struct fly_error *out_error)
{
    struct atomic_file file = {.path = strdup(path), .sink = malloc(sizeof *file.sink)};
    int result;

    if (file.path == NULL || file.sink == NULL) {
        free(file.path);
        free(file.sink);
        return error_no_memory(out_error);
    }
    file.sink->cause = 0;
    file.sink->fd = open_sink(&file);
    if (file.sink->fd < 0 || open_stream(&file) < 0) {
        result = write_failed(path, errno, out_error);
        atomic_file_discard(&file);
        return result;
    }
    *out_file = file;
    return 0;
}

/* Gives the nameless file a temporary name; 0, or -1 with errno. */
static int link_temporary(struct atomic_file *file)
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", file->sink->fd);
    for (int i = 0; i < NAME_TRIES; i++) {
        char *name = temporary_name(file->target);

        if (name == NULL)
            return -1;
        if (linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            file->temporary = name;
            return 0;
        }
        free(name);
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Does all of commit except cleaning up; returns 0 or the errno of what failed. */
static int bring_to_target(struct atomic_file *file)
{
    if (fflush(file->stream) != 0 || ferror(file->stream))
        return file->sink->cause != 0 ? file->sink->cause : EIO;
    if (file->target == NULL)
        return 0;
    if (fsync(file->sink->fd) < 0)
        return errno;
    if (file->temporary == NULL && link_temporary(file) < 0)
        return errno;
    if (rename(file->temporary, file->target) < 0)
        return errno;
    free(file->temporary);
    file->temporary = NULL;
    return 0;
}

int atomic_file_commit(struct atomic_file *file, struct fly_error *out_error)
{
    int cause = bring_to_target(file);
    int result = cause == 0 ? 0 : write_failed(file->path, cause, out_error);

    atomic_file_discard(file);
    return result;
}

void atomic_file_discard(struct atomic_file *file)
{
    if (file->stream != NULL) {
        file->sink->cause = file->sink->cause != 0 ? file->sink->cause : ECANCELED; /* no more writes */
        fclose(file->stream);
    } else if (file->sink != NULL && file->sink->fd >= 0) {
        close(file->sink->fd);
    }
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    free(file->target);
    free(file->path);
    free(file->sink);
    *file = (struct atomic_file){.stream = NULL};
}
