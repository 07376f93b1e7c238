/* SPDX-License-Identifier: Apache-2.0 */
/* Files of accounts: creates them, writes line by line, reads and lists them. */
#include "train/account/carbon_ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/user_directory.h"
#include "base/text/iso_time.h"
#include "base/thread/fork_guard.h"
#include "train/account/carbon_ledger_text.h"

enum { SAME_NAMES_MAX = 1000, HOST_PART_MAX = 64, FILES_MAX = 1 << 20 };

const double carbon_usual_slowdown = 1.03;

static const char suffix[] = ".jsonl";

static int find_directory(const char *given, char out[LEDGER_PATH_MAX], struct fly_error *out_error)
{
    if (given == NULL || given[0] == '\0')
        return user_directory_find(USER_STATE, "carbon", "accounts of energy", out, LEDGER_PATH_MAX,
                                   out_error);
    if (snprintf(out, LEDGER_PATH_MAX, "%s", given) >= LEDGER_PATH_MAX)
        return error_set(out_error, FLY_ELIMIT, "the directory for accounts '%.100s...' has too long a name",
                         out);
    return 0;
}

static int failed(const char *path, int cause, struct fly_error *out_error)
{
    bool forbidden = cause == EACCES || cause == EPERM || cause == EROFS;

    return error_set(out_error, forbidden ? FLY_EPERM : FLY_EWRITE,
                     "the account of energy '%.300s' cannot be written: %s; %s", path, strerror(cause),
                     cause == ENOSPC || cause == EDQUOT ? "make room"
                                                        : "name another place with XDG_STATE_HOME");
}

/* "20261122T073000Z-n17-4711": sorted by name, files are sorted by start. */
static void write_stem(const struct ledger_head *head, char *stem, size_t capacity)
{
    char time[ISO_TIME_TEXT_MAX], host[HOST_PART_MAX];
    size_t used = 0;

    iso_time_format(head->start_s, time);
    for (const char *at = time; *at != '\0'; at++) {
        if (*at != '-' && *at != ':')
            time[used++] = *at;
    }
    time[used] = '\0';
    snprintf(host, sizeof host, "%.*s", HOST_PART_MAX - 1, head->host[0] != '\0' ? head->host : "host");
    for (char *at = host; *at != '\0'; at++) {
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._", *at) == NULL)
            *at = '_';
    }
    snprintf(stem, capacity, "%s-%s-%d", time, host, (int)getpid());
}

static int open_new(struct carbon_ledger *ledger, const char *directory, const char *stem,
                    struct fly_error *out_error)
{
    char path[LEDGER_PATH_MAX];

    for (int number = 1; number <= SAME_NAMES_MAX; number++) {
        int length = snprintf(path, sizeof path, "%s/%s-%03d%s", directory, stem, number, suffix);

        if (length >= (int)sizeof path)
            return error_set(out_error, FLY_ELIMIT,
                             "the directory for accounts '%.100s...' has too long a name", directory);
        ledger->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (ledger->file >= 0) {
            memcpy(ledger->path, path, (size_t)length + 1);
            return 0;
        }
        if (errno != EEXIST)
            return failed(path, errno, out_error);
    }
    return failed(path, EEXIST, out_error);
}

/* Writes the whole line to disk, or leaves none of it in the file. */
static int write_line(struct carbon_ledger *ledger, const struct buffer *line, struct fly_error *out_error)
{
    off_t before = lseek(ledger->file, 0, SEEK_END);
    ssize_t count = before < 0 ? -1 : write(ledger->file, line->data, line->length);
    int cause = count < 0 ? errno : ENOSPC;

    if (count == (ssize_t)line->length) {
        if (fdatasync(ledger->file) == 0)
            return 0;
        cause = errno;
    }
    /* Half a line must not spoil the next one. */
    if (before >= 0 && ftruncate(ledger->file, before) < 0)
        carbon_ledger_close(ledger);
    return failed(ledger->path, cause, out_error);
}

static void keep_name(const char *directory)
{
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (file < 0)
        return;
    (void)fsync(file);
    close(file);
}

int carbon_ledger_create(struct carbon_ledger *ledger, const char *directory, const struct ledger_head *head,
                         struct fly_error *out_error)
{
    struct carbon_ledger made = {.file = -1, .forks = fork_generation()};
    char place[LEDGER_PATH_MAX], stem[2 * HOST_PART_MAX];
    struct buffer line;
    int code;

    buffer_init(&line, LEDGER_LINE_MAX);
    code = ledger_write_head(head, &line, out_error);
    if (code == 0)
        code = find_directory(directory, place, out_error);
    if (code == 0) {
        /* A failure shows when a file is made there. */
        (void)user_directory_make(place);
        write_stem(head, stem, sizeof stem);
        code = open_new(&made, place, stem, out_error);
    }
    if (code == 0) {
        code = write_line(&made, &line, out_error);
        keep_name(place);
        if (code < 0)
            unlink(made.path);
    }
    buffer_deinit(&line);
    if (code < 0)
        carbon_ledger_close(&made);
    else
        *ledger = made;
    return code;
}

