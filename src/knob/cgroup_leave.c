/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mountinfo says where a hierarchy is mounted, and cgroup says where this process is in it. Both
 * use names, which the two files share for v1 ("memory", "name=systemd") and leave out for v2.
 */
#include "knob/cgroup_leave.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 64 << 10, WORDS_MAX = 24 };

/* A hierarchy's mount: which part of it is mounted where. */
struct mounted {
    const char *root, *point, *options;
    bool is_v2;
};

static void read_file(const char *proc_root, const char *name, char text[FILE_BYTES])
{
    char path[PATH_MAX];
    size_t length = 0;
    ssize_t more = 1;
    int fd;

    snprintf(path, sizeof path, "%s/self/%s", proc_root, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && more > 0 && length < FILE_BYTES - 1) {
        more = read(fd, text + length, FILE_BYTES - 1 - length);
        length += more > 0 ? (size_t)more : 0;
    }
    text[length] = '\0';
    if (fd >= 0)
        close(fd);
}

/*
 * Reads a line of mountinfo:
 *
 *     35 31 0:29 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
 *
 * Cuts the line into its words; false for other file systems. Leaves escapes alone: no hierarchy
 * is mounted at a name with blanks.
 */
static bool read_mount(char *line, struct mounted *out_mounted)
{
    char *words[WORDS_MAX];
    size_t count = 0, dash = 0;

    for (char *word = strsep(&line, " "); word != NULL && count < WORDS_MAX; word = strsep(&line, " "))
        words[count++] = word;
    while (dash < count && strcmp(words[dash], "-") != 0)
        dash++;
    if (dash < 6 || dash + 3 >= count || strncmp(words[dash + 1], "cgroup", strlen("cgroup")) != 0)
        return false;
    *out_mounted = (struct mounted){.root = words[3],
                                    .point = words[4],
                                    .options = words[dash + 3],
                                    .is_v2 = strcmp(words[dash + 1], "cgroup2") == 0};
    return true;
}

/* Returns whether the list "rw,memory" contains that word of `length`. */
static bool list_has(const char *list, const char *word, size_t length)
{
    while (*list != '\0') {
        size_t next = strcspn(list, ",");

        if (next == length && memcmp(list, word, length) == 0)
            return true;
        list += next + (list[next] == ',');
    }
    return false;
}

/* Returns the group if a line "4:memory:/job" or "0::/job" is about that hierarchy; else NULL. */
static const char *group_in(const char *line, const struct mounted *mounted)
{
    const char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
    size_t length;

    if (group == NULL)
        return NULL;
    length = strcspn(++names, ",:");
    if (mounted->is_v2 ? group != names : length == 0 || !list_has(mounted->options, names, length))
        return NULL;
    return group + 1;
}

/* Returns the part of the group below the mount's root, "" or "/a/b"; NULL if it is not below. */
static const char *below(const char *group, const char *root)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(group, root, length) != 0 || (group[length] != '/' && group[length] != '\0') ||
        strstr(group, "/..") != NULL)
        return NULL;
    group += length;
    return strcmp(group, "/") == 0 ? "" : group;
}

/* Moves this process into a group; returns 0 or errno. */
static int enter(const char *group)
{
    char path[PATH_MAX], pid[24];
    int fd, cause = 0, length = snprintf(pid, sizeof pid, "%lld\n", (long long)getpid());

    if (snprintf(path, sizeof path, "%s/cgroup.procs", group) >= (int)sizeof path)
        return ENAMETOOLONG;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (write(fd, pid, (size_t)length) != length)
        cause = errno;
    close(fd);
    return cause;
}

static bool enter_or_make(const char *group)
{
    char own[PATH_MAX];
    int cause = enter(group);

    /* EBUSY: the group has groups below, to which it hands its controllers. */
    if (cause != EBUSY || snprintf(own, sizeof own, "%s/" CGROUP_LEAVE_GROUP, group) >= (int)sizeof own)
        return cause == 0;
    return (mkdir(own, 0755) == 0 || errno == EEXIST) && enter(own) == 0;
}

/* Tries the groups from the top down to the one above ours, and enters the first that it may enter. */
static bool go_up(const struct cgroup_place *place)
{
    const char *rest = place->below;
    char path[PATH_MAX];

    if (rest[0] == '\0' || strstr(rest, "/" CGROUP_LEAVE_GROUP) != NULL)
        return false;
    for (const char *end = rest; end != NULL; end = strchr(end + 1, '/')) {
        if (snprintf(path, sizeof path, "%s%.*s", place->point, (int)(end - rest), rest) < (int)sizeof path &&
            enter_or_make(path))
            return true;
    }
    return false;
}

bool cgroup_find(char *mount_line, const char *groups, struct cgroup_place *out_place)
{
    struct mounted mounted;
    char line[PATH_MAX];

    if (!read_mount(mount_line, &mounted))
        return false;
    while (*groups != '\0') {
        size_t length = strcspn(groups, "\n");
        const char *group = NULL, *rest;

        if (length < sizeof line) {
            memcpy(line, groups, length);
            line[length] = '\0';
            group = group_in(line, &mounted);
        }
        if (group != NULL) {
            rest = below(group, mounted.root);
            out_place->point = mounted.point;
            snprintf(out_place->below, sizeof out_place->below, "%s", rest != NULL ? rest : "");
            return rest != NULL;
        }
        groups += length + (groups[length] == '\n');
    }
    return false;
}

size_t cgroup_leave(const char *proc_root)
{
    static char mounts[FILE_BYTES], groups[FILE_BYTES]; /* large; called by one thread only */
    char *rest = mounts;
    struct cgroup_place place;
    size_t count = 0;

    read_file(proc_root, "mountinfo", mounts);
    read_file(proc_root, "cgroup", groups);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        count += cgroup_find(line, groups, &place) && go_up(&place);
    return count;
}
