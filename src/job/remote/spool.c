/* SPDX-License-Identifier: Apache-2.0 */
#include "job/remote/spool.h"

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
#include "base/file/user_directory.h"
#include "job/core/definition.h"
#include "job/core/job_words.h"
#include "job/core/shapes.h"
#include "shapes/shape_rows.h"

/* ---- a kept call as a line of JSON, and back ---- */

enum { PARSED_MEMORY_MAX = 1 << 20 };

static const char *const call_words[] = {"profile", "report", "end", "run"};
_Static_assert(sizeof call_words / sizeof call_words[0] == SPOOL_RUN + 1, "a word for each kind");

/* ---- the format: any values are allowed, the log judges them ---- */

/* Rows of a kept call. */
#define CALL                                                                             \
    {                                                                                    \
        SHAPE_AT_AS("call", spool_entry, kind), SHAPE_IS_WORD(call_words, SPOOL_RUN + 1) \
    }
#define AS(title, member) SHAPE_AT_AS(title, spool_entry, member)
#define TEXT SHAPE_IS_TEXT(SPOOL_LINE_MAX)
#define NUMBER SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE
#define SINCE_0_2 .need = SHAPE_OPTIONAL

static const struct shape_field call_rows[] = {CALL};
static const struct shape shape_call = {SHAPE_OF(spool_entry, call_rows)};

static const struct shape_field point_rows[] = {
    {SHAPE_AT(fly_power_point, limit_w), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(fly_power_point, power_w), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(fly_power_point, time_s), SHAPE_IS_NUMBER(SHAPE_ANY)},
};
static const struct shape shape_kept_point = {SHAPE_OF(fly_power_point, point_rows), .as_list = true};