static int check_open(const struct carbon_ledger *ledger, struct fly_error *out_error)
{
    if (ledger->file < 0)
        return error_set(out_error, FLY_ESTATE, "the account of energy is not open");
    if (ledger->forks != fork_generation())
        return error_set(out_error, FLY_ESTATE,
                         "the account of energy was opened before a fork and is the parent's");
    return 0;
}

int carbon_ledger_slice(struct carbon_ledger *ledger, const struct energy_slice *slice,
                        struct fly_error *out_error)
{
    int code = check_open(ledger, out_error);
    struct buffer line;

    if (code < 0)
        return code;
    buffer_init(&line, LEDGER_LINE_MAX);
    code = ledger_write_slice(slice, &line, out_error);
    if (code == 0)
        code = write_line(ledger, &line, out_error);
    buffer_deinit(&line);
    return code;
}

int carbon_ledger_profile(struct carbon_ledger *ledger, const struct fly_power_point *points, size_t count,
                          struct fly_error *out_error)
{
    int code = check_open(ledger, out_error);
    struct buffer line;

    if (code < 0)
        return code;
    buffer_init(&line, LEDGER_LINE_MAX);
    code = ledger_write_profile(points, count, &line, out_error);
    if (code == 0)
        code = write_line(ledger, &line, out_error);
    buffer_deinit(&line);
    return code;
}

void carbon_ledger_close(struct carbon_ledger *ledger)
{
    if (ledger->file > 0)
        close(ledger->file);
    ledger->file = -1;
}

static int cannot_read(const char *path, int cause, struct fly_error *out_error)
{
    return error_set(out_error, cause == ENOENT ? FLY_ENOTFOUND : FLY_EREAD,
                     "the account of energy '%.300s' cannot be read: %s; see 'flyball carbon report --list'",
                     path, strerror(cause));
}

/* Reads a regular file's bytes. */
static int read_bytes(const char *path, struct buffer *out, struct fly_error *out_error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), cause = 0;
    char bytes[1 << 16];
    struct stat status;
    ssize_t count = 0;

    if (file < 0)
        return cannot_read(path, errno, out_error);
    if (fstat(file, &status) < 0)
        cause = errno;
    else if (!S_ISREG(status.st_mode))
        cause = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    while (cause == 0 && out->error == 0 && (count = read(file, bytes, sizeof bytes)) > 0)
        buffer_append(out, bytes, (size_t)count);
    if (count < 0)
        cause = errno;
    close(file);
    if (cause != 0)
        return cannot_read(path, cause, out_error);
    if (out->error == FLY_ELIMIT)
        return error_set(out_error, FLY_ELIMIT, "the account of energy '%.300s' is longer than %d MiB", path,
                         LEDGER_FILE_MAX >> 20);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

int carbon_ledger_read(const char *path, struct arena *arena, struct ledger_content *out_content,
                       struct fly_error *out_error)
{
    struct buffer text;
    int code;

    buffer_init(&text, LEDGER_FILE_MAX);
    code = read_bytes(path, &text, out_error);
    if (code == 0)
        code = carbon_ledger_parse(path, text.data, text.length, arena, out_content, out_error);
    buffer_deinit(&text);
    return code;
}

static int is_account(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), ending = sizeof suffix - 1;

    return entry->d_name[0] != '.' && length > ending && strcmp(entry->d_name + length - ending, suffix) == 0;
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static char *join(struct arena *arena, const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = arena_alloc(arena, size, 1);

    if (path != NULL)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}

int carbon_ledger_list(const char *directory, struct arena *arena, char ***out_paths, size_t *out_count,
                       struct fly_error *out_error)
{
    struct dirent **entries = NULL;
    char place[LEDGER_PATH_MAX], **paths;
    int count, code = find_directory(directory, place, out_error);

    if (code < 0)
        return code;
    count = scandir(place, &entries, is_account, newest_first);
    if (count < 0 && errno != ENOENT &&
        ((directory != NULL && directory[0] != '\0') || !user_directory_is_closed()))
        return error_set(out_error, FLY_EREAD, "the accounts of energy in '%.300s' cannot be read: %s", place,
                         strerror(errno));
    count = count < 0 ? 0 : count;
    paths = arena_alloc(arena, (size_t)count + 1, sizeof *paths);
    for (int i = 0; i < count; i++) {
        if (paths != NULL && code == 0 && (paths[i] = join(arena, place, entries[i]->d_name)) == NULL)
            code = FLY_ENOMEM;
        free(entries[i]);
    }
    free(entries);
    if (paths == NULL || code < 0)
        return error_no_memory(out_error);
    *out_paths = paths;
    *out_count = (size_t)count;
    return 0;
}
