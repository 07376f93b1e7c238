/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_PRIVATE_H
#define FLYBALL_JOB_PAST_USAGE_PRIVATE_H

#include "job/past/name_index.h"
#include "job/past/usage.h"
#include "job/past/usage_trial.h"

/* What adding up and reading logs share. */

/* A GPU's host and model, as the newest attempt on it says. */
struct place {
    const char *host; /* of the index of texts */
    const char *model;
};

struct usage {
    struct usage_options options;
    struct name_index names; /* of the rows */
    struct usage_sums *done; /* owned; of each row, of the jobs that were added */
    struct usage_sums *now;  /* owned; of the job under way */
    size_t capacity;
    struct usage_sums total_done, total_now;
    struct usage_row *rows; /* owned; made when they are asked for */
    size_t row_count;
    struct name_index gpus;
    struct place *places; /* owned; of each GPU */
    size_t place_capacity;
    struct name_index texts;   /* hosts and models */
    struct usage_trial *slots; /* owned; of trial modulo their number */
};

/* A text that lives as long as the usage. */
int usage_take_text(struct usage *usage, const char *text, const char **out_text,
                    struct fly_error *out_error);

/* Sets the parts of the trial's attempt. */
int usage_part_attempt(struct usage *usage, struct usage_trial *trial, const char *job, const char *model,
                       const struct attempt_record *record, struct fly_error *out_error);

/* What is within the period goes to the attempt's rows; only noted there where `added` says that it was. */
int usage_spend(struct usage *usage, struct usage_trial *trial, const struct usage_piece *piece, bool added,
                struct fly_error *out_error);

/* Counts the trial in its rows once (1), or takes that back (-1). */
void usage_count(struct usage *usage, const struct usage_trial *trial, int times);

/* Brings what the log of a job said to what is done, or drops it. */
void usage_settle(struct usage *usage, bool taken);

#endif
