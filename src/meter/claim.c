/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses flock(2) rather than a file's existence, because the kernel releases the lock however a
 * process ends. The process that holds a lock file removes it. A process that then gets a lock on
 * the removed file notices that and begins again.
 */
#include "meter/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/user_directory.h"
#include "base/harmless.h"
#include "base/wait.h"
#include "meter/claim_sweep.h"

enum { LOCK_ATTEMPTS = 16, ENTRY_PARTS = 5, HOLDER_ATTEMPTS = 20, SWEEP_ATTEMPTS = 3 };

/* Returned in place of a file descriptor. */
enum { LOCK_HELD = -1, LOCK_FAILED = -2 };

bool claim_entry_next(const char **rest, struct claim_entry *out_entry)
{
    const char *parts[ENTRY_PARTS];
    int lengths[ENTRY_PARTS];
    const char *at = *rest;
    size_t length = strcspn(at, "|");
    const char *end = at + length;
    int count = 0;

    *rest = *end == '|' ? end + 1 : NULL;
    for (;; at++) {
        size_t part = strcspn(at, ";|");

        if (count == ENTRY_PARTS || part > CLAIM_VARIABLE_MAX)
            return false;
        parts[count] = at;
        lengths[count++] = (int)part;
        at += part;
        if (at == end)
            break;
    }
    if (count != ENTRY_PARTS)
        return false;
    *out_entry = (struct claim_entry){parts[0],   parts[1],   parts[2],   parts[3],   parts[4],
                                      lengths[0], lengths[1], lengths[2], lengths[3], lengths[4]};
    return true;
}

static bool part_equals(const char *part, int length, const char *text)
{
    return strlen(text) == (size_t)length && memcmp(part, text, (size_t)length) == 0;
}

/* Returns whether the text can be the name of a job, and so a part of a file's name. */
static bool is_name(const char *part, int length)
{
    return length > 0 && length < IDENTITY_TEXT_MAX && strspn(part, identity_alphabet) == (size_t)length;
}

/* Writes "GPU.GPU-8f3a...", which distinguishes a device from all others of its node. */
static const char *key_of(const struct device_info *info, char key[IDENTITY_TEXT_MAX])
{
    char prefix[16];

    snprintf(prefix, sizeof prefix, "%s.", device_kind_name(info->kind));
    return identity_name(prefix, info->uuid, key);
}

/* Returns whether the list "key,key" contains the key. */
static bool list_has(const char *list, int length, const char *key)
{
    const char *end = list + length;

    while (list < end) {
        size_t word = strcspn(list, ",;|");

        if (part_equals(list, (int)word, key))
            return true;
        list += word + 1;
    }
    return false;
}

/* Gives the next entry about this process's job and node. */
static bool next_of_ours(const struct claims *claims, const char **rest, struct claim_entry *out_entry)
{
    while (*rest != NULL) {
        if (claim_entry_next(rest, out_entry) &&
            part_equals(out_entry->node, out_entry->node_length, claims->node) &&
            part_equals(out_entry->job, out_entry->job_length, claims->job))
            return true;
    }
    return false;
}

/*
 * If no scheduler names a job, takes the job for which the wrapper around this process counts, on
 * whatever node: that of the last entry.
 */
static void adopt_job(struct claims *claims)
{
    const char *rest = claims->inherited;
    struct claim_entry entry;

    while (rest != NULL) {
        if (claim_entry_next(&rest, &entry) && is_name(entry.job, entry.job_length))
            snprintf(claims->job, sizeof claims->job, "%.*s", entry.job_length, entry.job);
    }
}

static void name_ourselves(const struct claim_options *options, struct claims *claims)
{
    const struct identity *identity = options->identity;

    snprintf(claims->node, sizeof claims->node, "%s", identity->node);
    snprintf(claims->job, sizeof claims->job, "%s", identity->job);
    if (claims->job[0] == '\0' || identity->job_of_launcher)
        adopt_job(claims);
    if (claims->job[0] == '\0')
        snprintf(claims->job, sizeof claims->job, "run-%lld-%" PRIu64, (long long)options->pid,
                 (uint64_t)(options->start_unix_s * 1e3));
    if (identity->rank >= 0)
        snprintf(claims->self, sizeof claims->self, "rank %d, process %lld on %s", identity->rank,
                 (long long)options->pid, identity->node);
    else
        snprintf(claims->self, sizeof claims->self, "process %lld on %s", (long long)options->pid,
                 identity->node);
}

/* Makes the directory, or accepts one that belongs to this user and that nobody else can write to. */
static bool usable(const char *path, uid_t uid)
{
    struct stat status;

    if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST)
        return false;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == uid &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && access(path, W_OK | X_OK) == 0;
}

