/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_HISTORY_FOLD_H
#define FLYBALL_JOB_PAST_HISTORY_FOLD_H

#include "job/past/history_digest.h"

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
