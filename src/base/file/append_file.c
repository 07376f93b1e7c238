/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/append_file.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns how many bytes were written; fewer than all with errno. */
static size_t write_some(int fd, const char *bytes, size_t length)
{
    size_t written = 0;

    while (written < length) {
        ssize_t count = write(fd, bytes + written, length - written);

        if (count < 0 && errno == EINTR)
            continue;
        if (count == 0)
            errno = ENOSPC;
        if (count <= 0)
            break;
        written += (size_t)count;
    }
    return written;
}

static bool is_torn(int fd, off_t size)
{
    char last = '\n';

    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

int append_file_lines(int fd, const char *lines, size_t length)
{
    struct stat before, after;
    bool is_file = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    size_t torn = is_file && is_torn(fd, before.st_size), written;
    int cause;

    if (write_some(fd, "\n", torn) != torn)
        return errno;
    written = write_some(fd, lines, length);
    if (written == length)
        return 0;
    cause = errno;
    if (is_file && torn + written > 0 && fstat(fd, &after) == 0 &&
        after.st_size == before.st_size + (off_t)(torn + written))
        (void)!ftruncate(fd, before.st_size);
    return cause;
}
