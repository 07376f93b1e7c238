/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/user_directory.h"

static const char suffix[] = ".calls";

void spool_init(struct spool *spool, const char *directory, const char *store)
{
    bool found = true;

    *spool = (struct spool){.file = -1};
    if (directory == NULL)
        found = user_directory_find(USER_STATE, "spool", "reports that wait", spool->directory,
                                    sizeof spool->directory, NULL) == 0;
    else
        found = snprintf(spool->directory, sizeof spool->directory, "%s", directory) <
                (int)sizeof spool->directory;
    if (!found)
        spool->directory[0] = '\0';
    snprintf(spool->store, sizeof spool->store, "%s", store != NULL ? store : "");
}

void spool_deinit(struct spool *spool)
{
    if (spool->file > 0) {
        if (spool->lines == 0)
            unlink(spool->path);
        close(spool->file);
    }
    spool->file = -1;
}

bool spool_passing(int code)
{
    switch (code) {
    case FLY_EBUSY:
    case FLY_EUNREACHABLE:
    case FLY_EUNSURE:
    case FLY_EREAD:
    case FLY_EWRITE:
    case FLY_EPERM:
    case FLY_ENOMEM:
    case FLY_EINTERNAL:
        return true;
    default:
        return false;
    }
}

static int failed(const struct spool *spool, const char *what, struct fly_error *out_error)
{
    int cause = errno;

    return error_set(out_error, cause == EACCES || cause == EPERM || cause == EROFS ? FLY_EPERM : FLY_EWRITE,
                     "reports in '%s' cannot be %s: %s; make room, or name a place with XDG_STATE_HOME",
                     spool->directory, what, strerror(cause));
}

static int write_all(const struct spool *spool, const char *bytes, size_t length, struct fly_error *out_error)
{
    off_t before = lseek(spool->file, 0, SEEK_END);
    ssize_t count = write(spool->file, bytes, length);

    if (count == (ssize_t)length && fdatasync(spool->file) == 0)
        return 0;
    if (count >= 0 && count < (ssize_t)length)
        errno = ENOSPC;
    count = failed(spool, "kept", out_error);
    /* Half a line must not lead the next one astray. */
    if (before < 0 || ftruncate(spool->file, before) < 0)
        return FLY_EWRITE;
    return (int)count;
}

