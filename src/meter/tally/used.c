/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/tally/used.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "meter/gpu_usage.h"

enum {
    TEXT_BYTES = 256 << 20,
    FILE_BYTES_MAX = 64 << 20,
    LINE_ARENA_BYTES = 1 << 20,
    HEAD_BYTES = 64,
    UID_TEXT = 32
};

static const double ms_per_s = 1e3, time_most_s = 1e10;
static const int64_t moment_most_ms = 100000000000000; /* the year 5138 */

/* A GPU's total at a moment. */
struct used_total {
    const char *node, *uuid;
    int64_t unix_ms, energy_uj;
    bool emulated;
};

void used_init(struct used *used)
{
    *used = (struct used){.window_count = 0};
    arena_init(&used->arena, TEXT_BYTES);
}

void used_deinit(struct used *used)
{
    free(used->windows);
    free(used->processes);
    free(used->totals);
    arena_deinit(&used->arena);
    *used = (struct used){.window_count = 0};
}

/* ---- lines ---- */

static const char *keep_text(struct used *used, const char *text)
{
    return text == NULL || text[0] == '\0' ? "" : arena_strdup(&used->arena, text);
}

/* A moment from a file may be any number, and is computed with. */
static int64_t moment(int64_t unix_ms)
{
    if (unix_ms < 0)
        return 0;
    return unix_ms < moment_most_ms ? unix_ms : moment_most_ms;
}

static int take_total(struct used *used, const struct usage_line *line, const char *node)
{
    struct used_total *totals;
    struct used_total total = {.node = node,
                               .uuid = keep_text(used, line->row.uuid),
                               .unix_ms = moment(line->unix_ms),
                               .energy_uj = line->row.energy_uj,
                               .emulated = line->source != NULL && strcmp(line->source, "emulated") == 0};

    if (used->total_count >= USED_LINES_MAX)
        return FLY_ELIMIT;
    totals = array_grow(used->totals, used->total_count, &used->total_capacity, sizeof totals[0]);
    if (totals == NULL || total.uuid == NULL)
        return FLY_ENOMEM;
    used->totals = totals;
    used->totals[used->total_count++] = total;
    return 0;
}

/* The number of a user, which stays his, in the form in which jobs record it. */
static const char *uid_text(int64_t uid, char text[UID_TEXT])
{
    snprintf(text, UID_TEXT, "uid:%" PRId64, uid);
    return text;
}

/* A row that goes on was there up to when it was written; one whose start is unknown, for its time before. */
static int take_process(struct used *used, const struct usage_line *line, const char *node)
{
    const struct usage_row *row = &line->row;
    char user[UID_TEXT];
    int64_t to_ms = moment(row->ended_unix_ms != 0 ? row->ended_unix_ms : line->unix_ms);
    double time_s = isfinite(row->time_s) ? fmin(row->time_s, time_most_s) : 0.0;
    struct used_process *processes;
    struct used_process process = {
        .node = node,
        .uuid = keep_text(used, row->uuid),
        .user = keep_text(used, row->uid >= 0 ? uid_text(row->uid, user) : row->user),
        .training_job = keep_text(used, row->training_job),
        .pid = (int64_t)row->pid,
        .from_unix_ms =
            row->started_unix_ms != 0 ? moment(row->started_unix_ms) : to_ms - (int64_t)(time_s * ms_per_s),
        .to_unix_ms = to_ms,
        .started_unix_ms = row->started_unix_ms,
        .told_unix_ms = line->unix_ms,
        .energy_j = row->energy_j,
        .half_width_j = row->half_width_j,
        .time_s = time_s};

    if (used->process_count >= USED_LINES_MAX)
        return FLY_ELIMIT;
    processes =
        array_grow(used->processes, used->process_count, &used->process_capacity, sizeof processes[0]);
    if (processes == NULL || process.uuid == NULL || process.user == NULL || process.training_job == NULL)
        return FLY_ENOMEM;
    used->processes = processes;
    used->processes[used->process_count++] = process;
    return 0;
}

static int take_line(struct used *used, const char *text, size_t length, const char *node)
{
    struct usage_line line;
    struct arena arena;
    int code;

    arena_init(&arena, LINE_ARENA_BYTES);
    code = shape_read_text(&shape_usage_line, text, length, SHAPE_LENIENT, &arena, &line, NULL, NULL);
    if (code == FLY_ENOMEM) {
        arena_deinit(&arena);
        return code;
    }
    if (code < 0 || strcmp(line.schema, USAGE_LINE_SCHEMA) != 0) {
        used->damaged++;
        code = 0;
    } else if (strcmp(line.what, "gpu") == 0) {
        code = take_total(used, &line, node);
    } else if ((strcmp(line.what, "end") == 0 || strcmp(line.what, "row") == 0) &&
               line.row.kind == USAGE_PROCESS && line.row.pid != 0) {
        code = take_process(used, &line, node);
    }
    arena_deinit(&arena);
    return code;
}

int used_take(struct used *used, const char *text, size_t length, const char *node,
              struct fly_error *out_error)
{
    const char *end = text + length;
    const char *kept = keep_text(used, node);
    int code = kept != NULL ? 0 : FLY_ENOMEM;

    while (text < end && code == 0) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((stop != NULL ? stop : end) - text);

