/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"

const char state_magic[STATE_MAGIC_BYTES] = "flyball-emulator-state/9";
static const char any_layout[] = "flyball-emulator-state/";

void state_read_boot(char out_boot[STATE_BOOT_BYTES])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out_boot, STATE_BOOT_BYTES - 1) : 0;

    out_boot[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

enum state_kind state_kind(int fd)
{
    struct state_head head = {.magic = ""};
    char boot[STATE_BOOT_BYTES];
    ssize_t length = pread(fd, &head, sizeof head, 0);

    if (length == 0)
        return STATE_EMPTY;
    if (length < 0 || memcmp(head.magic, any_layout, sizeof any_layout - 1) != 0)
        return STATE_FOREIGN;
    if (memcmp(head.magic, state_magic, sizeof head.magic) != 0)
        return STATE_OF_OTHER_LAYOUT;
    state_read_boot(boot);
    return strncmp(head.boot, boot, sizeof boot) == 0 ? STATE_USABLE : STATE_OF_EARLIER_BOOT;
}

bool state_is_named(int directory, const char *name, int fd)
{
    struct stat there, open_file;

    return fstat(fd, &open_file) == 0 && fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           there.st_dev == open_file.st_dev && there.st_ino == open_file.st_ino;
}

/* Whether a line of a process's maps is of the file: begin-end permissions offset major:minor inode path. */
static bool is_map_of(const char *line, const struct stat *file)
{
    unsigned long major_number, minor_number;
    char *end;

    for (int i = 0; i < 3; i++) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    major_number = strtoul(line, &end, 16);
    if (*end != ':')
        return false;
    minor_number = strtoul(end + 1, &end, 16);
    return strtoull(end, NULL, 10) == file->st_ino &&
           makedev((unsigned)major_number, (unsigned)minor_number) == file->st_dev;
}

static bool maps(const char *pid, const struct stat *file)
{
    char path[64];
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    FILE *list;

    snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
    list = fopen(path, "re");
    while (list != NULL && !found && getline(&line, &capacity, list) > 0)
        found = is_map_of(line, file);
    free(line);
    if (list != NULL)
        fclose(list);
    return found;
}

/* A process that has mapped the file; 0 when there is none. Those of other users do not show their maps. */
static uint64_t process_of(const struct stat *file)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    uint64_t pid = 0;
    bool found = false;

    while (processes != NULL && !found && (entry = readdir(processes)) != NULL)
        found = number_parse_u64(entry->d_name, INT32_MAX, &pid) && maps(entry->d_name, file);
    if (processes != NULL)
        closedir(processes);
    return found ? pid : 0;
}

/* Whether the file may go. A run holds a lock on its own, which is also seen from another container. */
static int unused(int fd, const char *path, struct fly_error *out_error)
{
    struct stat file;
    uint64_t pid;

    if (fstat(fd, &file) < 0)
        return error_set(out_error, FLY_EREAD, "emulator state '%s': %s", path, strerror(errno));
    if (file.st_uid != geteuid())
        return error_set(
            out_error, FLY_EPERM,
            "emulator state '%s' is of another version and belongs to user %u; name another file "
            "in FLYBALL_EMULATOR_STATE",
            path, (unsigned)file.st_uid);
    pid = process_of(&file);
    if (pid > 0)
        return error_set(out_error, FLY_EBUSY,
                         "emulator state '%s' is of another version of the emulator, and process %u uses it; "
                         "end that process, or name another file in FLYBALL_EMULATOR_STATE",
                         path, (unsigned)pid);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(out_error, FLY_EBUSY,
                         "emulator state '%s' is of another version of the emulator, and a process uses it; "
                         "end that, or name another file in FLYBALL_EMULATOR_STATE",
                         path);
    return 0;
}

/*
 * Whoever holds this lock of an open file may remove its name. Another kind of lock than an owner's, so that
 * the two do not meet; it is held for moments only.
 */
static bool lock_removal(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLKW, &whole) == 0;
}

int leftover_remove(const char *path, struct fly_error *out_error)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    enum state_kind kind = fd >= 0 ? state_kind(fd) : STATE_USABLE;
    int code = 0;

    if ((kind == STATE_OF_EARLIER_BOOT || kind == STATE_OF_OTHER_LAYOUT) && lock_removal(fd) &&
        state_is_named(AT_FDCWD, path, fd)) {
        code = kind == STATE_OF_OTHER_LAYOUT ? unused(fd, path, out_error) : 0;
        if (code == 0 && unlink(path) < 0)
            code = error_set(out_error, FLY_EWRITE,
                             "emulator state '%s': removing failed: %s; name another file in "
                             "FLYBALL_EMULATOR_STATE",
                             path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return code;
}
