/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_MAX = 1024, PATH_BYTES_MAX = 64 };

/* Numbered as in proc(5). */
enum { FIELD_PARENT = 4, FIELD_START = 22 };

bool process_stat_parse(const char *text, struct process_stat *out_stat)
{
    /* A program's name may contain anything, even a parenthesis. */
    const char *end = strrchr(text, ')');
    const char *name = strchr(text, '(');
    struct process_stat stat;
    char *at;

    if (end == NULL || name == NULL || name > end || end[1] != ' ' || end[2] == '\0')
        return false;
    snprintf(stat.name, sizeof stat.name, "%.*s", (int)(end - name - 1), name + 1);
    stat.state = end[2];
    stat.parent = (pid_t)strtol(end + 3, &at, 10);
    for (int i = FIELD_PARENT + 1; i < FIELD_START; i++)
        (void)strtoll(at, &at, 10);
    stat.start = strtoull(at, &at, 10);
    if (stat.parent < 0 || *at != ' ')
        return false;
    *out_stat = stat;
    return true;
}

bool process_stat_read(pid_t pid, struct process_stat *out_stat)
{
    char path[PATH_BYTES_MAX], text[STAT_MAX];
    ssize_t length;
    int file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return process_stat_parse(text, out_stat);
}

bool process_stat_is_over(const struct process_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}
