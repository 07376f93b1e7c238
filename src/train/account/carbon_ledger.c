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
#include "shapes/shape_rows.h"

enum { VERSION = 1 };
static const double latest_s = 253402300800.0; /* the year 10000 */

/* ---- the format of a line ---- */

#define IS_NAME .kind = SHAPE_CHARS, .longest = LEDGER_TEXT_MAX - 1, .free_text = true, .any_bytes = true
#define IS_DATE .kind = SHAPE_I64, .most = (uint64_t)INT64_C(253402300800)
#define IS_AMOUNT SHAPE_IS_NUMBER(SHAPE_FROM_0), .null = SHAPE_NOT_FINITE

struct head_line {
    uint32_t version;
    struct ledger_head head;
};
static const struct shape_field head_rows[] = {
    {SHAPE_AT_AS("flyball_carbon", head_line, version), SHAPE_IS_U32(VERSION, VERSION),
     .expected = "version 1; use a newer flyball"},
    {SHAPE_AT_AS("run", head_line, head.run), IS_NAME},
    {SHAPE_AT_AS("job", head_line, head.job), IS_NAME},
    {SHAPE_AT_AS("host", head_line, head.host), IS_NAME},
    {SHAPE_AT_AS("program", head_line, head.program), IS_NAME},
    {SHAPE_AT_AS("source", head_line, head.sources[CARBON_INTENSITY]), IS_NAME},
    {SHAPE_AT_AS("price", head_line, head.sources[CARBON_PRICE]), IS_NAME},
    {SHAPE_AT_AS("per_g", head_line, head.objective.per_g), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT_AS("per_money", head_line, head.objective.per_money), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT_AS("per_kwh", head_line, head.objective.per_kwh), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT_AS("host_w", head_line, head.surroundings.host_w), SHAPE_IS_NUMBER(SHAPE_FROM_0)},
    {SHAPE_AT_AS("pue", head_line, head.surroundings.pue), SHAPE_IS_NUMBER(SHAPE_FROM_1)},
    {SHAPE_AT_AS("max_slowdown", head_line, head.max_slowdown), IS_AMOUNT},
    {SHAPE_AT_AS("finish_by_s", head_line, head.finish_by_s), IS_DATE},
    {SHAPE_AT_AS("steps", head_line, head.steps), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT_AS("start_s", head_line, head.start_s), IS_DATE},
    {SHAPE_AT_AS("gpus", head_line, head.gpus), SHAPE_IS_U32(0, UINT32_MAX)},
    {SHAPE_AT_AS("rank", head_line, head.rank), SHAPE_IS_U32(0, UINT32_MAX)},
};
static const struct shape head_shape = {SHAPE_OF(head_line, head_rows)};

static const struct shape_field slice_rows[] = {
    {SHAPE_AT(energy_slice, start_s), SHAPE_IS_NUMBER(SHAPE_FROM_0)},
    {SHAPE_AT(energy_slice, end_s), SHAPE_IS_NUMBER(SHAPE_ANY)},
    {SHAPE_AT(energy_slice, gpu_j), IS_AMOUNT},
    {SHAPE_AT(energy_slice, host_j), IS_AMOUNT},
    {SHAPE_AT(energy_slice, limit_w), IS_AMOUNT},
    {SHAPE_AT(energy_slice, steps), SHAPE_IS_NUMBER(SHAPE_FROM_0)},
    {SHAPE_AT(energy_slice, jumped), SHAPE_IS_BOOL},
};
static const struct shape slice_shape = {SHAPE_OF(energy_slice, slice_rows)};
struct slice_line {
    struct energy_slice slice;
    bool there; /* false: it is a profile's line */
};
static const struct shape_field slice_line_rows[] = {
    {SHAPE_AT(slice_line, slice), SHAPE_IS_STRUCT(&slice_shape), SHAPE_IF(slice_line, there),
     .null = SHAPE_AS_MISSING, .expected = "an object"},
};
static const struct shape slice_line_shape = {SHAPE_OF(slice_line, slice_line_rows)};