static void find_directory(const struct claim_options *options, struct claims *claims)
{
    struct stat status;
    const char *runtime = options->runtime_directory;
    char *path = claims->directory;

    if (runtime != NULL && runtime[0] == '/')
        snprintf(path, CLAIM_PATH_MAX / 2, "%s/flyball", runtime);
    if (path[0] == '\0' || !usable(path, options->uid))
        snprintf(path, CLAIM_PATH_MAX / 2, "%s/flyball-%lld", options->fallback, (long long)options->uid);
    /* There anybody can have made a directory of that name. */
    if (!usable(path, options->uid) && options->last != NULL &&
        user_directory_make_above(options->last, S_IRWXU) == 0)
        snprintf(path, CLAIM_PATH_MAX / 2, "%s", options->last);
    if (!usable(path, options->uid) || stat(path, &status) < 0) {
        snprintf(claims->fault, sizeof claims->fault,
                 "no directory for locks (%.80s), so other ranks may count the same devices", path);
        path[0] = '\0';
        return;
    }
    snprintf(claims->directory_id, sizeof claims->directory_id, "%llx:%llx",
             (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
}

/* Makes what another process wrote about itself fit for display: short, and without control characters. */
static void tidy_by(struct claim *claim)
{
    harmless_make_ascii(claim->by);
    if (claim->by[0] == '\0')
        snprintf(claim->by, sizeof claim->by, "another process");
}

/* Returns whether the device is counted by a wrapper around this process whose locks are out of sight. */
static bool counted_around(const struct claims *claims, const char *key, struct claim *claim)
{
    const char *rest = claims->inherited;
    struct claim_entry entry;

    while (next_of_ours(claims, &rest, &entry)) {
        if (part_equals(entry.directory, entry.directory_length, claims->directory_id) ||
            !list_has(entry.devices, entry.devices_length, key))
            continue;
        snprintf(claim->by, sizeof claim->by, "%.*s",
                 entry.by_length < CLAIM_BY_MAX ? entry.by_length : CLAIM_BY_MAX - 1, entry.by);
        tidy_by(claim);
        return true;
    }
    return false;
}

/* Returns whether the path still names the locked file. */
static bool still_there(int lock, const char *path)
{
    struct stat held;
    struct stat named;

    return fstat(lock, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/* Reads who holds the lock; a process that just took it may not have written that yet. */
static void read_holder(int lock, struct claim *claim)
{
    ssize_t length = 0;

    for (int attempt = 0; attempt < HOLDER_ATTEMPTS && length <= 0; attempt++) {
        if (attempt > 0)
            mono_sleep_s(1e-3);
        length = pread(lock, claim->by, sizeof claim->by - 1, 0);
    }
    claim->by[length > 0 ? length : 0] = '\0';
    tidy_by(claim);
}

/*
 * Returns the lock as an open file; LOCK_HELD if another process holds it (then `by` says which);
 * LOCK_FAILED.
 */
static int take_lock(const struct claims *claims, struct claim *claim)
{
    int patience = SWEEP_ATTEMPTS; /* for a sweep, which briefly locks the files that it finds free */

    for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
        int lock = open(claim->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);

        if (lock < 0)
            return LOCK_FAILED;
        if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
            bool held = errno == EWOULDBLOCK;

            if (held && patience-- > 0) {
                close(lock);
                mono_sleep_s(2e-4);
                attempt--;
                continue;
            }
            if (held)
                read_holder(lock, claim);
            close(lock);
            return held ? LOCK_HELD : LOCK_FAILED;
        }
        if (still_there(lock, claim->path)) {
            /* Only people read this: after a failure the claim has no name. */
            if (ftruncate(lock, 0) == 0)
                (void)!pwrite(lock, claims->self, strlen(claims->self), 0);
            return lock;
        }
        close(lock);
    }
    return LOCK_FAILED;
}

static void claim_device(struct claims *claims, const struct device_info *info, struct claim *claim)
{
    char key[IDENTITY_TEXT_MAX];

    *claim = (struct claim){.lock = -1};
    if (counted_around(claims, key_of(info, key), claim))
        return;
    claim->counted = true;
    if (claims->directory[0] == '\0')
        return;
    snprintf(claim->path, sizeof claim->path, "%.*s/%s.%s.lock", CLAIM_PATH_MAX / 2, claims->directory,
             claims->job, key);
    claim->lock = take_lock(claims, claim);
    claim->counted = claim->lock != LOCK_HELD;
    if (claim->lock == LOCK_FAILED)
        snprintf(claims->fault, sizeof claims->fault,
                 "'%.100s' cannot be locked, so other ranks may count the same devices", claim->path);
}

void claims_take(const struct claim_options *options, const struct device_list *list,
                 struct claims *out_claims)
{
    memset(out_claims, 0, sizeof *out_claims);
    out_claims->inherited = options->inherited;
    name_ourselves(options, out_claims);
    find_directory(options, out_claims);
    out_claims->count = list->count;
    for (size_t i = 0; i < list->count; i++)
        claim_device(out_claims, &list->devices[i].info, &out_claims->devices[i]);
    if (out_claims->directory[0] != '\0')
        claim_sweep(out_claims->directory, out_claims->job, options->uid);
}

void claims_release(struct claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        struct claim *claim = &claims->devices[i];

        if (claim->lock < 0)
            continue;
        if (still_there(claim->lock, claim->path))
            unlink(claim->path);
        close(claim->lock);
        claim->lock = -1;
    }
}

char *claims_variable(const struct claims *claims, const struct device_list *list,
                      char value[CLAIM_VARIABLE_MAX])
{
    const char *rest = claims->inherited;
    const char *separator = "";
    char key[IDENTITY_TEXT_MAX];
    struct claim_entry entry;
    size_t length = 0;

    value[0] = '\0';
    while (length < CLAIM_VARIABLE_MAX && next_of_ours(claims, &rest, &entry)) {
        int size = (int)(entry.devices + entry.devices_length - entry.job);

        length += (size_t)snprintf(value + length, CLAIM_VARIABLE_MAX - length, "%.*s|", size, entry.job);
    }
    if (length < CLAIM_VARIABLE_MAX)
        length += (size_t)snprintf(value + length, CLAIM_VARIABLE_MAX - length, "%s;%s;%s;%s;", claims->job,
                                   claims->node, claims->self, claims->directory_id);
    for (size_t i = 0; i < claims->count && length < CLAIM_VARIABLE_MAX; i++) {
        if (!claims->devices[i].counted)
            continue;
        length += (size_t)snprintf(value + length, CLAIM_VARIABLE_MAX - length, "%s%s", separator,
                                   key_of(&list->devices[i].info, key));
        separator = ",";
    }
    if (length >= CLAIM_VARIABLE_MAX)
        value[0] = '\0';
    return value;
}
