/* SPDX-License-Identifier: Apache-2.0 */
/* Distinguishes local file systems from network ones by statfs(2) and the list of mounts. */
#include "base/file/file_system.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/buffer.h"
#include "base/error.h"

enum { MOUNTINFO_MAX = 4 << 20, FUSE = 0x65735546 };

static const struct network {
    long type;
    const char *name;
} networks[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},      {0xFF534D42, "CIFS"},   {0xFE534D42, "SMB2"},
    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"}, {0x00C36400, "Ceph"},   {0x5346414F, "AFS"},
    {0x73757245, "Coda"},   {0x01021997, "9P"},   {0x19830326, "BeeGFS"}, {0x7461636F, "OCFS2"},
    {0x01161970, "GFS2"},   {FUSE, "FUSE"},       {0xAAD7AAEA, "PanFS"},  {0x013111A8, "IBRIX"},
    {0x564C, "NetWare"},    {0x6B414653, "kAFS"}, {0x61636673, "ACFS"},   {0x786F4256, "VirtualBox"},
};

/* What FUSE serves from a local disk: a block device, and the layers of rootless containers. */
static const char *const local_fuse[] = {"fuseblk", "fuse.fuse-overlayfs"};

const char *file_system_network(long type)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        if ((unsigned long)networks[i].type == ((unsigned long)type & 0xFFFFFFFFu))
            return networks[i].name;
    }
    return NULL;
}

const char *file_system_field(const char *text, char *out, size_t size)
{
    size_t length = 0;

    while (*text == ' ')
        text++;
    while (*text != ' ' && *text != '\n' && *text != '\0') {
        char character = *text++;

        if (character == '\\' && text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' &&
            text[2] >= '0' && text[2] <= '7') {
            character = (char)((text[0] - '0') * 64 + (text[1] - '0') * 8 + (text[2] - '0'));
            text += 3;
        }
        if (length + 1 < size)
            out[length++] = character;
    }
    out[length] = '\0';
    return text;
}

static bool holds(const char *mount, const char *path)
{
    size_t length = strlen(mount);

    if (length == 0 || strncmp(mount, path, length) != 0)
        return false;
    return mount[length - 1] == '/' || path[length] == '/' || path[length] == '\0';
}

/* Reads a line: "36 35 98:0 /root /mount/point options [optional ...] - type source options". */
static void read_mount(const char *line, char mount[PATH_MAX], char type[FILE_SYSTEM_NAME_MAX])
{
    char field[PATH_MAX];

    for (int i = 0; i < 4; i++)
        line = file_system_field(line, field, sizeof field);
    line = file_system_field(line, mount, PATH_MAX);
    do
        line = file_system_field(line, field, sizeof field);
    while (field[0] != '\0' && strcmp(field, "-") != 0);
    file_system_field(line, type, FILE_SYSTEM_NAME_MAX);
}

void file_system_mount_type(const char *mountinfo, const char *path, char out_type[FILE_SYSTEM_NAME_MAX])
{
    char mount[PATH_MAX], type[FILE_SYSTEM_NAME_MAX];
    size_t longest = 0;

    out_type[0] = '\0';
    while (*mountinfo != '\0') {
        read_mount(mountinfo, mount, type);
        if (holds(mount, path) && strlen(mount) >= longest && type[0] != '\0') {
            longest = strlen(mount);
            memcpy(out_type, type, sizeof type);
        }
        mountinfo += strcspn(mountinfo, "\n");
        if (*mountinfo == '\n')
            mountinfo++;
    }
}

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    int code = cause == ENOENT || cause == ENOTDIR ? FLY_ENOTFOUND : cause == EACCES ? FLY_EPERM : FLY_EREAD;

    return error_set(out_error, code, "cannot tell on what file system '%.300s' lies: %s; see 'df -T'", path,
                     strerror(cause));
}

/* Finds the type of the mount that holds a path in the list of mounts; "" if none does. */
static void find_mount_type(const char *path, const char *mountinfo, char out_type[FILE_SYSTEM_NAME_MAX])
{
    char *whole = realpath(path, NULL), piece[4096];
    FILE *stream = fopen(mountinfo, "re");
    struct buffer text;
    size_t count;

    out_type[0] = '\0';
    buffer_init(&text, MOUNTINFO_MAX);
    while (stream != NULL && (count = fread(piece, 1, sizeof piece, stream)) > 0)
        buffer_append(&text, piece, count);
    if (whole != NULL)
        file_system_mount_type(text.data, whole, out_type);
    buffer_deinit(&text);
    if (stream != NULL)
        fclose(stream);
    free(whole);
}

int file_system_find_network(const char *path, const struct file_system_source *source,
                             char out_name[FILE_SYSTEM_NAME_MAX], struct fly_error *out_error)
{
    static const struct file_system_source machine = {statfs, "/proc/self/mountinfo"};
    char mounted[FILE_SYSTEM_NAME_MAX];
    struct statfs status = {0};
    const char *name;

    if (source == NULL)
        source = &machine;
    if ((source->statfs != NULL ? source->statfs : statfs)(path, &status) < 0)
        return failed(path, errno, out_error);
    name = file_system_network((long)status.f_type);
    if (name != NULL && ((unsigned long)status.f_type & 0xFFFFFFFFu) == FUSE) {
        find_mount_type(path, source->mountinfo != NULL ? source->mountinfo : machine.mountinfo, mounted);
        if (mounted[0] != '\0')
            name = mounted;
        for (size_t i = 0; i < sizeof local_fuse / sizeof local_fuse[0]; i++) {
            if (strcmp(name, local_fuse[i]) == 0)
                name = "";
        }
    }
    snprintf(out_name, FILE_SYSTEM_NAME_MAX, "%s", name == NULL ? "" : name);
    return 0;
}