static const struct shape_field point_rows[] = {
    {SHAPE_AT(fly_power_point, limit_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},
    {SHAPE_AT(fly_power_point, power_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},
    {SHAPE_AT(fly_power_point, time_s), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},
};
static const struct shape point_shape = {SHAPE_OF(fly_power_point, point_rows), .as_list = true};
struct profile_line {
    struct fly_power_point profile[CARBON_POINTS_MAX];
    size_t count;
};
static const struct shape_field profile_rows[] = {
    {SHAPE_AT(profile_line, profile), SHAPE_IS_STRUCTS_HERE(&point_shape, profile_line, profile, count),
     .expected = "a list of points, or a slice in place of it"},
};
static const struct shape profile_shape = {SHAPE_OF(profile_line, profile_rows)};

/* ---- writing ---- */

static int put_line(const struct shape *shape, const void *line, struct buffer *out,
                    struct fly_error *out_error)
{
    int code = shape_put(shape, line, SHAPE_SPARE_ASCII, out, out_error);

    if (code < 0)
        return code;
    buffer_puts(out, "\n");
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

static bool is_head_sound(const struct ledger_head *head)
{
    const struct carbon_objective *objective = &head->objective;

    return isfinite(objective->per_g) && isfinite(objective->per_money) && isfinite(objective->per_kwh) &&
           head->surroundings.host_w >= 0.0 && isfinite(head->surroundings.host_w) &&
           isfinite(head->surroundings.pue) && head->start_s >= 0 && (double)head->start_s < latest_s &&
           head->finish_by_s >= 0 && (double)head->finish_by_s < latest_s && head->steps <= INT64_MAX;
}

int ledger_write_head(const struct ledger_head *head, struct buffer *out, struct fly_error *out_error)
{
    struct head_line line = {.version = VERSION, .head = *head};

    if (!is_head_sound(head))
        return error_set(out_error, FLY_EUSAGE,
                         "account of energy: a number of what ran is out of range; correct the options");
    line.head.surroundings.pue = fmax(head->surroundings.pue, 1.0);
    return put_line(&head_shape, &line, out, out_error);
}

static bool is_slice_sound(const struct energy_slice *slice)
{
    return slice->start_s >= 0.0 && slice->end_s > slice->start_s && slice->end_s < latest_s &&
           !(slice->gpu_j < 0.0) && !(slice->host_j < 0.0) && !(slice->limit_w < 0.0) &&
           slice->steps >= 0.0 && isfinite(slice->steps);
}

int ledger_write_slice(const struct energy_slice *slice, struct buffer *out, struct fly_error *out_error)
{
    if (!is_slice_sound(slice))
        return error_set(out_error, FLY_EUSAGE,
                         "account of energy: a stretch of %g J from %.3f to %.3f s cannot be", slice->gpu_j,
                         slice->start_s, slice->end_s);
    return put_line(&slice_line_shape, &(struct slice_line){*slice, true}, out, out_error);
}

static bool is_point_sound(const struct fly_power_point *point)
{
    return point->limit_w > 0.0 && isfinite(point->limit_w) && point->power_w > 0.0 &&
           isfinite(point->power_w) && point->time_s > 0.0 && isfinite(point->time_s);
}

int ledger_write_profile(const struct fly_power_point *points, size_t count, struct buffer *out,
                         struct fly_error *out_error)
{
    struct profile_line line = {.count = count};

    if (count == 0 || count > CARBON_POINTS_MAX)
        return error_set(out_error, FLY_EUSAGE, "account of energy: a power profile has 1 to %d points",
                         CARBON_POINTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!is_point_sound(&points[i]))
            return error_set(out_error, FLY_EUSAGE,
                             "account of energy: a point of a power profile is not above 0");
        line.profile[i] = points[i];
    }
    return put_line(&profile_shape, &line, out, out_error);
}

/* ---- reading ---- */

/* What is being read, and where. */
struct reading {
    const char *name;
    size_t line;
    struct arena *arena;
    struct ledger_content content;
};

static int refuse(const struct reading *reading, const char *why, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "account of energy '%.200s', line %zu: %s; it is none, or it was changed", reading->name,
                     reading->line, why);
}

static int refuse_member(const struct reading *reading, int code, const struct shape_fault *fault,
                         struct fly_error *out_error)
{
    char why[2 * SHAPE_EXPECTED_MAX];

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    snprintf(why, sizeof why, "member '%.120s': expected %.200s, found %s", fault->path, fault->expected,
             fault->found);
    return refuse(reading, why, out_error);
}

static int take_head(struct reading *reading, json_t *json, struct fly_error *out_error)
{
    struct head_line line;
    struct shape_fault fault;
    int code = shape_read_as(&head_shape, json, SHAPE_LENIENT, reading->arena, &line, &fault, NULL);

    if (code < 0)
        return refuse_member(reading, code, &fault, out_error);
    reading->content.head = line.head;
    return 0;
}

static int take_slice(struct reading *reading, const struct energy_slice *slice, struct fly_error *out_error)
{
    if (!(slice->end_s > slice->start_s && slice->end_s < latest_s))
        return refuse(reading, "member 'slice.end_s': expected a time after the start", out_error);
    reading->content.slices[reading->content.slice_count++] = *slice;
    return 0;
}

static int take_profile(struct reading *reading, json_t *json, struct fly_error *out_error)
{
    struct ledger_content *content = &reading->content;
    struct profile_line line;
    struct shape_fault fault;
    int code = shape_read_as(&profile_shape, json, SHAPE_LENIENT, reading->arena, &line, &fault, NULL);

    if (code < 0)
        return refuse_member(reading, code, &fault, out_error);
    if (line.count == 0)
        return refuse(reading, "member 'profile': expected one point at least", out_error);
    if (content->points == NULL)
        content->points = arena_alloc(reading->arena, CARBON_POINTS_MAX, sizeof content->points[0]);
    if (content->points == NULL)
        return error_no_memory(out_error);
    memcpy(content->points, line.profile, line.count * sizeof line.profile[0]);
    content->point_count = line.count;
    return 0;
}

static int take_line(struct reading *reading, json_t *json, struct fly_error *out_error)
{
    struct slice_line line;
    struct shape_fault fault;
    int code;

    if (reading->line == 1)
        return take_head(reading, json, out_error);
    code = shape_read_as(&slice_line_shape, json, SHAPE_LENIENT, reading->arena, &line, &fault, NULL);
    if (code < 0)
        return refuse_member(reading, code, &fault, out_error);
    return line.there ? take_slice(reading, &line.slice, out_error) : take_profile(reading, json, out_error);
}

static size_t count_lines(const char *text, size_t length)
{
    const char *end = text + length, *at = text;
    size_t count = 0;

    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        count++;
        at++;
    }
    return count;
}

