/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_TRIAL_H
#define FLYBALL_JOB_PAST_USAGE_TRIAL_H

#include "job/core/job_record.h"

/*
 * One trial while the log is read, as job/past/usage.h adds it up: what it has taken, where, and up to when
 * that is known.
 */

/* A row's part in what an attempt takes. An attempt's parts add up to 1. */
struct usage_part {
    size_t row;
    double share;
};

struct usage_trial {
    uint64_t number; /* 0: none */
    bool first_try;
    size_t line; /* the kind of hardware */
    uint32_t gpu_count;

    uint32_t attempt;
    struct usage_part *parts; /* owned; of the attempt */
    size_t part_count;
    size_t *held; /* owned; of the attempt: numbers of its GPUs, as usage_hold gives them */
    size_t held_count, held_capacity;
    int64_t attempt_us;   /* when the attempt began */
    int64_t known_us;     /* up to when it is known what the trial took */
    double past_energy_j; /* of earlier attempts */
    double past_time_s;
    double energy_j; /* of this attempt */
    double time_s;
    double total_energy_j; /* as far as returned in pieces; of all attempts */
    double total_time_s;

    bool ended, silent, closed;
    bool cut_off;
    bool nothing_learnt; /* it counts for no recurrence, and for no outcome */
    bool unknown;        /* the energy is, in the newest figure */
    enum trial_outcome outcome;

    bool inside;     /* some of it lies within the period */
    size_t *touched; /* owned; the rows that have a part within the period, each once */
    size_t touched_count, touched_capacity;
};

/* What the trial took from one moment to another. Its parts tell where. */
struct usage_piece {
    int64_t from_us, to_us;
    double energy_j, time_s;
};

void usage_trial_deinit(struct usage_trial *trial);

/* Begins an attempt; the caller sets its parts. */
void usage_trial_attempt(struct usage_trial *trial, uint32_t attempt, int64_t time_us);

/* Takes an event of another kind, at `time_us`; returns whether it gives a piece. */
bool usage_trial_heartbeat(struct usage_trial *trial, const struct heartbeat_record *record, int64_t time_us,
                           struct usage_piece *out_piece);
bool usage_trial_epoch(struct usage_trial *trial, const struct epoch_record *record, int64_t time_us,
                       struct usage_piece *out_piece);
bool usage_trial_ended(struct usage_trial *trial, const struct ended_record *record, int64_t time_us,
                       struct usage_piece *out_piece);
bool usage_trial_closed(struct usage_trial *trial, const struct closed_record *record, int64_t time_us,
                        struct usage_piece *out_piece);

/* The share of the piece within the period, from 0 to 1; a moment lies within it or not. */
double usage_piece_within(const struct usage_piece *piece, int64_t since_us, int64_t until_us);

/* Notes that the row has a part in the trial within the period; false without memory. */
bool usage_trial_touch(struct usage_trial *trial, size_t row);

#endif
