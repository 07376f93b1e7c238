/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/host_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file/file_system.h"

enum { MOUNTS_MAX = 4 << 20, EVENTS_MAX = 1 << 12, NAME_MAX_BYTES = 64 };

/*
 * Reads a line of /proc/PID/cgroup, "4:memory:/path" or "0::/path"; stores its path if it is of that
 * controller.
 */
static bool read_cgroup(const char *line, const char *controller, char out_path[HOST_MEMORY_PATH_MAX])
{
    size_t wanted = strlen(controller), length = strcspn(line, "\n");
    const char *list = memchr(line, ':', length), *path;

    path = list != NULL ? memchr(list + 1, ':', length - (size_t)(list + 1 - line)) : NULL;
    if (path == NULL || (size_t)(line + length - path) > HOST_MEMORY_PATH_MAX || path[1] != '/')
        return false;
    snprintf(out_path, HOST_MEMORY_PATH_MAX, "%.*s", (int)(line + length - path - 1), path + 1);
    for (const char *at = list + 1; at <= path; at += strcspn(at, ",:") + 1) {
        size_t count = strcspn(at, ",:");

        if (count == wanted && strncmp(at, controller, count) == 0)
            return strstr(out_path, "/..") == NULL;
    }
    return false;
}

static const char *next_line(const char *text)
{
    text += strcspn(text, "\n");
    return *text == '\n' ? text + 1 : text;
}

static bool find_cgroup(const char *cgroups, const char *controller, char out_path[HOST_MEMORY_PATH_MAX])
{
    for (; *cgroups != '\0'; cgroups = next_line(cgroups)) {
        if (read_cgroup(cgroups, controller, out_path))
            return true;
    }
    return false;
}

/* A mount of a cgroup file system. */
struct cgroup_mount {
    char root[HOST_MEMORY_PATH_MAX], point[HOST_MEMORY_PATH_MAX];
    char type[NAME_MAX_BYTES], options[HOST_MEMORY_PATH_MAX];
};

/* "36 35 98:0 /root /mount/point options [optional ...] - type source options". */
static void read_mount(const char *line, struct cgroup_mount *mount)
{
    char field[HOST_MEMORY_PATH_MAX];

    for (int i = 0; i < 3; i++)
        line = file_system_field(line, field, sizeof field);
    line = file_system_field(line, mount->root, sizeof mount->root);
    line = file_system_field(line, mount->point, sizeof mount->point);
    do
        line = file_system_field(line, field, sizeof field);
    while (field[0] != '\0' && strcmp(field, "-") != 0);
    line = file_system_field(line, mount->type, sizeof mount->type);
    line = file_system_field(line, field, sizeof field);
    file_system_field(line, mount->options, sizeof mount->options);
}

static bool has_option(const char *options, const char *wanted)
{
    for (const char *at = options; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0')) {
        if (strcspn(at, ",") == strlen(wanted) && strncmp(at, wanted, strlen(wanted)) == 0)
            return true;
    }
    return false;
}

/* The rest of the path beneath the mounted part of the tree; NULL for a path outside it. */
static const char *beneath(const char *path, const char *root)
{
    size_t length = strlen(root);

    if (strcmp(root, "/") == 0)
        return path;
    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path + length;
}

bool host_memory_find(const char *cgroups, const char *mounts, char out_file[HOST_MEMORY_PATH_MAX])
{
    struct cgroup_mount mount;
    char path[HOST_MEMORY_PATH_MAX];
    bool first = find_cgroup(cgroups, "memory", path);

    if (!first && !find_cgroup(cgroups, "", path))
        return false;
    for (; *mounts != '\0'; mounts = next_line(mounts)) {
        const char *rest;
        int length;

        read_mount(mounts, &mount);
        if (strcmp(mount.type, first ? "cgroup" : "cgroup2") != 0 ||
            (first && !has_option(mount.options, "memory")))
            continue;
        rest = beneath(path, mount.root);
        if (rest == NULL)
            continue;
        length = snprintf(out_file, HOST_MEMORY_PATH_MAX, "%s%s/%s", mount.point,
                          strcmp(rest, "/") == 0 ? "" : rest, first ? "memory.oom_control" : "memory.events");
        return length < HOST_MEMORY_PATH_MAX;
    }
    return false;
}

/* Reads a file as text, up to the buffer's maximum; "" when it cannot be read. */
static void read_text(const char *root, const char *path, struct buffer *out)
{
    char whole[PATH_MAX], piece[4096];
    ssize_t count = 0;
    int file = -1;

    if (snprintf(whole, sizeof whole, "%s%s", root, path) < (int)sizeof whole)
        file = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file >= 0 && (count = read(file, piece, sizeof piece)) > 0)
        buffer_append(out, piece, (size_t)count);
    if (file >= 0)
        close(file);
}

static bool read_count(const char *line, uint64_t *out_count)
{
    static const char word[] = "oom_kill ";
    char *end;

    if (strncmp(line, word, sizeof word - 1) != 0 || line[sizeof word - 1] < '0' ||
        line[sizeof word - 1] > '9')
        return false;
    *out_count = strtoull(line + sizeof word - 1, &end, 10);
    return *end == '\n' || *end == '\0';
}

/* Reads the number after "oom_kill" at the begin of a line. */
static bool read_kills(const char *root, const char *path, uint64_t *out_kills)
{
    struct buffer text;
    bool found = false;

    buffer_init(&text, EVENTS_MAX);
    read_text(root, path, &text);
    for (const char *line = text.error == 0 ? text.data : ""; *line != '\0' && !found; line = next_line(line))
        found = read_count(line, out_kills);
    buffer_deinit(&text);
    return found;
}

/* Finds the file of the process if its cgroups have changed; "" if not. */
static void find_file(struct host_memory *memory, pid_t pid, char out_file[HOST_MEMORY_PATH_MAX])
{
    struct buffer cgroups, mounts;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    out_file[0] = '\0';
    buffer_init(&cgroups, sizeof memory->cgroups - 1);
    buffer_init(&mounts, MOUNTS_MAX);
    read_text(memory->root, path, &cgroups);
    if (cgroups.error == 0 && cgroups.length > 0 && strcmp(cgroups.data, memory->cgroups) != 0) {
        snprintf(memory->cgroups, sizeof memory->cgroups, "%s", cgroups.data);
        read_text(memory->root, "/proc/self/mountinfo", &mounts);
        if (mounts.error != 0 || !host_memory_find(cgroups.data, mounts.data, out_file))
            out_file[0] = '\0';
    }
    buffer_deinit(&mounts);
    buffer_deinit(&cgroups);
}

void host_memory_look(struct host_memory *memory, pid_t pid)
{
    char file[HOST_MEMORY_PATH_MAX] = "";
    uint64_t kills = 0;

    find_file(memory, pid, file);
    (void)host_memory_kills(memory);
    /* A process that has ended is in no cgroup: the one that it was in still counts. */
    if (file[0] == '\0' || strcmp(file, memory->file) == 0 || !read_kills(memory->root, file, &kills))
        return;
    memory->elsewhere += memory->newest - memory->before;
    memory->before = memory->newest = kills;
    snprintf(memory->file, sizeof memory->file, "%s", file);
}

uint64_t host_memory_kills(struct host_memory *memory)
{
    uint64_t kills = 0;

    if (memory->file[0] != '\0' && read_kills(memory->root, memory->file, &kills) && kills > memory->newest)
        memory->newest = kills;
    return memory->elsewhere + memory->newest - memory->before;
}
