/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_USAGE_H
#define FLYBALL_JOB_PAST_USAGE_H

#include "base/arena.h"
#include "job/core/job_backend.h"

/*
 * Who used what: the energy and the GPU time of trials within a period, added up by user, account, job, host
 * or GPU.
 *
 *     usage_new(&(struct usage_options){.key = USAGE_HOST, .since_us = a, .until_us = b}, &usage, out_error);
 *     for each job: usage_add_job(usage, &jobs, name, out_error);
 *     usage_rows(usage, &rows, &count, out_error);
 *     usage_free(usage);
 *
 * What an attempt took belongs to its own user, account, host and GPUs. It is split evenly among the GPUs;
 * the part of GPUs whose UUIDs are not on record is in a row of their model without a UUID. The job's
 * definition is not used, so a job whose policy is not known here counts like any other.
 *
 * The log tells when it was used. A report says what an attempt has taken since its start. The part since the
 * previous report belongs to the time between the two; if a border of the period lies within that time, the
 * part is divided in proportion. A report's moment is the attempt's start plus the time that the report
 * tells, but not later than the report's arrival. So a late report still counts where it belongs, and a
 * trainer's clock does not matter. A trial that ran while the log was out of reach counts at the moment of
 * its delivery, because no earlier one is known.
 *
 * It reads a job's log once. Its memory grows with the rows and not with the log.
 */
enum usage_key { USAGE_USER, USAGE_ACCOUNT, USAGE_JOB, USAGE_HOST, USAGE_GPU, USAGE_KEYS };

enum {
    USAGE_ROWS_MAX = 65536,
    USAGE_SLOTS = 16384, /* newest trials of a job that are held; for others the log is read once more */
    USAGE_REVISITS_MAX = 1 << 20, /* trials for which it is */
    USAGE_MOMENTS = 1024,         /* parts of the period that usage_has_held tells apart */
};

struct usage_options {
    enum usage_key key;
    int64_t since_us, until_us; /* since 1970; from, and before */
    int64_t ends_us;            /* about where it ends, for usage_has_held; 0: at until_us */
    size_t slots;               /* 0: USAGE_SLOTS */
};

/* A trial counts in each row that has a part in it within the period, and once in the total. */
struct usage_sums {
    double energy_j;
    double gpu_time_s; /* sum of the times for which each of its GPUs was held */
    uint64_t trials;
    uint64_t recurrences;                   /* whose first try is among the trials */
    uint64_t outcomes[TRIAL_OUTCOME_COUNT]; /* as recorded now */
    uint64_t running;
    uint64_t without_energy; /* without any figure of energy on record */
    uint64_t cut_off; /* a part of what they took is not on record, mostly after an attempt's last report */
};

struct usage_row {
    const char *name;  /* "": unknown; the UUID when the key is the GPU */
    const char *model; /* when the key is the GPU; else "" */
    struct usage_sums sums;
};

struct usage;

/* Returns 0 or FLY_ENOMEM. */
int usage_new(const struct usage_options *options, struct usage **out_usage, struct fly_error *out_error);
void usage_free(struct usage *usage);

/*
 * Adds the log of one job. Returns FLY_EUNSUPPORTED for kinds of events that this version does not know,
 * FLY_EDATA for a body that does not fit, FLY_ELIMIT beyond the limits above. After an error nothing of that
 * job counts; the other jobs stay.
 */
int usage_add_job(struct usage *usage, const struct jobs *jobs, const char *job, struct fly_error *out_error);

/*
 * Stores the rows with at least one trial, by energy, largest first, unknown ones last. They are valid until
 * the next call.
 */
int usage_rows(struct usage *usage, const struct usage_row **out_rows, size_t *out_count,
               struct fly_error *out_error);
const struct usage_sums *usage_total(const struct usage *usage);

/* The host of the last attempts on that GPU; "": there were none. */
const char *usage_host_of(const struct usage *usage, const char *uuid);
const char *usage_model_of(const struct usage *usage, const char *uuid);

/*
 * Returns whether the logs may have told, for any moment from one to another, what that GPU took: a trial
 * held it, or held GPUs on that host whose UUIDs are not on record. `host` "" stands for any. True rather
 * than false where it is not sure: moments are told apart only by a part of the period.
 */
bool usage_has_held(const struct usage *usage, const char *uuid, const char *host, int64_t from_us,
                    int64_t to_us);

#endif
