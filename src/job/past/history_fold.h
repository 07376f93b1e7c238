/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_HISTORY_FOLD_H
#define FLYBALL_JOB_PAST_HISTORY_FOLD_H

#include "base/buffer.h"
#include "job/past/history.h"

/* What came along to a job. */
struct brought_list {
    struct job_brought_past *items; /* in the arena */
    size_t count, capacity;
    size_t revisions; /* among them */
};

/* Adds one whose texts are in the arena. Returns 0 or FLY_ENOMEM, without a text. */
int brought_list_put(struct brought_list *list, const struct job_brought_past *past, struct arena *arena);

/* ---- the digest ---- */

/*
 * A job's history as bytes: what its log told up to one event, so that a reader need only read the events
 * after that. It is a cache, written beside the log (job_local_change.c), in parts:
 *
 *     head     everything that is not of one trial
 *     blocks   DIGEST_TRIALS trials each, in order; the last one may have fewer
 *
 * Only those parts change of which an event told. A reader gets the number of the first trial that comes, the
 * head, and the blocks from that trial on. What follows from other members of a row, and may change without
 * an event of its trial, is left out: history_finish_row.
 */
#define DIGEST_VERSION "job past 2" /* to be raised when anything here is written in another way */

enum { DIGEST_TRIALS = 128 };

/* Up to where a digest goes. */
struct digest_mark {
    uint64_t number; /* of the last event that it knows; 0: there is no digest */
    int64_t time_us; /* that event's time: a log with another one there is another log */
    uint64_t trials;
};

void digest_put_head(const struct digest_mark *mark, const struct job_history *history, struct buffer *bytes);
void digest_put_rows(const struct job_row *rows, size_t count, struct buffer *bytes);

/* The mark of a head; its number is 0 if the bytes are none of this version. */
struct digest_mark digest_mark_of(const void *head, size_t length);

/* What a reader gets. Texts are in the arena. */
struct digest {
    struct digest_mark mark;
    uint64_t first;       /* the trial of rows[0]; one above the last if there are none */
    struct job_row *rows; /* not finished */
    size_t count;
};

/*
 * Reads a digest; history->machines must have room for JOB_HARDWARE_MAX. Returns 1, or 0 for bytes that are
 * none, and then changes nothing that counts; FLY_ENOMEM.
 */
int digest_read(const void *data, size_t length, struct arena *arena, struct job_history *history,
                struct brought_list *brought, struct digest *out_digest, struct fly_error *out_error);

/* Reads the rows of one block, of which `first` is the first trial. Returns as digest_read. */
int digest_read_rows(const void *data, size_t length, uint64_t first, size_t count, struct arena *arena,
                     struct job_row *rows, struct fly_error *out_error);

/* ---- the fold ---- */

/* Folds a log to a history from where a digest ends, for who reads it and for who writes the next digest. */
enum { DIGEST_BYTES_MAX = 1 << 30 };

/* Where the events come from: as job_backend.read. */
struct history_source {
    int (*read)(void *self, const char *job, const struct store_query *query, store_visit *visit, void *state,
                struct fly_error *out_error);
    void *self;
    const char *job;
    uint64_t limit; /* events after the digest that are read at most; 0: all */
};

/* What digest_read takes; length 0: there is none. */
struct history_digest {
    const void *bytes;
    size_t length;
};

struct told_again {
    struct job_row row;       /* not finished */
    double reference_per_kwh; /* that counts for it; NAN */
};

struct history_fold {
    struct job_history history; /* its rows are those of the digest's blocks and those after the digest */
    struct digest_mark mark;    /* of what was read */
    uint64_t known;             /* trials that the digest knew */
    struct told_again *again;   /* those of them of which an event came since, in order */
    size_t again_count;
};

/* A digest of another log, or version, counts as none. Everything that is returned is in the arena. */
int history_fold(const struct history_source *source, const struct history_digest *digest,
                 struct arena *arena, struct history_fold *out_fold, struct fly_error *out_error);

#endif
