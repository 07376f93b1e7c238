/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads configuration files through libinih. The library gives neither line numbers (as
 * distributions build it) nor an error for a line that it cuts, so it reads through our own
 * reader, which counts lines and measures them. The reader also drops leading blanks, which would
 * otherwise make an indented key the continuation of the value before it.
 */
#include "cli/frame/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ini.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"

/*
 * Containers and network mounts show files of unknown owners as the overflow uid's. Such a file
 * is trusted on a read-only mount, as an orchestrator mounts configuration; elsewhere its owner
 * may be anybody.
 */

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

/* inih cuts sections and names at 49 bytes; here they are refused one byte earlier. */
enum { INI_NAME_MAX = 48 };

struct ini_source {
    const char *name;
    const char *next; /* the rest of the text */
    const char *end;
    size_t line; /* number of the line that was read last */
    config_entry_fn *take;
    void *data;
    int result; /* of the first error, found here or by `take` */
    struct fly_error error;
};

static size_t line_length(const char *start, const char *end)
{
    const char *newline = memchr(start, '\n', (size_t)(end - start));

    return (size_t)((newline == NULL ? end : newline) - start);
}

/* Tells `take` that a section begins, which inih does not report. */
static void source_take_section(struct ini_source *source, char *line)
{
    char *end = strchr(line, ']');
    struct config_entry entry = {.section = line + 1, .line = source->line};

    if (line[0] != '[' || end == NULL)
        return;
    *end = '\0';
    if (strcmp(entry.section, "flyball") == 0)
        entry.section = "";
    source->result = source->take(source->data, &entry, &source->error);
    *end = ']';
}

/* Returns the next line without its leading blanks and its end, as fgets would; see ini_reader. */
static char *source_read_line(char *out_line, int size, void *data)
{
    struct ini_source *source = data;
    size_t length = line_length(source->next, source->end);
    const char *start = source->next;

    if (source->result < 0 || source->next == source->end)
        return NULL;
    source->line++;
    source->next += length + (source->next + length < source->end);
    for (; length > 0 && (*start == ' ' || *start == '\t'); length--)
        start++;
    if (length + 2 > (size_t)size)
        source->result =
            error_set(&source->error, FLY_ECONFIG, "%s:%zu: the line is longer than %d bytes; shorten it",
                      source->name, source->line, size - 2);
    else if (memchr(start, '\0', length) != NULL)
        source->result =
            error_set(&source->error, FLY_ECONFIG, "%s:%zu: the line holds a NUL byte; remove it",
                      source->name, source->line);
    if (source->result < 0)
        return NULL;
    memcpy(out_line, start, length);
    memcpy(out_line + length, "\n", 2);
    source_take_section(source, out_line);
    return out_line;
}

static int source_take(void *data, const char *section, const char *name, const char *value)
{
    struct ini_source *source = data;
    struct config_entry entry = {section, name, value, source->line};

    if (source->result < 0)
        return 0;
    if (strcmp(section, "flyball") == 0)
        entry.section = "";
    if (strlen(section) > INI_NAME_MAX || strlen(name) > INI_NAME_MAX)
        source->result = error_set(
            &source->error, FLY_ECONFIG, "%s:%zu: section or key '%s' is longer than %d bytes; shorten it",
            source->name, source->line, strlen(name) > INI_NAME_MAX ? name : section, INI_NAME_MAX);
    else
        source->result = source->take(source->data, &entry, &source->error);
    return source->result == 0;
}

int config_text_parse(const char *name, const char *text, size_t length, config_entry_fn *take, void *data,
                      struct fly_error *out_error)
{
    struct ini_source source = {.name = name, .next = text, .end = text + length, .take = take, .data = data};
    int line = ini_parse_stream(source_read_line, &source, source_take, &source);

    /* inih continues after a line that it does not understand, so the earlier complaint counts. */
    if (line > 0 && (source.result == 0 || (size_t)line < source.line))
        return error_set(out_error, FLY_ECONFIG,
                         "%s:%d: the line is neither '[section]' nor 'key = value'; correct it", name, line);
    if (source.result < 0)
        return error_set(out_error, source.result, "%s", source.error.text);
    return line < 0 ? error_no_memory(out_error) : 0;
}

static int read_failed(const char *path, const char *cause, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ECONFIG, "reading configuration '%s' failed: %s; correct or remove it",
                     path, cause);
}

/* Appends the rest of an open file. Returns 0, or -1 with errno. */
static int read_all(int fd, struct buffer *text)
{
    char bytes[4096];
    ssize_t count;

    while ((count = read(fd, bytes, sizeof bytes)) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        buffer_append(text, bytes, (size_t)count);
        if (text->error < 0) {
            errno = text->error == FLY_ENOMEM ? ENOMEM : EFBIG;
            return -1;
        }
    }
    return 0;
}

/*
 * Returns why an open file must not be read, NULL if it may be. A file whose facts cannot be read
 * must not be.
 */
static const char *refusal_of(const char *path, int fd)
{
    struct config_trust trust;

    return config_trust_read(path, fd, &trust) < 0 ? "its owner cannot be told"
                                                   : config_trust_refusal(&trust);
}

int config_file_read(const char *path, struct buffer *text, bool *out_exists, const char **out_refusal,
                     struct fly_error *out_error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *refusal = fd >= 0 && out_refusal != NULL ? refusal_of(path, fd) : NULL;
    int result = 0;

    *out_exists = false;
    if (out_refusal != NULL)
        *out_refusal = refusal;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return read_failed(path, strerror(errno), out_error);
    if (refusal != NULL) {
        close(fd);
        return 0;
    }
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
        result = read_failed(path, S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file",
                             out_error);
    else if (read_all(fd, text) < 0)
        result = read_failed(path, errno == EFBIG ? "it is larger than 1 MiB" : strerror(errno), out_error);
    else
        *out_exists = true;
    close(fd);
    return result;
}
