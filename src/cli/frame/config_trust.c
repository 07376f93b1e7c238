/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers and network mounts show files of unknown owners as the overflow uid's. Such a file
 * is trusted on a read-only mount, as an orchestrator mounts configuration; elsewhere its owner
 * may be anybody.
 */
#include "cli/frame/config_trust.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A group whose entry is longer than this has members besides its owner. */
enum { USUAL_OVERFLOW_UID = 65534, ENTRY_MAX = 4096 };

const char *config_trust_refusal(const struct config_trust *trust)
{
    bool owned = trust->owner == 0 || trust->owner == trust->user || (trust->unmapped && trust->on_read_only);

    if (trust->strange_link)
        return "it is a link that belongs to somebody else than you or root";
    if (!owned)
        return "it belongs to somebody else than you or root";
    if (trust->mode & S_IWOTH)
        return "anybody may write it";
    if ((trust->mode & S_IWGRP) && !trust->own_group)
        return "a group with others than its owner may write it";
    return NULL;
}

static uid_t overflow_uid(void)
{
    char text[32] = "";
    int fd = open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    return length > 0 ? (uid_t)strtoul(text, NULL, 10) : USUAL_OVERFLOW_UID;
}

/*
 * Returns whether it is root's group, or a group as adduser makes one for a user: primary, of the
 * same name, without other members.
 */
static bool is_own_group(uid_t owner, gid_t gid)
{
    char user_text[ENTRY_MAX], group_text[ENTRY_MAX];
    struct passwd user_entry, *user = NULL;
    struct group group_entry, *group = NULL;
    bool own;

    if (owner == 0 && gid == 0)
        return true;
    if (getpwuid_r(owner, &user_entry, user_text, sizeof user_text, &user) != 0 ||
        getgrgid_r(gid, &group_entry, group_text, sizeof group_text, &group) != 0)
        return false;
    own = user != NULL && group != NULL && user->pw_gid == gid && strcmp(group->gr_name, user->pw_name) == 0;
    for (char **member = own ? group->gr_mem : NULL; member != NULL && *member != NULL; member++)
        own = own && strcmp(*member, user->pw_name) == 0;
    return own;
}

int config_trust_read(const char *path, int fd, struct config_trust *out_trust)
{
    struct stat status, link;
    struct statvfs mount;

    if (fstat(fd, &status) < 0 || fstatvfs(fd, &mount) < 0 || lstat(path, &link) < 0)
        return -1;
    *out_trust = (struct config_trust){
        .user = geteuid(),
        .owner = status.st_uid,
        .mode = status.st_mode,
        .own_group = (status.st_mode & S_IWGRP) && is_own_group(status.st_uid, status.st_gid),
        .unmapped = status.st_uid == overflow_uid(),
        .on_read_only = (mount.f_flag & ST_RDONLY) != 0,
        .strange_link = S_ISLNK(link.st_mode) && link.st_uid != 0 && link.st_uid != geteuid(),
    };
    return 0;
}
