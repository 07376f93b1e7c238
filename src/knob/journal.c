/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries on disk. They are not written through base/file/atomic_file, because that follows links: in
 * a directory to which all users can write, a user could use a link to make root write elsewhere.
 */
#include "knob/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "knob/runtime_directory.h"

static const char *const suffixes[] = {[JOURNAL_TURNED] = ".turned",
                                       [JOURNAL_TURNED_2] = ".turned2",
                                       [JOURNAL_OWED] = ".owed",
                                       [JOURNAL_KEPT] = ".kept",
                                       [JOURNAL_KEPT_2] = ".kept2"};
_Static_assert(sizeof suffixes / sizeof suffixes[0] == JOURNAL_KIND_COUNT, "a suffix for every kind");

/* Suffix of a file that is being written; one that kill -9 left behind is never read. */
static const char unfinished[] = ".new";

/* The quantities of the first files, for ever. */
/* How long a session, and a training in the same program with it, waits for the disk. */
static const double patience_s = 5.0;

static const quantity_set first_quantities = QUANTITY_BIT(QUANTITY_POWER_LIMIT) |
                                             QUANTITY_BIT(QUANTITY_CLOCK_CEILING) |
                                             QUANTITY_BIT(QUANTITY_PERSISTENCE);

enum journal_kind journal_kind_of(enum journal_kind kind, enum quantity quantity)
{
    return kind == JOURNAL_OWED || (QUANTITY_BIT(quantity) & first_quantities) != 0
               ? kind
               : (enum journal_kind)(kind + 1);
}

bool journal_is_kept(enum journal_kind kind)
{
    return kind >= JOURNAL_KEPT;
}

/* Returns the first of the two files to which this one belongs. */
static enum journal_kind first_of(enum journal_kind kind)
{
    if (kind == JOURNAL_OWED)
        return JOURNAL_OWED;
    return journal_is_kept(kind) ? JOURNAL_KEPT : JOURNAL_TURNED;
}

int journal_path(const char *directory, const char *uuid, const char *suffix, char out_path[JOURNAL_PATH_MAX],
                 struct fly_error *out_error)
{
    int length = snprintf(out_path, JOURNAL_PATH_MAX, "%s/%s%s", directory, uuid, suffix);

    if (uuid[0] == '\0' || uuid[0] == '.' || strpbrk(uuid, "/\n") != NULL || length >= JOURNAL_PATH_MAX)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the GPU's name '%.96s' can be no name of a file, so that its knobs are not turned; "
                         "see what 'nvidia-smi -L' calls it",
                         uuid);
    return 0;
}

static int write_failed(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(
        out_error, cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EWRITE,
        "the journal's entry '%s' cannot be written: %s; free space there, look at its owner, or name "
        "another directory in FLYBALL_RUNTIME_DIR",
        path, strerror(cause));
}

/* Brings the names in the directory to the disk; returns 0 or errno. */
static int sync_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), cause = 0;

    if (fd < 0)
        return errno;
    if (fsync(fd) < 0 && errno != EINVAL)
        cause = errno;
    close(fd);
    return cause;
}

/* Writes a new file with that text to the disk; returns 0 or errno. */
static int write_new(const char *path, const char *text, size_t length)
{
    static const int how = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, how, 0644), cause = 0;
    ssize_t written;

    if (fd < 0 && errno == EEXIST) {
        cause = runtime_directory_make_room(path);
        fd = cause == 0 ? open(path, how, 0644) : -1;
    }
    if (fd < 0)
        return cause != 0 ? cause : errno;
    written = write(fd, text, length);
    if (written != (ssize_t)length)
        cause = written < 0 ? errno : ENOSPC;
    else if (fchmod(fd, 0644) < 0 || fsync(fd) < 0)
        cause = errno;
    if (close(fd) < 0 && cause == 0)
        cause = errno;
    return cause;
}

