/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before a program, it makes all below $HUNG_PLACE a file system whose server has gone: looking
 * for something there, opening it or making it durable does not come back while the file $HUNG_WHILE exists.
 */
/* Both names of each function are defined here. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The library's names of parameters are its own.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

static void hang_at(const char *path)
{
    const char *place = getenv("HUNG_PLACE"), *mark = getenv("HUNG_WHILE");

    if (place == NULL || mark == NULL || strncmp(path, place, strlen(place)) != 0)
        return;
    while (access(mark, F_OK) == 0)
        usleep(5000);
}

static int open_there(const char *path, int flags, mode_t mode)
{
    hang_at(path);
    return openat(AT_FDCWD, path, flags, mode);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_there(path, flags, mode);
}

__attribute__((visibility("default"))) int open64(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_there(path, flags, mode);
}

__attribute__((visibility("default"))) int fdatasync(int file)
{
    char link[64], path[4096];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        hang_at(path);
    }
    return fsync(file);
}

__attribute__((visibility("default"))) int mkdir(const char *path, mode_t mode)
{
    hang_at(path);
    return mkdirat(AT_FDCWD, path, mode);
}

__attribute__((visibility("default"))) DIR *opendir(const char *path)
{
    DIR *(*real)(const char *path);

    hang_at(path);
    *(void **)&real = dlsym(RTLD_NEXT, "opendir");
    return real(path);
}

__attribute__((visibility("default"))) int scandir64(const char *path, struct dirent64 ***list,
                                                     int (*filter)(const struct dirent64 *entry),
                                                     int (*order)(const struct dirent64 **one,
                                                                  const struct dirent64 **other))
{
    int (*real)(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *entry),
                int (*order)(const struct dirent64 **one, const struct dirent64 **other));

    hang_at(path);
    *(void **)&real = dlsym(RTLD_NEXT, "scandir64");
    return real(path, list, filter, order);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