/* A name of its own: the process, and the time in case its number comes round again. */
static int make_file(struct spool *spool, struct fly_error *out_error)
{
    struct timespec now;
    json_t *head = json_pack("{s:i,s:s}", "flyball_calls", 1, "store", spool->store);
    char *text = head != NULL ? json_dumps(head, JSON_COMPACT) : NULL;
    char line[SPOOL_PATH_MAX * 6 + 64];
    int directory, code;

    json_decref(head);
    if (text == NULL)
        return error_no_memory(out_error);
    snprintf(line, sizeof line, "%s\n", text);
    free(text);
    if (spool->directory[0] == '\0')
        return error_set(out_error, FLY_ENOTFOUND, "reports cannot be kept; set HOME or XDG_STATE_HOME");
    (void)user_directory_make(spool->directory);
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(spool->path, sizeof spool->path, "%s/%lld%09ld-%d%s", spool->directory, (long long)now.tv_sec,
             now.tv_nsec, (int)getpid(), suffix);
    spool->file = open(spool->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (spool->file < 0)
        return failed(spool, "kept", out_error);
    (void)flock(spool->file, LOCK_EX | LOCK_NB);
    code = write_all(spool, line, strlen(line), out_error);
    directory = open(spool->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        (void)fsync(directory);
        close(directory);
    }
    if (code < 0)
        spool_deinit(spool);
    return code;
}

int spool_add(struct spool *spool, const struct spool_entry *entry, struct fly_error *out_error)
{
    struct buffer line;
    int code = 0;

    if (spool->file < 0)
        code = make_file(spool, out_error);
    if (code < 0)
        return code;
    buffer_init(&line, SPOOL_LINE_MAX);
    code = spool_write(entry, &line, out_error);
    if (code == 0)
        code = write_all(spool, line.data, line.length, out_error);
    buffer_deinit(&line);
    spool->lines += code == 0 && entry->kind != SPOOL_RUN;
    return code;
}

static int call_run(const struct jobs *jobs, const struct spool_run *run, struct job_proposal *out_proposal,
                    struct fly_error *out_error)
{
    struct job_registered registered;
    int code = jobs->backend->define(jobs->self, &run->definition, &registered, out_error);

    return code < 0 ? code : jobs->backend->propose(jobs->self, &run->question, out_proposal, out_error);
}

int spool_call(const struct jobs *jobs, const struct spool_entry *entry, union spool_answer *out_answer,
               struct fly_error *out_error)
{
    switch (entry->kind) {
    case SPOOL_PROFILE:
        return jobs->backend->profile(jobs->self, &entry->profile, &out_answer->choice, out_error);
    case SPOOL_REPORT:
        return jobs->backend->report(jobs->self, &entry->epoch, &out_answer->answered, out_error);
    case SPOOL_END:
        return jobs->backend->end(jobs->self, &entry->end, &out_answer->ended, out_error);
    case SPOOL_RUN:
        return call_run(jobs, &entry->run, &out_answer->proposal, out_error);
    }
    return error_set(out_error, FLY_EINTERNAL, "no such call");
}

/* The whole file; false when it cannot be read or is no such file for this log. */
static bool read_file(int file, const char *store, struct buffer *content)
{
    char bytes[1 << 12];
    off_t at = 0;
    ssize_t count;
    const char *end;
    json_t *head;
    bool ours;

    while ((count = pread(file, bytes, sizeof bytes, at)) > 0) {
        buffer_append(content, bytes, (size_t)count);
        at += count;
    }
    end = memchr(content->data, '\n', content->length);
    if (count < 0 || content->error < 0 || end == NULL)
        return false;
    head = json_loadb(content->data, (size_t)(end - content->data), 0, NULL);
    ours = json_integer_value(json_object_get(head, "flyball_calls")) == 1 &&
           json_string_value(json_object_get(head, "store")) != NULL &&
           strcmp(json_string_value(json_object_get(head, "store")), store) == 0;
    json_decref(head);
    return ours;
}

/* What was run unasked has its trial now. */
static void give_trial(struct spool_entry *entry, const struct job_proposal *run)
{
    if (entry->kind == SPOOL_REPORT && entry->epoch.trial == 0) {
        entry->epoch.trial = run->trial;
        entry->epoch.attempt = run->attempt;
    } else if (entry->kind == SPOOL_END && entry->end.trial == 0) {
        entry->end.trial = run->trial;
        entry->end.attempt = run->attempt;
    }
}

/* Where calls go, and until when. */
struct delivery {
    const struct jobs *jobs;
    struct mono_time end;
    bool endless;
};

static bool is_late(const struct delivery *delivery)
{
    return !delivery->endless && mono_now().ns >= delivery->end.ns;
}

/* Each line but the first, and but a last one that its session did not bring to an end. */
static int deliver_lines(const char *text, const struct delivery *delivery, bool *out_refused,
                         struct fly_error *out_error)
{
    const char *line = strchr(text, '\n') + 1, *end;
    struct spool_parsed *parsed = calloc(1, sizeof *parsed);
    struct job_proposal run = {.trial = 0};
    int code = parsed != NULL ? 0 : error_no_memory(out_error);

    for (; code == 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        union spool_answer answer;
        struct fly_error error;
        int called;

        if (is_late(delivery)) {
            code = error_set(out_error, FLY_EBUSY, "there was no time for all kept reports");
            break;
        }
        called = spool_parse(line, (size_t)(end - line), parsed, &error);

        if (called == 0) {
            give_trial(&parsed->entry, &run);
            called = spool_call(delivery->jobs, &parsed->entry, &answer, &error);
            if (parsed->entry.kind == SPOOL_RUN)
                run = called == 0 ? answer.proposal : (struct job_proposal){.trial = 0};
            spool_parsed_free(parsed);
        }
        if (spool_passing(called)) {
            code = called;
            if (out_error != NULL)
                *out_error = error;
        }
        *out_refused |= called < 0 && code == 0;
    }
    free(parsed);
    return code;
}

/* Delivers what an open file holds. */
static int deliver_file(int file, const char *store, const struct delivery *delivery, bool *out_refused,
                        struct fly_error *out_error)
{
    struct buffer content;
    int code;

    buffer_init(&content, SPOOL_FILE_MAX);
    if (read_file(file, store, &content))
        code = deliver_lines(content.data, delivery, out_refused, out_error);
    else
        code = error_set(out_error, FLY_EDATA, "kept reports are not readable, or for another log");
    buffer_deinit(&content);
    return code;
}

/* Out of the way, and yet there. */
static void put_aside(const char *path)
{
    char aside[SPOOL_PATH_MAX + 512];

    snprintf(aside, sizeof aside, "%s.refused", path);
    (void)rename(path, aside);
}

int spool_deliver(struct spool *spool, const struct jobs *jobs, struct fly_error *out_error)
{
    bool refused = false;
    int code;

    if (spool->file < 0 || spool->lines == 0)
        return 0;
    code = deliver_file(spool->file, spool->store, &(struct delivery){.jobs = jobs, .endless = true},
                        &refused, out_error);
    if (spool_passing(code))
        return code;
    if (refused || code < 0)
        put_aside(spool->path);
    else
        unlink(spool->path);
    close(spool->file);
    spool->file = -1;
    spool->lines = 0;
    return 0;
}

/* Opens a file that no session holds any more, with a lock on it; -1 for none. */
static int open_left(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat facts;

    /* Its session may live, or somebody else have been faster. */
    if (file >= 0 &&
        (flock(file, LOCK_EX | LOCK_NB) != 0 || fstat(file, &facts) != 0 || facts.st_nlink == 0)) {
        close(file);
        file = -1;
    }
    return file;
}

/* Whether the file is done with: delivered, or put aside. */
static bool deliver_left(const struct spool *spool, const char *path, const struct delivery *delivery)
{
    int file = open_left(path);
    bool refused = false, done;

    if (file < 0)
        return false;
    done = deliver_file(file, spool->store, delivery, &refused, NULL) == 0;
    if (done && refused)
        put_aside(path);
    else if (done)
        unlink(path);
    close(file);
    return done;
}

/* The lines that are calls. */
static uint64_t count_left(const struct spool *spool, const char *path)
{
    int file = open_left(path);
    struct buffer content;
    uint64_t count = 0;

    if (file < 0)
        return 0;
    buffer_init(&content, SPOOL_FILE_MAX);
    if (read_file(file, spool->store, &content)) {
        const char *line = strchr(content.data, '\n') + 1, *end;

        for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
            count += memmem(line, (size_t)(end - line), "\"call\":\"run\"", 12) == NULL;
    }
    buffer_deinit(&content);
    close(file);
    return count;
}

static int is_kept(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot != NULL && strcmp(dot, suffix) == 0;
}

/* What `each` says of the files, added up, in the order of their beginning. */
typedef uint64_t (*each_file)(const struct spool *spool, const char *path, const struct delivery *delivery);

static uint64_t for_each(const struct spool *spool, each_file each, const struct delivery *delivery)
{
    struct dirent **entries;
    int count = spool->directory[0] != '\0' ? scandir(spool->directory, &entries, is_kept, alphasort) : -1;
    uint64_t sum = 0;

    for (int i = 0; i < count; i++) {
        char path[SPOOL_PATH_MAX + sizeof entries[i]->d_name + 1];

        snprintf(path, sizeof path, "%s/%s", spool->directory, entries[i]->d_name);
        sum += each(spool, path, delivery);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return sum;
}

static uint64_t deliver_one(const struct spool *spool, const char *path, const struct delivery *delivery)
{
    return !is_late(delivery) && deliver_left(spool, path, delivery);
}

static uint64_t count_one(const struct spool *spool, const char *path, const struct delivery *delivery)
{
    (void)delivery;
    return count_left(spool, path);
}

unsigned spool_deliver_left(const struct spool *spool, const struct jobs *jobs, double most_s)
{
    bool endless = isinf(most_s);
    const struct delivery delivery = {
        .jobs = jobs, .endless = endless, .end = mono_after_s(mono_now(), endless ? 0.0 : most_s)};

    return (unsigned)for_each(spool, deliver_one, &delivery);
}

uint64_t spool_count_left(const struct spool *spool)
{
    return for_each(spool, count_one, NULL);
}