static const struct shape_field profile_rows[] = {
    CALL,
    {AS("job", profile.job), TEXT},
    {AS("trial", profile.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {AS("points", profile.points),
     SHAPE_IS_STRUCTS(&shape_kept_point, FLY_POWER_SEARCH_LIMITS_MAX, spool_entry, profile.point_count)},
    {AS("units_per_epoch", profile.units_per_epoch), NUMBER},
    {AS("partial", profile.partial), SHAPE_IS_BOOL, SINCE_0_2},
};

static const struct shape_field report_rows[] = {
    CALL,
    {AS("job", epoch.job), TEXT},
    {AS("trial", epoch.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {AS("attempt", epoch.attempt), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("epoch", epoch.epoch), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("metric", epoch.metric), NUMBER},
    {AS("energy_j", epoch.energy_j), NUMBER},
    {AS("time_s", epoch.time_s), NUMBER},
    {AS("reference_per_kwh", epoch.reference_per_kwh), NUMBER, SINCE_0_2},
    {AS("steps", epoch.steps), SHAPE_IS_U32(0, UINT32_MAX), .need = SHAPE_SPARING},
    {AS("startup_energy_j", epoch.startup_energy_j), NUMBER, .need = SHAPE_SPARING},
    {AS("startup_time_s", epoch.startup_time_s), NUMBER, .need = SHAPE_SPARING},
};

static const struct shape_field end_rows[] = {
    CALL,
    {AS("job", end.job), TEXT},
    {AS("trial", end.trial), SHAPE_IS_U64(0, INT64_MAX)},
    {AS("attempt", end.attempt), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("outcome", end.outcome), SHAPE_IS_WORD(job_outcome_words, TRIAL_OUTCOME_COUNT)},
    {AS("energy_j", end.energy_j), NUMBER},
    {AS("time_s", end.time_s), NUMBER},
    {AS("text", end.text), TEXT},
    {AS("reference_per_kwh", end.reference_per_kwh), NUMBER, SINCE_0_2},
    {AS("startup_energy_j", end.startup_energy_j), NUMBER, .need = SHAPE_SPARING},
    {AS("startup_time_s", end.startup_time_s), NUMBER, .need = SHAPE_SPARING},
    {AS("nothing_learnt", end.nothing_learnt), SHAPE_IS_BOOL, .need = SHAPE_SPARING},
};

static const struct shape_field run_rows[] = {
    CALL,
    {AS("definition", run.definition), SHAPE_IS_STRUCT(&shape_definition)},
    {AS("request", run.question.request), TEXT},
    {AS("run", run.question.run), TEXT},
    {AS("submission", run.question.submission), TEXT},
    {AS("batch_size", run.question.ran_batch_size), SHAPE_IS_U32(1, UINT32_MAX)},
    {AS("limit_w", run.question.ran_limit_w), NUMBER},
    {AS("gpu_model", run.question.hardware.gpu_model), TEXT},
    {AS("gpu_count", run.question.hardware.gpu_count), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("world_size", run.question.hardware.world_size), SHAPE_IS_U32(0, UINT32_MAX)},
    {AS("limits_w", run.question.hardware.limits_w),
     SHAPE_IS_NUMBERS(SHAPE_ANY, FLY_POWER_SEARCH_LIMITS_MAX, spool_entry,
                      run.question.hardware.limit_count)},
    {AS("max_power_w", run.question.hardware.max_power_w), NUMBER},
    {AS("user", run.question.origin.user), TEXT},
    {AS("account", run.question.origin.account), TEXT},
    {AS("host", run.question.origin.host), TEXT},
    {AS("gpus", run.question.origin.gpus), TEXT, SINCE_0_2},
    {AS("gpu_memory_bytes", run.question.hardware.gpu_memory_bytes), SHAPE_IS_U64(0, INT64_MAX), SINCE_0_2},
};

static const struct shape calls[] = {
    [SPOOL_PROFILE] = {SHAPE_OF(spool_entry, profile_rows)},
    [SPOOL_REPORT] = {SHAPE_OF(spool_entry, report_rows)},
    [SPOOL_END] = {SHAPE_OF(spool_entry, end_rows)},
    [SPOOL_RUN] = {SHAPE_OF(spool_entry, run_rows)},
};

/* ---- writing ---- */

int spool_write(const struct spool_entry *entry, struct buffer *out, struct fly_error *out_error)
{
    struct spool_entry written = *entry;
    json_t *json = NULL;
    char *text;
    int code;

    if (entry->kind == SPOOL_RUN)
        written.run.definition = definition_on_record(&entry->run.definition);
    code = shape_write(&calls[entry->kind], &written, &json, out_error);
    if (code < 0)
        return code;
    text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(json);
    if (text == NULL)
        return error_no_memory(out_error);
    buffer_puts(out, text);
    buffer_puts(out, "\n");
    free(text);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

/* ---- reading ---- */

static int check(struct spool_entry *entry, struct fly_error *out_error)
{
    if (entry->kind == SPOOL_PROFILE && entry->profile.point_count == 0)
        return error_set(out_error, FLY_EDATA, "member 'points': expected at least one");
    if (entry->kind != SPOOL_RUN)
        return 0;
    entry->run.question.tries = 1;
    entry->run.question.job = entry->run.definition.name;
    return job_definition_check(&entry->run.definition, out_error);
}

static int read_call(json_t *json, struct spool_parsed *parsed, struct fly_error *out_error)
{
    int code = shape_read(&shape_call, json, SHAPE_LENIENT, NULL, &parsed->entry, out_error);

    if (code == 0)
        code = shape_read(&calls[parsed->entry.kind], json, SHAPE_LENIENT, &parsed->arena, &parsed->entry,
                          out_error);
    return code == 0 ? check(&parsed->entry, out_error) : code;
}

int spool_parse(const char *line, size_t length, struct spool_parsed *out_parsed, struct fly_error *out_error)
{
    struct fly_error why = {.text = "it is too long"};
    json_t *json = NULL;
    int code = length <= SPOOL_LINE_MAX ? shape_parse(line, length, &json, &why) : FLY_ELIMIT;

    arena_init(&out_parsed->arena, PARSED_MEMORY_MAX);
    if (code == 0)
        code = read_call(json, out_parsed, &why);
    json_decref(json);
    if (code == 0)
        return 0;
    arena_deinit(&out_parsed->arena);
    return error_set(out_error, FLY_EDATA, "a kept report is no call to a job's log: %.300s", why.text);
}

void spool_parsed_free(struct spool_parsed *parsed)
{
    arena_deinit(&parsed->arena);
}

enum { HOST_MAX = 64, HEAD_MAX = SPOOL_PATH_MAX * 6 + 64, FULL_BYTES = 2 << 20 };

static const char suffix[] = ".calls";

/*
 * Takes the directory that FLYBALL_SPOOL names; false when it names none. A relative path means no directory
 * at all: otherwise reports would be wherever a program happened to run.
 */
static bool take_named(struct spool *spool)
{
    const char *named = getenv("FLYBALL_SPOOL");

    if (named == NULL || named[0] == '\0')
        return false;
    if (named[0] == '/' && strlen(named) < sizeof spool->directory)
        snprintf(spool->directory, sizeof spool->directory, "%s", named);
    return true;
}

void spool_init(struct spool *spool, const char *directory, const char *store)
{
    *spool = (struct spool){.file = -1};
    if (directory != NULL && strlen(directory) < sizeof spool->directory)
        snprintf(spool->directory, sizeof spool->directory, "%s", directory);
    else if (directory == NULL && !take_named(spool) &&
             user_directory_find(USER_STATE, "spool", "reports that wait", spool->directory,
                                 sizeof spool->directory, NULL) < 0)
        spool->directory[0] = '\0';
    snprintf(spool->store, sizeof spool->store, "%s", store != NULL ? store : "");
}

/* Puts a file out of the way without removing it. */
static void put_aside(const char *path)
{
    char aside[SPOOL_PATH_MAX + 512];

    snprintf(aside, sizeof aside, "%s.refused", path);
    (void)rename(path, aside);
}

void spool_end(struct spool *spool, enum spool_rest rest)
{
    if (spool->file < 0)
        return;
    if (rest == SPOOL_DELIVERED)
        unlink(spool->path);
    else if (rest == SPOOL_REFUSED)
        put_aside(spool->path);
    close(spool->file);
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
                     "reports in '%s' cannot be %s: %s; make room, or name another place with FLYBALL_SPOOL",
                     spool->directory, what, strerror(cause));
}

static int write_all(const struct spool *spool, const char *bytes, size_t length, struct fly_error *out_error)
{
    off_t before = lseek(spool->file, 0, SEEK_END);
    ssize_t count = write(spool->file, bytes, length);

    if (count == (ssize_t)length)
        return 0;
    if (count >= 0)
        errno = ENOSPC;
    count = failed(spool, "kept", out_error);
    /* Half a line must not spoil the next one. */
    if (before < 0 || ftruncate(spool->file, before) < 0)
        return FLY_EWRITE;
    return (int)count;
}

/* Names the file uniquely, also when machines share the directory: by time, process and host. */
static void name_file(struct spool *spool)
{
    struct timespec now;
    char host[HOST_MAX + 1] = "";

    if (gethostname(host, HOST_MAX) < 0)
        host[0] = '\0';
    for (char *at = host; (at = strpbrk(at, "/ ")) != NULL;)
        *at = '_';
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(spool->path, sizeof spool->path, "%s/%lld%09ld-%d-%s%s", spool->directory, (long long)now.tv_sec,
             now.tv_nsec, (int)getpid(), host, suffix);
}

/* The first line. */
enum { VERSION = 1 };

struct head {
    uint32_t version;
    const char *store;
};

static const struct shape_field head_rows[] = {
    {SHAPE_AT_AS("flyball_calls", head, version), SHAPE_IS_U32(VERSION, VERSION)},
    {SHAPE_AT(head, store), SHAPE_IS_TEXT(SPOOL_PATH_MAX)},
};
static const struct shape shape_head = {SHAPE_OF(head, head_rows)};

static int add_head(const struct spool *spool, struct buffer *out, struct fly_error *out_error)
{
    const struct head head = {.version = VERSION, .store = spool->store};
    char *text;
    int code = shape_write_text(&shape_head, &head, &text, out_error);

    if (code < 0)
        return code;
    buffer_puts(out, text);
    buffer_puts(out, "\n");
    free(text);
    return 0;
}

/* In one write, so that a kill leaves no head without lines. */
static int write_first(const struct spool *spool, const char *lines, size_t length,
                       struct fly_error *out_error)
{
    struct buffer all;
    int code;

    buffer_init(&all, HEAD_MAX + length);
    code = add_head(spool, &all, out_error);
    buffer_append(&all, lines, length);
    if (code == 0 && all.error < 0)
        code = error_no_memory(out_error);
    if (code == 0)
        code = write_all(spool, all.data, all.length, out_error);
    buffer_deinit(&all);
    return code;
}

/* Makes the file with its first lines. */
static int begin_file(struct spool *spool, const char *lines, size_t length, struct fly_error *out_error)
{
    int code;

    if (spool->directory[0] == '\0')
        return error_set(out_error, FLY_ENOTFOUND,
                         "reports cannot be kept; set FLYBALL_SPOOL to a whole path, or HOME");
    (void)user_directory_make(spool->directory);
    name_file(spool);
    spool->file = open(spool->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (spool->file < 0)
        return failed(spool, "kept", out_error);
    (void)flock(spool->file, LOCK_EX | LOCK_NB);
    code = write_first(spool, lines, length, out_error);
    if (code < 0)
        spool_end(spool, SPOOL_DELIVERED);
    return code;
}

int spool_add_lines(struct spool *spool, const char *lines, size_t length, struct fly_error *out_error)
{
    return spool->file < 0 ? begin_file(spool, lines, length, out_error)
                           : write_all(spool, lines, length, out_error);
}

/* A file's name is its directory's content. Where directories cannot be synced, the system does it. */
static void sync_name(const struct spool *spool)
{
    int directory = open(spool->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0)
        return;
    (void)fsync(directory);
    close(directory);
}

int spool_sync(const struct spool *spool, struct fly_error *out_error)
{
    /* Opened anew, so that it holds no lock that outlives the session. */
    int file = open(spool->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), code = 0;

    if (file < 0)
        return errno == ENOENT ? 0 : failed(spool, "kept safe from a crash of the machine", out_error);
    if (fdatasync(file) == 0)
        sync_name(spool);
    else
        code = failed(spool, "kept safe from a crash of the machine", out_error);
    close(file);
    return code;
}

bool spool_is_full(const struct spool *spool)
{
    struct stat facts;

    return spool->file >= 0 && fstat(spool->file, &facts) == 0 && facts.st_size > SPOOL_FILE_MAX - FULL_BYTES;
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

static bool is_ours(const char *line, size_t length, const char *store)
{
    json_t *json = NULL;
    struct head head;
    bool ours = shape_parse(line, length, &json, NULL) == 0 &&
                shape_read(&shape_head, json, SHAPE_BORROWING, NULL, &head, NULL) == 0 &&
                strcmp(head.store, store) == 0;

    json_decref(json);
    return ours;
}

/* Reads the whole file; false when it cannot be read or is no such file for this log. */
static bool read_file(int file, const char *store, struct buffer *content)
{
    char bytes[1 << 12];
    off_t at = 0;
    ssize_t count;
    const char *end;

    while ((count = pread(file, bytes, sizeof bytes, at)) > 0) {
        buffer_append(content, bytes, (size_t)count);
        at += count;
    }
    end = memchr(content->data, '\n', content->length);
    if (count < 0 || content->error < 0 || end == NULL)
        return false;
    return is_ours(content->data, (size_t)(end - content->data), store);
}

void spool_give_trial(struct spool_entry *entry, const struct job_proposal *run)
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
    int code; /* why delivery has ended; 0: it has not */
};

static bool is_over(struct delivery *delivery)
{
    if (delivery->code == 0 && !delivery->endless && mono_now().ns >= delivery->end.ns)
        delivery->code = FLY_EEXHAUSTED;
    return delivery->code < 0;
}

/* Delivers one line; returns whether the log dealt with it. */
static bool deliver_line(const char *line, size_t length, struct delivery *delivery,
                         struct spool_parsed *parsed, struct job_proposal *run, bool *out_refused)
{
    union spool_answer answer;
    struct fly_error error;
    int code = spool_parse(line, length, parsed, &error);

    if (code == 0) {
        spool_give_trial(&parsed->entry, run);
        /* Whatever that epoch cost, no answer could stop the training any more. */
        if (parsed->entry.kind == SPOOL_REPORT)
            parsed->entry.epoch.afterwards = true;
        code = spool_call(delivery->jobs, &parsed->entry, &answer, &error);
        if (parsed->entry.kind == SPOOL_RUN)
            *run = code == 0 ? answer.proposal : (struct job_proposal){.trial = 0};
        spool_parsed_free(parsed);
    }
    /* Another log may understand the job: one with its plug-in, or a newer one. */
    if (spool_passing(code) || code == FLY_EUNSUPPORTED) {
        delivery->code = code;
        return false;
    }
    *out_refused |= code < 0;
    return true;
}

/* Delivers each line but the first, and but an incomplete last one. */
static void deliver_lines(const char *text, struct delivery *delivery, bool *out_refused)
{
    const char *line = strchr(text, '\n') + 1, *end;
    struct spool_parsed *parsed = calloc(1, sizeof *parsed);
    struct job_proposal run = {.trial = 0};

    if (parsed == NULL)
        delivery->code = FLY_ENOMEM;
    for (; !is_over(delivery) && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        if (!deliver_line(line, (size_t)(end - line), delivery, parsed, &run, out_refused))
            break;
    }
    free(parsed);
}

/* Delivers what an open file holds; returns whether that was all. */
static bool deliver_file(int file, const char *store, struct delivery *delivery, bool *out_refused)
{
    struct buffer content;
    bool ours;

    buffer_init(&content, SPOOL_FILE_MAX);
    ours = read_file(file, store, &content);
    if (ours)
        deliver_lines(content.data, delivery, out_refused);
    buffer_deinit(&content);
    return ours && delivery->code == 0;
}

/* Opens a file that no session holds any more, with a lock on it; -1 for none. */
static int open_left(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat facts;

    /*
     * Its session may live, or another process may have been faster; and only this user's reports are
     * delivered.
     */
    if (file >= 0 && (flock(file, LOCK_EX | LOCK_NB) != 0 || fstat(file, &facts) != 0 ||
                      facts.st_nlink == 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid())) {
        close(file);
        file = -1;
    }
    return file;
}

static uint64_t deliver_one(const struct spool *spool, const char *path, struct delivery *delivery)
{
    int file = is_over(delivery) ? -1 : open_left(path);
    bool refused = false, done;

    if (file < 0)
        return 0;
    done = deliver_file(file, spool->store, delivery, &refused);
    if (done && refused)
        put_aside(path);
    else if (done)
        unlink(path);
    close(file);
    return done;
}

/* Counts the lines that are calls. */
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

/* Adds up what `each` returns for the files, in order of their begin. */
typedef uint64_t (*each_file)(const struct spool *spool, const char *path, struct delivery *delivery);

static uint64_t for_each(const struct spool *spool, each_file each, struct delivery *delivery)
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

static uint64_t count_one(const struct spool *spool, const char *path, struct delivery *delivery)
{
    (void)delivery;
    return count_left(spool, path);
}

int spool_deliver_left(const struct spool *spool, const struct jobs *jobs, double most_s)
{
    bool endless = isinf(most_s);
    struct delivery delivery = {
        .jobs = jobs, .endless = endless, .end = mono_after_s(mono_now(), endless ? 0.0 : most_s)};

    (void)for_each(spool, deliver_one, &delivery);
    return delivery.code;
}

static uint64_t see_one(const struct spool *spool, const char *path, struct delivery *delivery)
{
    (void)spool, (void)path, (void)delivery;
    return 1;
}

bool spool_any_left(const struct spool *spool)
{
    return for_each(spool, see_one, NULL) > 0;
}

uint64_t spool_count_left(const struct spool *spool)
{
    return for_each(spool, count_one, NULL);
}