int carbon_ledger_parse(const char *name, const char *text, size_t length, struct arena *arena,
                        struct ledger_content *out_content, struct fly_error *out_error)
{
    struct reading reading = {.name = name, .arena = arena};
    size_t lines = count_lines(text, length);
    const char *end = text + length;
    int code = 0;

    if (length > LEDGER_FILE_MAX)
        return error_set(out_error, FLY_ELIMIT, "account of energy '%.200s' is longer than %d MiB", name,
                         LEDGER_FILE_MAX >> 20);
    reading.content.slices = arena_alloc(arena, lines + 1, sizeof reading.content.slices[0]);
    if (reading.content.slices == NULL)
        return error_no_memory(out_error);
    for (reading.line = 1; reading.line <= lines && code == 0; reading.line++) {
        size_t size = (size_t)((const char *)memchr(text, '\n', (size_t)(end - text)) - text);
        json_t *json = NULL;

        code = shape_parse_as(text, size, SHAPE_LENIENT, &json, NULL, NULL);
        code = code == 0            ? take_line(&reading, json, out_error)
               : code == FLY_ENOMEM ? error_no_memory(out_error)
                                    : refuse(&reading, "expected an object of JSON", out_error);
        json_decref(json);
        text += size + 1;
    }
    if (code == 0 && lines == 0) {
        reading.line = 1;
        code = refuse(&reading, "expected what ran", out_error);
    }
    if (code < 0)
        return code;
    reading.content.torn = text < end;
    *out_content = reading.content;
    return 0;
}

/* ---- files ---- */

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

/* Begins a line; FLY_ESTATE where there is no file to write it to. */
static int begin_line(const struct carbon_ledger *ledger, struct buffer *line, struct fly_error *out_error)
{
    buffer_init(line, LEDGER_LINE_MAX);
    if (ledger->file < 0)
        return error_set(out_error, FLY_ESTATE, "the account of energy is not open");
    if (ledger->forks != fork_generation())
        return error_set(out_error, FLY_ESTATE,
                         "the account of energy was opened before a fork and is the parent's");
    return 0;
}

static int end_line(struct carbon_ledger *ledger, int code, struct buffer *line, struct fly_error *out_error)
{
    if (code == 0)
        code = write_line(ledger, line, out_error);
    buffer_deinit(line);
    return code;
}

int carbon_ledger_slice(struct carbon_ledger *ledger, const struct energy_slice *slice,
                        struct fly_error *out_error)
{
    struct buffer line;
    int code = begin_line(ledger, &line, out_error);

    if (code == 0)
        code = ledger_write_slice(slice, &line, out_error);
    return end_line(ledger, code, &line, out_error);
}

int carbon_ledger_profile(struct carbon_ledger *ledger, const struct fly_power_point *points, size_t count,
                          struct fly_error *out_error)
{
    struct buffer line;
    int code = begin_line(ledger, &line, out_error);

    if (code == 0)
        code = ledger_write_profile(points, count, &line, out_error);
    return end_line(ledger, code, &line, out_error);
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
