/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/group_file.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/patient_file.h"

enum { MEMORY_MAX = 1 << 30, FIRST_GROUPS = 64 };
static const double time_max_s = 1e15, ratio_max = 1e12;

enum group_column { G_GROUP, G_START, G_END, G_DATASET, G_RATIO, G_COUNT };
static const char *const group_columns[] = {"group", "start_time", "end_time", "dataset", "runtime_ratio"};
_Static_assert(sizeof group_columns / sizeof group_columns[0] == G_COUNT, "one name for every column");

static int read_submission(const struct csv *csv, struct submission *out_submission,
                           struct fly_error *out_error)
{
    struct submission submission;
    int code = csv_number(csv, G_START, -time_max_s, time_max_s, "a time in seconds", &submission.start_s,
                          out_error);

    if (code == 0)
        code = csv_number(csv, G_END, -time_max_s, time_max_s, "a time in seconds", &submission.end_s,
                          out_error);
    if (code == 0)
        code = csv_number(csv, G_RATIO, 0.0, ratio_max, "a number above 0", &submission.runtime_ratio,
                          out_error);
    if (code < 0)
        return code;
    if (submission.end_s < submission.start_s)
        return csv_refuse(csv, G_END, "a time not before start_time", "correct one of the two", out_error);
    *out_submission = submission;
    return 0;
}

/* The indexing of a file. */
struct indexing {
    struct group_file *file;
    struct csv csv;
    size_t capacity;
    double last_start_s; /* of the group being read */
};

static int add_group(struct indexing *indexing, uint64_t offset, struct fly_error *out_error)
{
    struct group_file *file = indexing->file;
    struct csv *csv = &indexing->csv;
    struct group group = {.line = csv->line, .offset = offset};

    if (file->count == GROUPS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s:%zu: more than %d groups; split the file", csv->path,
                         csv->line, GROUPS_MAX);
    if (*csv_field(csv, G_GROUP) == '\0' || *csv_field(csv, G_DATASET) == '\0')
        return csv_refuse(csv, *csv_field(csv, G_GROUP) == '\0' ? G_GROUP : G_DATASET, "a name",
                          "correct the line or leave it out", out_error);
    if (file->count == indexing->capacity) {
        size_t capacity = indexing->capacity > 0 ? 2 * indexing->capacity : FIRST_GROUPS;
        struct group *groups = arena_alloc(&file->arena, capacity, sizeof groups[0]);

        if (groups == NULL)
            return error_no_memory(out_error);
        if (file->count > 0)
            memcpy(groups, file->groups, file->count * sizeof groups[0]);
        file->groups = groups;
        indexing->capacity = capacity;
    }
    group.name = arena_strdup(&file->arena, csv_field(csv, G_GROUP));
    group.dataset = arena_strdup(&file->arena, csv_field(csv, G_DATASET));
    if (group.name == NULL || group.dataset == NULL)
        return error_no_memory(out_error);
    file->groups[file->count++] = group;
    indexing->last_start_s = -INFINITY;
    return 0;
}

static int index_row(struct indexing *indexing, uint64_t offset, struct fly_error *out_error)
{
    struct group_file *file = indexing->file;
    struct csv *csv = &indexing->csv;
    struct submission submission = {0};
    struct group *group;
    int code = read_submission(csv, &submission, out_error);

    if (code == 0 &&
        (file->count == 0 || strcmp(file->groups[file->count - 1].name, csv_field(csv, G_GROUP)) != 0))
        code = add_group(indexing, offset, out_error);
    if (code < 0 || file->count == 0)
        return code;
    group = &file->groups[file->count - 1];
    if (strcmp(group->dataset, csv_field(csv, G_DATASET)) != 0)
        return csv_refuse(csv, G_DATASET, "the dataset of the group's first row", "split the group in two",
                          out_error);
    if (submission.start_s < indexing->last_start_s)
        return csv_refuse(csv, G_START, "a time not before the group's last row's",
                          "sort the group by start_time", out_error);
    indexing->last_start_s = submission.start_s;
    group->submissions++;
    file->submissions++;
    return 0;
}

