/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All files of a process are opened below one descriptor of its directory, so on a real /proc they are
 * those of one process or cannot be read. The start time is compared all the same: it names the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/accounts.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/harmless.h"
#include "base/process_stat.h"
#include "node/owner/owner.h"
#include "node/owner/owner_cgroup.h"
#include "node/owner/owner_pod.h"
#include "node/owner/owner_words.h"

enum {
    TEXT_BYTES = 1 << 14,
    ENVIRON_MAX = 1 << 20,
    PODS_KEPT = 64,
    ROOT_BYTES = 512,
    PATH_BYTES = 64,
};

static const double again_s = 1;

struct kept_pod {
    struct owner_pod pod;
    struct mono_time sought; /* last */
    bool used;
};

struct owners {
    char root[ROOT_BYTES]; /* "" is the machine's own */
    bool visible;
    size_t next; /* kept pod to replace */
    struct kept_pod pods[PODS_KEPT];
    char text[TEXT_BYTES];
};

int owners_new(const char *root, struct owners **out_owners, struct fly_error *out_error)
{
    struct owners *owners = calloc(1, sizeof *owners);

    if (owners == NULL)
        return error_no_memory(out_error);
    if (root != NULL && snprintf(owners->root, sizeof owners->root, "%s", root) >= (int)sizeof owners->root) {
        free(owners);
        return error_set(out_error, FLY_ELIMIT, "the directory '%.64s...' has too long a name; take another",
                         root);
    }
    owners->visible = root != NULL || owner_sees_all();
    *out_owners = owners;
    return 0;
}

void owners_free(struct owners *owners)
{
    free(owners);
}

static int open_below_root(const struct owners *owners, const char *path)
{
    char full[ROOT_BYTES + PATH_BYTES];

    snprintf(full, sizeof full, "%s/%s", owners->root, path);
    return open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

static int open_process(const struct owners *owners, pid_t pid)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "proc/%d", (int)pid);
    return open_below_root(owners, path);
}

/* Opens a file of a process; what is no file, a pipe for example, is not read. */
static int open_file(int process, const char *name)
{
    int file = openat(process, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    struct stat status;

    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(file);
        file = -1;
    }
    return file;
}

static ssize_t read_more(int file, char *out, size_t size)
{
    ssize_t length;

    do
        length = read(file, out, size);
    while (length < 0 && errno == EINTR);
    return length;
}

/* Reads a file into the scratch text, cut where it would not fit. NULL: it cannot be read. */
static const char *read_text(struct owners *owners, int process, const char *name)
{
    size_t length = 0;
    ssize_t more = 0;
    int file = open_file(process, name);

    if (file < 0)
        return NULL;
    while (length < TEXT_BYTES - 1 &&
           (more = read_more(file, owners->text + length, TEXT_BYTES - 1 - length)) > 0)
        length += (size_t)more;
    close(file);
    if (more < 0)
        return NULL;
    owners->text[length] = '\0';
    return owners->text;
}

static bool read_stat(struct owners *owners, int process, struct process_stat *out_stat)
{
    const char *text = read_text(owners, process, "stat");

    return text != NULL && process_stat_parse(text, out_stat);
}

/* A path that was cut would name another group, so the last line counts only if it is whole. */
static void read_groups(struct owners *owners, int process, struct owner *owner)
{
    const char *text = read_text(owners, process, "cgroup");
    char *end = text != NULL ? strrchr(owners->text, '\n') : NULL;

    if (end == NULL)
        return;
    end[1] = '\0';
    owner_cgroup_read(text, owner);
}