/* Renames over whatever is there; returns 0 or errno. */
static int rename_over(const char *from, const char *to)
{
    if (rename(from, to) == 0)
        return 0;
    if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST)
        return errno;
    (void)runtime_directory_make_room(to);
    return rename(from, to) == 0 ? 0 : errno;
}

/* Returns the entry with those of its turns that belong into a file. */
static struct journal_entry part_of(const struct journal_entry *entry, enum journal_kind kind)
{
    struct journal_entry part = *entry;

    part.turn_count = 0;
    for (size_t i = 0; i < entry->turn_count; i++) {
        if (journal_kind_of(first_of(kind), entry->turns[i].quantity) == kind)
            part.turns[part.turn_count++] = entry->turns[i];
    }
    return part;
}

static int remove_now(const char *directory, enum journal_kind kind, const char *uuid,
                      struct fly_error *out_error);

static int write_now(const char *directory, enum journal_kind kind, const struct journal_entry *entry,
                     struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX], temporary[JOURNAL_PATH_MAX + 16], text[JOURNAL_TEXT_MAX];
    struct journal_entry part = part_of(entry, kind);
    int cause, code = journal_path(directory, entry->uuid, suffixes[kind], path, out_error);

    if (code < 0)
        return code;
    if (part.turn_count == 0)
        return remove_now(directory, kind, entry->uuid, out_error);
    snprintf(temporary, sizeof temporary, "%s%s", path, unfinished);
    cause = write_new(temporary, text, journal_format(&part, text));
    if (cause == 0)
        cause = rename_over(temporary, path);
    if (cause == 0)
        cause = sync_directory(directory);
    else
        unlink(temporary);
    return cause == 0 ? 0 : write_failed(path, cause, out_error);
}

static int read_failed(const char *path, int cause, struct fly_error *out_error)
{
    int code = cause == ENOENT ? FLY_ENOTFOUND : cause == EACCES || cause == EPERM ? FLY_EPERM : FLY_EREAD;

    return error_set(out_error, code, "the journal's entry '%s' cannot be read: %s; look at it as root", path,
                     strerror(cause));
}

/* A restore by root removes what another user left. */
static int not_believed(const char *path, const char *why, struct fly_error *out_error)
{
    return error_set(
        out_error, FLY_EPERM,
        "the journal's entry '%s' %s, and is not believed; run 'sudo flyball power restore', and "
        "remove it only if it stands after that",
        path, why);
}

/*
 * Reads the text of the entry, if it is a file that may be believed: anybody's if the caller asks
 * for the owner.
 */
static int read_entry(const char *path, char text[JOURNAL_TEXT_MAX], uid_t *out_owner,
                      struct fly_error *out_error)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    ssize_t length;

    if (fd < 0)
        return read_failed(path, errno, out_error);
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        (out_owner == NULL && status.st_uid != 0 && status.st_uid != geteuid())) {
        close(fd);
        return not_believed(path, "is not root's nor this user's", out_error);
    }
    if (status.st_nlink > 1) {
        close(fd);
        return not_believed(path, "has another name too", out_error);
    }
    if (out_owner != NULL)
        *out_owner = status.st_uid;
    length = read(fd, text, JOURNAL_TEXT_MAX);
    close(fd);
    if (length < 0)
        return read_failed(path, errno, out_error);
    if (length == JOURNAL_TEXT_MAX || memchr(text, '\0', (size_t)length) != NULL)
        length = 0; /* not an entry that was written here */
    text[length] = '\0';
    return 0;
}

