/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans the directory of claims after runs that were killed. */
#include "meter/claim_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"

enum { LOOKS_MAX = 512, FRESH_S = 10, KEY_MAX = 32 };
static const char suffix[] = ".lock";

/* Returns whether the name is "JOB.GPU.GPU-8f3a.lock" of another job. */
static bool is_anothers(const char *name, const char *job)
{
    size_t length = strlen(name), own = strlen(job);
    char key[KEY_MAX];

    if (length <= strlen(suffix) || strcmp(name + length - strlen(suffix), suffix) != 0 ||
        (strncmp(name, job, own) == 0 && name[own] == '.'))
        return false;
    for (int kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
        snprintf(key, sizeof key, ".%s.", device_kind_name((enum device_kind)kind));
        if (strstr(name, key) != NULL)
            return true;
    }
    return false;
}

static bool is_settled(const struct stat *status, uid_t uid)
{
    return S_ISREG(status->st_mode) && status->st_uid == uid &&
           (status->st_size > 0 || time(NULL) - status->st_mtime > FRESH_S);
}

static void sweep(int directory, const char *name, uid_t uid)
{
    int lock = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat held, named;

    if (lock < 0)
        return;
    if (fstat(lock, &held) == 0 && is_settled(&held, uid) && flock(lock, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == held.st_dev &&
        named.st_ino == held.st_ino)
        unlinkat(directory, name, 0);
    close(lock);
}

void claim_sweep(const char *directory, const char *job, uid_t uid)
{
    DIR *opened = opendir(directory);
    const struct dirent *entry;

    for (int looks = 0; opened != NULL && looks < LOOKS_MAX && (entry = readdir(opened)) != NULL;) {
        if (!is_anothers(entry->d_name, job))
            continue;
        sweep(dirfd(opened), entry->d_name, uid);
        looks++;
    }
    if (opened != NULL)
        closedir(opened);
}