        if (bytes > USED_LINE_BYTES_MAX)
            used->damaged++;
        else if (bytes > 0)
            code = take_line(used, text, bytes, kept);
        text += bytes + (stop != NULL);
    }
    if (code == FLY_ELIMIT)
        return error_set(out_error, code, "the record has more than %d rows; name fewer files",
                         USED_LINES_MAX);
    return code < 0 ? error_no_memory(out_error) : 0;
}

int used_read(struct used *used, const char *path, const char *node, struct fly_error *out_error)
{
    struct buffer text;
    int code;

    buffer_init(&text, FILE_BYTES_MAX);
    code = patient_file_read_all(path, &text, out_error);
    if (code == 0 && text.length > 0)
        code = used_take(used, text.data, text.length, node, out_error);
    buffer_deinit(&text);
    return code;
}

bool used_is_record(const char *path)
{
    static const char begin[] = "{\"schema\":\"" USAGE_LINE_SCHEMA "\"";
    char head[HEAD_BYTES];
    FILE *file = patient_file_read(path);
    size_t length = file != NULL ? fread(head, 1, sizeof begin - 1, file) : 0;

    if (file != NULL)
        fclose(file);
    return length == sizeof begin - 1 && memcmp(head, begin, length) == 0;
}

/* ---- the end ---- */

static int compare_whole(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_totals(const void *left, const void *right)
{
    const struct used_total *a = left, *b = right;
    int order = strcmp(a->node, b->node);

    if (order == 0)
        order = strcmp(a->uuid, b->uuid);
    return order != 0 ? order : compare_whole(a->unix_ms, b->unix_ms);
}

/* Rows of one process on one GPU stand together, the newest last. */
static int compare_identity(const struct used_process *a, const struct used_process *b)
{
    int order = strcmp(a->node, b->node);

    if (order == 0)
        order = strcmp(a->uuid, b->uuid);
    if (order == 0)
        order = compare_whole(a->pid, b->pid);
    return order != 0 ? order : compare_whole(a->started_unix_ms, b->started_unix_ms);
}

static int compare_processes(const void *left, const void *right)
{
    const struct used_process *a = left, *b = right;
    int order = compare_identity(a, b);

    return order != 0 ? order : compare_whole(a->told_unix_ms, b->told_unix_ms);
}

static void keep_newest(struct used *used)
{
    size_t kept = 0;

    qsort(used->processes, used->process_count, sizeof used->processes[0], compare_processes);
    for (size_t i = 0; i < used->process_count; i++) {
        if (i + 1 < used->process_count &&
            compare_identity(&used->processes[i], &used->processes[i + 1]) == 0)
            continue;
        used->processes[kept++] = used->processes[i];
    }
    used->process_count = kept;
}

/* Returns the part of a time that lies within the period; a moment lies within it or not. */
static double part_within(double from_s, double to_s, double since_s, double until_s)
{
    double begin_s = fmax(from_s, since_s), end_s = fmin(to_s, until_s);

    if (to_s <= from_s)
        return from_s >= since_s && from_s < until_s ? 1.0 : 0.0;
    return end_s > begin_s ? (end_s - begin_s) / (to_s - from_s) : 0.0;
}

static void cut_processes(struct used *used, double since_s, double until_s)
{
    size_t kept = 0;

    for (size_t i = 0; i < used->process_count; i++) {
        struct used_process process = used->processes[i];
        double part = part_within((double)process.from_unix_ms / ms_per_s,
                                  (double)process.to_unix_ms / ms_per_s, since_s, until_s);

        if (part <= 0.0)
            continue;
        process.energy_j *= part;
        process.half_width_j *= part;
        process.time_s *= part;
        used->processes[kept++] = process;
    }
    used->process_count = kept;
}

/* A total that falls is that of a record that was begun anew: what lies between is unknown. */
static int add_window(struct used *used, const struct used_total *from, const struct used_total *to,
                      double since_s, double until_s, struct fly_error *out_error)
{
    double from_s = (double)from->unix_ms / ms_per_s, to_s = (double)to->unix_ms / ms_per_s;
    double part = part_within(from_s, to_s, since_s, until_s);
    struct tally_window *windows;

    if (to_s <= from_s || to->energy_uj < from->energy_uj || part <= 0.0)
        return 0;
    windows = array_grow(used->windows, used->window_count, &used->window_capacity, sizeof windows[0]);
    if (windows == NULL)
        return error_no_memory(out_error);
    used->windows = windows;
    used->windows[used->window_count++] =
        (struct tally_window){.node = from->node,
                              .kind = DEVICE_GPU,
                              .uuid = from->uuid,
                              .start_unix_s = fmax(from_s, since_s),
                              .time_s = part * (to_s - from_s),
                              .energy_j = part * (double)(to->energy_uj - from->energy_uj) / 1e6,
                              .uncertainty_j = NAN,
                              .counted = true};
    used->emulated += to->emulated;
    return 0;
}

int used_end(struct used *used, double since_unix_s, double until_unix_s, struct fly_error *out_error)
{
    int code = 0;

    if (used->process_count > 0)
        keep_newest(used);
    cut_processes(used, since_unix_s, until_unix_s);
    if (used->total_count > 0)
        qsort(used->totals, used->total_count, sizeof used->totals[0], compare_totals);
    for (size_t i = 1; i < used->total_count && code == 0; i++) {
        const struct used_total *from = &used->totals[i - 1], *to = &used->totals[i];

        if (strcmp(from->node, to->node) == 0 && strcmp(from->uuid, to->uuid) == 0)
            code = add_window(used, from, to, since_unix_s, until_unix_s, out_error);
    }
    return code;
}
