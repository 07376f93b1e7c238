/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_H
#define FLYBALL_NODE_SHARE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/buffer.h"
#include "meter/gpu_usage.h"
#include "node/watch/watch.h"

/*
 * Keeps account of who uses the GPUs of a watch, for as long as the daemon runs and beyond.
 *
 *     share_open(&options, &share, out_error);
 *     share_tell(share, &told, out_error);         the rows, as GET /v1/usage has them
 *     share_told_free(&told);
 *     share_close(share);
 *
 * For each GPU a thread asks the driver who is there, so a call that hangs on one GPU stops no other; what
 * each look adds to which row is in share_ledger.h. Another thread gives processes their names, which may
 * wait for a directory or a disk, and a third one keeps the record.
 *
 * The record (USAGE_ENDED_FILE and USAGE_NOW_FILE, meter/gpu_usage.h) lets rows go on after a restart or
 * a crash. What was drawn since it was last written is then unobserved, so sums stay exact. If it cannot be
 * written, that is told, and the account goes on in memory.
 *
 * A row of a process is kept while it is there, while its job (the same Slurm job, pod or training job of
 * one user) has others there, and for keep_s after that. Then its energy is in the others' row, and the
 * row itself in the record alone.
 *
 * Thread-safe, but for opening and closing. After fork only the parent may use it.
 */
struct share;

enum { SHARE_SERIES_MAX = 1000 };

struct share_options {
    struct watch *watch; /* borrowed */
    double poll_s;       /* between two looks at who is there; 0: 0.5 s */
    double keep_s;       /* for which rows are kept after their end */
    size_t series;       /* at most so many series for Prometheus; 0: SHARE_SERIES_MAX */
    const char *state;   /* directory of the record; copied; NULL: none */
    double save_s;       /* between two times that it is written; 0: 10 s */
    const char *root;    /* of proc and var/log, as for owners_new; copied */
    /* Gets a line for the log, which tells of a trouble or not; from any thread. NULL: nobody. */
    void (*tell)(void *state, bool trouble, const char *line);
    void *tell_state;
};

/*
 * Reads the record, and starts to look. A record that cannot be read is told; its energy is unobserved then.
 * FLY_ENOMEM.
 */
int share_open(const struct share_options *options, struct share **out_share, struct fly_error *out_error);

/* Writes the record and frees all; a thread that hangs in the driver is left behind. Accepts NULL. */
void share_close(struct share *share);

/* Changes how long rows are kept. */
void share_keep(struct share *share, double keep_s);

/* All rows at one moment; gpus[i] is that of the watch's place i, and its rows stand together. */
struct share_told {
    size_t gpu_count;
    struct usage_gpu *gpus;
    size_t row_count;
    struct usage_row *rows;
    struct arena *arena; /* owned: all of the above */
};
int share_tell(struct share *share, struct share_told *out_told, struct fly_error *out_error);
void share_told_free(struct share_told *told); /* accepts a zeroed one */

/* Appends the figures of all rows in Prometheus' text format, within the maximum of series. */
void share_write_metrics(struct share *share, struct buffer *text);

extern const struct quantities share_quantities;

#endif