static int order_by_name(const void *left, const void *right)
{
    const struct group *a = *(const struct group *const *)left, *b = *(const struct group *const *)right;
    int order = strcmp(a->name, b->name);

    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/* Refuses a group whose rows are in two places. */
static int check_scattered(const struct group_file *file, struct fly_error *out_error)
{
    const struct group **sorted = calloc(file->count + 1, sizeof(const struct group *));
    int code = 0;

    if (sorted == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < file->count; i++)
        sorted[i] = &file->groups[i];
    qsort(sorted, file->count, sizeof(const struct group *), order_by_name);
    for (size_t i = 1; i < file->count && code == 0; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            code = error_set(
                out_error, FLY_EDATA,
                "%s:%zu: column 'group': group '%s' began in line %zu already; expected its rows together, "
                "so sort the file by group",
                file->name, sorted[i]->line, sorted[i]->name, sorted[i - 1]->line);
    }
    free(sorted);
    return code;
}

static int index_rows(struct indexing *indexing, struct fly_error *out_error)
{
    uint64_t offset = indexing->csv.next_offset;
    int more;

    while ((more = csv_next(&indexing->csv, out_error)) > 0) {
        int code = index_row(indexing, offset, out_error);

        if (code < 0)
            return code;
        offset = indexing->csv.next_offset;
    }
    if (more == 0 && indexing->file->count == 0)
        return error_set(out_error, FLY_EDATA,
                         "%s:1: the file has a header and no rows; expected submissions",
                         indexing->file->name);
    return more < 0 ? more : check_scattered(indexing->file, out_error);
}

int group_file_open(struct group_file *file, const char *path, const char *name, struct fly_error *out_error)
{
    struct indexing indexing = {.file = file};
    FILE *stream = patient_file_read(path);
    int code;

    if (stream == NULL)
        return csv_open_failed(name, errno, out_error);
    *file = (struct group_file){0};
    arena_init(&file->arena, MEMORY_MAX);
    file->name = arena_strdup(&file->arena, name);
    file->path = arena_strdup(&file->arena, path);
    if (file->name == NULL || file->path == NULL) {
        fclose(stream);
        code = error_no_memory(out_error);
    } else {
        code = csv_open_stream(&indexing.csv, file->name, stream, group_columns, G_COUNT, out_error);
        if (code == 0) {
            code = index_rows(&indexing, out_error);
            csv_close(&indexing.csv);
        }
    }
    if (code < 0)
        group_file_close(file);
    return code;
}

void group_file_close(struct group_file *file)
{
    arena_deinit(&file->arena);
}

int group_reader_open(struct group_reader *reader, const struct group_file *file, const struct group *group,
                      struct fly_error *out_error)
{
    int code = csv_open(&reader->csv, file->path, group_columns, G_COUNT, out_error);

    if (code < 0)
        return code;
    reader->csv.path = file->name;
    reader->left = group->submissions;
    code = csv_seek(&reader->csv, group->offset, group->line, out_error);
    if (code < 0)
        csv_close(&reader->csv);
    return code;
}

void group_reader_close(struct group_reader *reader)
{
    csv_close(&reader->csv);
}

int group_reader_next(struct group_reader *reader, struct submission *out_submission,
                      struct fly_error *out_error)
{
    int more;

    if (reader->left == 0)
        return 0;
    more = csv_next(&reader->csv, out_error);
    if (more == 0)
        return error_set(out_error, FLY_EREAD,
                         "%s: the file has become shorter; do not change it while it is read",
                         reader->csv.path);
    if (more < 0)
        return more;
    reader->left--;
    more = read_submission(&reader->csv, out_submission, out_error);
    return more < 0 ? more : 1;
}
