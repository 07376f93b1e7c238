/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_H
#define FLYBALL_JOB_PAST_USAGE_H

#include "base/arena.h"
#include "job/core/job_backend.h"

/*
 * Who used what: the energy and the GPU time of trials within a period, added up by
 * user, account, job, host or GPU.
 *
 *     usage_new(&(struct usage_options){.key = USAGE_HOST, .since_us = a, .until_us = b}, &usage, out_error);
 *     for each job: usage_add_job(usage, &jobs, name, out_error);
 *     usage_rows(usage, &rows, &count, out_error);
 *     usage_free(usage);
 *
 * What an attempt took belongs to its own user, account, host and GPUs; among GPUs it
 * is split evenly, and the part of those whose UUIDs are not on record stands in a row
 * of their model without a UUID. The job's definition plays no part in it, so a job of
 * a policy that is not known here counts like any other.
 *
 * When it was used follows from the log. A report says what an attempt has taken since
 * its start: the part since the report before belongs to the time between the two, and
 * a border of the period within that time cuts it in proportion. A report's own moment
 * is the attempt's start and the time that the report tells, and not later than the
 * report's arrival: so one that arrives late still counts where it belongs, and a
 * trainer's clock has no part in it. A trial that was run while the log was out of
 * reach counts at the moment of its delivery, for nothing is known of an earlier one.
 *
 * One pass over a job's log, in memory that grows with the rows and not with the log.
 */
enum usage_key { USAGE_USER, USAGE_ACCOUNT, USAGE_JOB, USAGE_HOST, USAGE_GPU, USAGE_KEYS };

enum {
    USAGE_ROWS_MAX = 65536,
    USAGE_SLOTS = 16384,          /* newest trials of a job that are held; others are read once more */
    USAGE_REVISITS_MAX = 1 << 20, /* of these */
};

struct usage_options {
    enum usage_key key;
    int64_t since_us, until_us; /* since 1970; from, and before */
    size_t slots;               /* 0: USAGE_SLOTS */
};

/* A trial counts in each row that has a part in it within the period, and once in the total. */
struct usage_sums {
    double energy_j;
    double gpu_time_s; /* time that each of its GPUs was held, added up */
    uint64_t trials;
    uint64_t recurrences;                   /* of which the first try is among the trials */
    uint64_t outcomes[TRIAL_OUTCOME_COUNT]; /* as they are on record now */
    uint64_t running;
    uint64_t without_energy; /* no figure of theirs is on record */
    uint64_t cut_off; /* a part of what they took is not on record: after an attempt's last report, mostly */
};

struct usage_row {
    const char *name;  /* "": unknown. By GPU the UUID */
    const char *model; /* by GPU; else "" */
    struct usage_sums sums;
};

struct usage;

/* FLY_ENOMEM. */
int usage_new(const struct usage_options *options, struct usage **out_usage, struct fly_error *out_error);
void usage_free(struct usage *usage);

/*
 * Adds what the log of one job says. FLY_EUNSUPPORTED for events of a kind that this
 * version does not know, FLY_EDATA for what does not fit: nothing of that job is
 * counted then, and the others stand. FLY_ELIMIT beyond the limits above.
 */
int usage_add_job(struct usage *usage, const struct jobs *jobs, const char *job, struct fly_error *out_error);

/* Those with a trial: by energy, the largest first; the unknown last. They live until the next call. */
int usage_rows(struct usage *usage, const struct usage_row **out_rows, size_t *out_count,
               struct fly_error *out_error);
const struct usage_sums *usage_total(const struct usage *usage);

/* The host whose attempts ran on that GPU last; "": none did. */
const char *usage_host_of(const struct usage *usage, const char *uuid);
const char *usage_model_of(const struct usage *usage, const char *uuid);

#endif