static int read_and_parse(const char *directory, enum journal_kind kind, const char *uuid,
                          struct journal_entry *out_entry, uid_t *out_owner, struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX], text[JOURNAL_TEXT_MAX];
    struct journal_entry entry;
    struct stat status;
    int code = journal_path(directory, uuid, suffixes[kind], path, out_error);

    if (code == 0 && out_owner != NULL)
        *out_owner = lstat(path, &status) < 0                         ? 0
                     : S_ISREG(status.st_mode) && status.st_nlink > 1 ? (uid_t)JOURNAL_SOMEBODY
                                                                      : status.st_uid;
    if (code == 0)
        code = read_entry(path, text, out_owner, out_error);
    if (code < 0)
        return code;
    code = journal_parse(text, &entry, NULL);
    if (code == FLY_EUNSUPPORTED)
        return error_set(
            out_error, code,
            "the journal's entry '%s' is of a newer version of Flyball, and stays; put back what "
            "it says with that version's 'flyball power restore'",
            path);
    if (code < 0 || strcmp(entry.uuid, uuid) != 0)
        return error_set(
            out_error, FLY_EDATA,
            "the journal's entry '%s' is corrupt; see there what the GPU's limit was, and set it with "
            "'flyball power set' or 'nvidia-smi -pl'",
            path);
    *out_entry = entry;
    return 0;
}

static bool exists_now(const char *directory, enum journal_kind kind, const char *uuid)
{
    char path[JOURNAL_PATH_MAX];
    struct stat status;

    return journal_path(directory, uuid, suffixes[kind], path, NULL) == 0 && lstat(path, &status) == 0;
}

static int remove_now(const char *directory, enum journal_kind kind, const char *uuid,
                      struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX], temporary[JOURNAL_PATH_MAX + 16];
    int cause, code = journal_path(directory, uuid, suffixes[kind], path, out_error);

    if (code < 0)
        return code;
    snprintf(temporary, sizeof temporary, "%s%s", path, unfinished);
    unlink(temporary);
    if (!exists_now(directory, kind, uuid))
        return 0;
    cause = runtime_directory_make_room(path);
    if (cause == 0)
        cause = sync_directory(directory);
    return cause == 0 ? 0 : write_failed(path, cause, out_error);
}

int journal_set_aside(const char *directory, enum journal_kind kind, const char *uuid,
                      struct fly_error *out_error)
{
    char path[JOURNAL_PATH_MAX], aside[JOURNAL_PATH_MAX + 16];
    int cause, code = journal_path(directory, uuid, suffixes[kind], path, out_error);

    if (code < 0)
        return code;
    snprintf(aside, sizeof aside, "%s.corrupt", path);
    cause = rename_over(path, aside);
    return cause != 0 ? write_failed(aside, cause, out_error) : 0;
}

static bool parse_name(const char *file, struct journal_name *out_name)
{
    size_t length = strlen(file);

    for (int kind = 0; kind < JOURNAL_KIND_COUNT; kind++) {
        size_t suffix = strlen(suffixes[kind]);

        if (file[0] == '.' || length <= suffix || length - suffix >= sizeof out_name->uuid ||
            strcmp(file + length - suffix, suffixes[kind]) != 0)
            continue;
        snprintf(out_name->uuid, sizeof out_name->uuid, "%.*s", (int)(length - suffix), file);
        out_name->kind = (enum journal_kind)kind;
        return true;
    }
    return false;
}

static bool has_now(const char *directory, enum journal_kind kind)
{
    DIR *opened = opendir(directory);
    struct journal_name name;
    const struct dirent *file;
    bool found = false;

    while (opened != NULL && !found && (file = readdir(opened)) != NULL)
        found = parse_name(file->d_name, &name) && name.kind == kind;
    if (opened != NULL)
        closedir(opened);
    return found;
}

int journal_list(const char *directory, struct journal_name *out_names, size_t maximum,
                 struct fly_error *out_error)
{
    DIR *opened = opendir(directory);
    size_t count = 0;
    struct journal_name name;
    const struct dirent *file;

    if (opened == NULL)
        return read_failed(directory, errno, out_error);
    while ((file = readdir(opened)) != NULL) {
        if (!parse_name(file->d_name, &name))
            continue;
        if (count < maximum)
            out_names[count] = name;
        count++;
    }
    closedir(opened);
    return (int)count;
}

