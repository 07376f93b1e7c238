/* SPDX-License-Identifier: Apache-2.0 */
#include "device/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

void sysfs_root(const struct device_options *options, char root[SYSFS_PATH_MAX])
{
    size_t length;

    snprintf(root, SYSFS_PATH_MAX, "%s", options->sysfs_root != NULL ? options->sysfs_root : "");
    length = strlen(root);
    while (length > 0 && root[length - 1] == '/')
        root[--length] = '\0';
}

bool sysfs_path(char path[SYSFS_PATH_MAX], const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(path, SYSFS_PATH_MAX, format, arguments);
    va_end(arguments);
    if (length >= 0 && length < SYSFS_PATH_MAX)
        return true;
    path[0] = '\0';
    return false;
}

int sysfs_pread_text(int file, char *text, size_t size)
{
    ssize_t length = pread(file, text, size, 0);
    char *newline;

    if (length < 0)
        return -errno;
    newline = memchr(text, '\n', (size_t)length);
    if (newline != NULL)
        length = newline - text;
    if ((size_t)length == size)
        return -EMSGSIZE;
    text[length] = '\0';
    return strlen(text) == (size_t)length ? (int)length : -EBADMSG;
}

int sysfs_read_text(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int length;

    if (file < 0)
        return -errno;
    length = sysfs_pread_text(file, text, size);
    close(file);
    return length;
}

int sysfs_pread_u64(int file, uint64_t maximum, uint64_t *out_value)
{
    char text[SYSFS_TEXT_MAX];
    int length = sysfs_pread_text(file, text, sizeof text);

    if (length < 0)
        return length;
    return number_parse_u64(text, maximum, out_value) ? 0 : -EBADMSG;
}

int sysfs_read_u64(const char *path, uint64_t maximum, uint64_t *out_value)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int code;

    if (file < 0)
        return -errno;
    code = sysfs_pread_u64(file, maximum, out_value);
    close(file);
    return code;
}

int sysfs_each_numbered(const char *directory, const char *prefix,
                        int (*visit)(void *data, const char *path, unsigned number), void *data)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, NULL, versionsort);
    int code = 0;

    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char path[SYSFS_PATH_MAX];
        uint64_t number;

        if (code == 0 && strncmp(name, prefix, strlen(prefix)) == 0 &&
            number_parse_u64(name + strlen(prefix), UINT32_MAX, &number) &&
            sysfs_path(path, "%s/%s", directory, name))
            code = visit(data, path, (unsigned)number);
        free(entries[i]);
    }
    free(entries);
    return code;
}

struct reading sysfs_failed_reading(int error)
{
    static const struct {
        int error;
        enum reading_state state;
    } states[] = {
        {EACCES, READING_DENIED}, {EPERM, READING_DENIED},       {ENODEV, READING_LOST},
        {ENXIO, READING_LOST},    {ENOENT, READING_UNSUPPORTED},
    };

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (states[i].error == error)
            return (struct reading){.state = states[i].state, .code = error};
    }
    return (struct reading){.state = READING_FAILED, .code = error};
}
