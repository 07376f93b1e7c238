/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_GROUP_FILE_H
#define FLYBALL_SIM_WORLD_GROUP_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text/csv.h"

/*
 * Groups of overlapping submissions of recurring jobs, in the columns of the Alibaba group trace:
 *
 *     group,start_time,end_time,dataset,runtime_ratio
 *
 * The rows of a group are together, by start_time ascending; times are in s, and end_time is not
 * before start_time; all rows of a group name one dataset; runtime_ratio, above 0, scales a
 * submission's energy and time. Other columns are ignored.
 *
 * Opening reads the file once, checks every row and records where each group begins. A group's
 * rows are read again when it is simulated, so memory grows with the number of groups, not of
 * submissions.
 */
struct group {
    const char *name;
    const char *dataset;
    uint64_t submissions;
    size_t line;     /* of its first row */
    uint64_t offset; /* of its first row, in bytes */
};

struct group_file {
    struct arena arena;   /* owns all below */
    const char *name;     /* for messages */
    const char *path;     /* to open it again */
    struct group *groups; /* in file order */
    size_t count;
    uint64_t submissions; /* of all groups */
};

enum { GROUPS_MAX = 4 << 20 };

/* A submission of a group's job. */
struct submission {
    double start_s;
    double end_s;
    double runtime_ratio;
};

/*
 * Indexes a file. `path` is opened now and for each group; `name` stands for it in messages.
 * FLY_EDATA with file, line and column for a bad row, and errors as csv_open. Call
 * group_file_close only after success.
 */
int group_file_open(struct group_file *file, const char *path, const char *name, struct fly_error *out_error);
void group_file_close(struct group_file *file);

/* Reads one group's submissions, one after another. */
struct group_reader {
    struct csv csv;
    uint64_t left;
};

/* Any number of readers may be open at a time. Call group_reader_close only after success. */
int group_reader_open(struct group_reader *reader, const struct group_file *file, const struct group *group,
                      struct fly_error *out_error);
void group_reader_close(struct group_reader *reader);

/*
 * Returns 1 with the next submission, 0 after the last, or an error if the file changed since it
 * was indexed.
 */
int group_reader_next(struct group_reader *reader, struct submission *out_submission,
                      struct fly_error *out_error);

#endif