/* ---- Calls that may wait for the disk ---- */

/* Each is made on a copy, since a disk may hold it up for longer than whoever asks waits. */
struct journal_call {
    void (*call)(struct journal_call *call);
    char directory[JOURNAL_PATH_MAX], uuid[DEVICE_TEXT_MAX];
    enum journal_kind kind;
    struct journal_entry entry;
    bool of_anybody; /* the owner is asked for */
    uid_t owner;
    int code;
    struct fly_error error;
};

static void call_now(void *of)
{
    struct journal_call *call = of;

    call->call(call);
}

/* Makes the call; what it gives is in `call` again. FLY_EBUSY: the disk does not answer. */
static int call_apart(struct journal_call *call, const char *directory, enum journal_kind kind,
                      const char *uuid, struct fly_error *out_error)
{
    struct journal_call *own = malloc(sizeof *own);

    if (own == NULL)
        return error_no_memory(out_error);
    snprintf(call->directory, sizeof call->directory, "%s", directory);
    snprintf(call->uuid, sizeof call->uuid, "%s", uuid);
    call->kind = kind;
    *own = *call;
    if (!runtime_directory_call(call_now, free, own, patience_s))
        return runtime_directory_silent(directory, out_error);
    *call = *own;
    free(own);
    if (call->code < 0 && out_error != NULL)
        *out_error = call->error;
    return call->code;
}

static void call_write(struct journal_call *call)
{
    call->code = write_now(call->directory, call->kind, &call->entry, &call->error);
}

int journal_write(const char *directory, enum journal_kind kind, const struct journal_entry *entry,
                  struct fly_error *out_error)
{
    struct journal_call call = {.call = call_write, .entry = *entry};

    return call_apart(&call, directory, kind, entry->uuid, out_error);
}

static void call_read(struct journal_call *call)
{
    call->code = read_and_parse(call->directory, call->kind, call->uuid, &call->entry,
                                call->of_anybody ? &call->owner : NULL, &call->error);
}

int journal_read_any(const char *directory, enum journal_kind kind, const char *uuid,
                     struct journal_entry *out_entry, uid_t *out_owner, struct fly_error *out_error)
{
    struct journal_call call = {.call = call_read, .of_anybody = out_owner != NULL};
    int code = call_apart(&call, directory, kind, uuid, out_error);

    if (out_owner != NULL)
        *out_owner = call.owner;
    if (code == 0)
        *out_entry = call.entry;
    return code;
}

int journal_read(const char *directory, enum journal_kind kind, const char *uuid,
                 struct journal_entry *out_entry, struct fly_error *out_error)
{
    return journal_read_any(directory, kind, uuid, out_entry, NULL, out_error);
}

static void call_exists(struct journal_call *call)
{
    call->code = exists_now(call->directory, call->kind, call->uuid) ? 0 : FLY_ENOTFOUND;
}

bool journal_exists(const char *directory, enum journal_kind kind, const char *uuid)
{
    struct journal_call call = {.call = call_exists};

    return call_apart(&call, directory, kind, uuid, NULL) != FLY_ENOTFOUND;
}

static void call_remove(struct journal_call *call)
{
    call->code = remove_now(call->directory, call->kind, call->uuid, &call->error);
}

int journal_remove(const char *directory, enum journal_kind kind, const char *uuid,
                   struct fly_error *out_error)
{
    struct journal_call call = {.call = call_remove};

    return call_apart(&call, directory, kind, uuid, out_error);
}

static void call_has(struct journal_call *call)
{
    call->code = has_now(call->directory, call->kind) ? 0 : FLY_ENOTFOUND;
}

bool journal_has(const char *directory, enum journal_kind kind)
{
    struct journal_call call = {.call = call_has};

    return call_apart(&call, directory, kind, "", NULL) == 0;
}
