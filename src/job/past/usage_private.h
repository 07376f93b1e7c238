/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_PRIVATE_H
#define FLYBALL_JOB_PAST_USAGE_PRIVATE_H

#include "job/past/name_index.h"
#include "job/past/usage.h"
#include "job/past/usage_trial.h"

/* What the summing and the reading of logs share. */

/* A GPU's host and model, by the newest attempt on it. */
struct place {
    const char *host; /* in the index of texts */
    const char *model;
};

enum { USAGE_MOMENT_WORDS = USAGE_MOMENTS / 64 };

/* In which parts of the period trials held a GPU: a bit for each. */
struct held {
    uint64_t moments[USAGE_MOMENT_WORDS];
};

struct usage {
    struct usage_options options;
    struct name_index names; /* of the rows */
    struct usage_sums *done; /* owned; per row, over the jobs that were added */
    struct usage_sums *now;  /* owned; per row, over the current job */
    size_t capacity;
    struct usage_sums total_done, total_now;
    struct usage_row *rows; /* owned; made on demand */
    size_t row_count;
    struct name_index gpus;
    struct place *places; /* owned; per GPU */
    size_t place_capacity;
    struct name_index texts;      /* hosts and models */
    struct usage_trial *slots;    /* owned; trials by their number modulo the count */
    struct name_index held_names; /* UUIDs, and "" with hosts */
    struct held *held;            /* owned; by their numbers */
    size_t held_capacity;
};

/* Stores a text that lives as long as the usage. */
int usage_take_text(struct usage *usage, const char *text, const char **out_text,
                    struct fly_error *out_error);

/* Sets the parts of the trial's attempt. */
int usage_part_attempt(struct usage *usage, struct usage_trial *trial, const char *job, const char *model,
                       const struct attempt_record *record, struct fly_error *out_error);

/*
 * Adds the part of the piece within the period to the attempt's rows; only notes it when `added`, as an
 * earlier pass has added it.
 */
int usage_spend(struct usage *usage, struct usage_trial *trial, const struct usage_piece *piece, bool added,
                struct fly_error *out_error);

/* Adds a GPU to those that the attempt holds; "": GPUs whose UUIDs are not on record. */
int usage_hold(struct usage *usage, struct usage_trial *trial, const char *uuid, const char *host,
               struct fly_error *out_error);

/* Notes that the attempt held its GPUs during the piece. */
void usage_note_held(struct usage *usage, const struct usage_trial *trial, const struct usage_piece *piece);

/* Counts the trial once in its rows (1), or takes that back (-1). */
void usage_count(struct usage *usage, const struct usage_trial *trial, int times);

/* Adds what the log of the current job said to what is done, or drops it. */
void usage_settle(struct usage *usage, bool taken);

#endif
