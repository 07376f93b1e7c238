/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches /proc for the locked file among the files of each process, and checks whether that
 * process owns the lock. It does not use the owner of /proc/PID, since a process can make itself
 * appear as root's.
 */
#include "knob/lock_holder.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 64, STATUS_BYTES = 2048 };

/* Reads the beginning of a file of the kernel; empty if it cannot be read. */
static void read_text(const char *path, char text[STATUS_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, STATUS_BYTES - 1) : 0;

    text[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

bool lock_holder_uid(pid_t pid, uid_t *out_uid)
{
    char path[PATH_BYTES], text[STATUS_BYTES];
    const char *at;

    snprintf(path, sizeof path, "/proc/%lld/status", (long long)pid);
    read_text(path, text);
    at = strstr(text, "\nUid:\t");
    if (at != NULL)
        *out_uid = (uid_t)strtoul(at + strlen("\nUid:\t"), NULL, 10);
    return at != NULL;
}

/* Returns whether that open file of a process, known to be the right one, holds a lock. */
static bool is_locked(long long pid, const char *fd)
{
    char path[PATH_BYTES], text[STATUS_BYTES];

    snprintf(path, sizeof path, "/proc/%lld/fdinfo/%.10s", pid, fd);
    read_text(path, text);
    return strstr(text, "FLOCK") != NULL;
}

static bool holds(long long pid, const struct stat *lock)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    struct stat status;
    bool found = false;
    DIR *files;

    snprintf(path, sizeof path, "/proc/%lld/fd", pid);
    files = opendir(path);
    while (files != NULL && !found && (entry = readdir(files)) != NULL)
        found = isdigit((unsigned char)entry->d_name[0]) &&
                fstatat(dirfd(files), entry->d_name, &status, 0) == 0 && status.st_dev == lock->st_dev &&
                status.st_ino == lock->st_ino && is_locked(pid, entry->d_name);
    if (files != NULL)
        closedir(files);
    return found;
}

bool lock_holder_is(int lock, pid_t pid)
{
    struct stat status;

    return fstat(lock, &status) == 0 && holds(pid, &status);
}

bool lock_holder_find(int lock, struct lock_holder *out_holder)
{
    const struct dirent *entry;
    struct stat status;
    bool found = false;
    DIR *processes = fstat(lock, &status) == 0 ? opendir("/proc") : NULL;

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        uid_t uid;

        if (pid <= 0 || pid == getpid() || !holds(pid, &status) || !lock_holder_uid(pid, &uid))
            continue;
        if (!found || uid == 0)
            *out_holder = (struct lock_holder){pid, uid};
        found = true;
    }
    if (processes != NULL)
        closedir(processes);
    return found;
}