/* Reads what is between two looks at the start time; false: the process has ended meanwhile. */
static bool read_process(struct owners *owners, int process, struct owner *owner)
{
    struct process_stat stat, again;
    struct owner first;
    const char *text;

    if (!read_stat(owners, process, &stat) || process_stat_is_over(&stat))
        return false;
    owner->start_ticks = stat.start;
    snprintf(owner->command, sizeof owner->command, "%s", stat.name);
    harmless_make(owner->command, strlen(owner->command), false);
    first = *owner;
    text = read_text(owners, process, "status");
    owner->uid_known = text != NULL && owner_status_uid(text, &owner->uid);
    read_groups(owners, process, owner);
    if (!read_stat(owners, process, &again))
        return false;
    if (again.start != stat.start) /* what lies between is perhaps another's */
        *owner = first;
    return again.start == stat.start && !process_stat_is_over(&again);
}

void owners_look(struct owners *owners, pid_t pid, struct owner *out_owner)
{
    int process;

    *out_owner = (struct owner){.pid = pid, .sight = owners->visible ? OWNER_GONE : OWNER_NOT_VISIBLE};
    if (!owners->visible || pid <= 0)
        return;
    process = open_process(owners, pid);
    if (process < 0)
        return;
    if (read_process(owners, process, out_owner))
        out_owner->sight = OWNER_SEEN;
    close(process);
}

static void read_environ(struct owners *owners, int process, struct owner *owner)
{
    struct owner_words words = {.owner = owner};
    int file = open_file(process, "environ");
    size_t total = 0;
    ssize_t length;

    if (file < 0)
        return;
    while (total < ENVIRON_MAX && (length = read_more(file, owners->text, TEXT_BYTES)) > 0) {
        owner_words_take(&words, owners->text, (size_t)length);
        total += (size_t)length;
    }
    close(file);
}

/* Takes the words of the process that was looked at, and of no later one of its number. */
static void name_words(struct owners *owners, struct owner *owner)
{
    struct owner told = *owner;
    struct process_stat stat;
    int process = open_process(owners, owner->pid);

    if (process < 0)
        return;
    read_environ(owners, process, &told);
    if (read_stat(owners, process, &stat) && stat.start == owner->start_ticks)
        *owner = told;
    close(process);
}

static struct kept_pod *find_kept(struct owners *owners, const struct owner *owner)
{
    struct kept_pod *kept;

    for (size_t i = 0; i < PODS_KEPT; i++) {
        kept = &owners->pods[i];
        if (kept->used && strcmp(kept->pod.uid, owner->pod_uid) == 0 &&
            strcmp(kept->pod.id, owner->pod_container_id) == 0)
            return kept;
    }
    kept = &owners->pods[owners->next];
    owners->next = (owners->next + 1) % PODS_KEPT;
    *kept = (struct kept_pod){.used = false};
    memcpy(kept->pod.uid, owner->pod_uid, sizeof kept->pod.uid);
    memcpy(kept->pod.id, owner->pod_container_id, sizeof kept->pod.id);
    return kept;
}

static void name_pod(struct owners *owners, struct owner *owner)
{
    struct kept_pod *kept = find_kept(owners, owner);
    bool whole = kept->pod.pod[0] != '\0' && kept->pod.container[0] != '\0';
    struct mono_time now = mono_now();

    if (!whole && (!kept->used || mono_elapsed_s(kept->sought, now) >= again_s)) {
        int directory = open_below_root(owners, "var/log");

        kept->used = true;
        kept->sought = now;
        if (directory >= 0) {
            owner_pod_find(directory, &kept->pod);
            close(directory);
        }
    }
    memcpy(owner->pod, kept->pod.pod, sizeof owner->pod);
    memcpy(owner->pod_namespace, kept->pod.pod_namespace, sizeof owner->pod_namespace);
    memcpy(owner->container, kept->pod.container, sizeof owner->container);
}

void owners_name(struct owners *owners, struct owner *owner)
{
    if (owner->sight == OWNER_NOT_VISIBLE)
        return;
    if (owner->pod_uid[0] != '\0')
        name_pod(owners, owner);
    if (owner->uid_known && accounts_user_name((uint32_t)owner->uid, owner->user, sizeof owner->user))
        harmless_make(owner->user, strlen(owner->user), false);
    if (owner->sight == OWNER_SEEN)
        name_words(owners, owner);
}
