/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_TRIAL_PAST_H
#define FLYBALL_JOB_CORE_TRIAL_PAST_H

#include <math.h>

#include "job/core/job_record.h"
#include "store/store.h"

/*
 * The past of one trial from its own events, whether it runs or ended long ago. Feed it the trial's events in
 * order:
 *
 *     struct trial_past past = trial_past_empty;
 *     store_read(store, job, &(struct store_query){.trial = 7}, trial_past_visit, &past, out_error);
 *     ... past.proposed == NULL: there is no such trial ...
 *     trial_past_deinit(&past);
 */
struct trial_past {
    json_t *proposed;              /* owned; has the texts of `record` */
    struct proposed_record record; /* without hardware */
    int64_t proposed_us;
    json_t *attempted; /* owned; has the texts of `origin` */
    struct attempt_record origin;
    uint32_t until_attempt; /* 0: all; else events after this attempt began are ignored */
    uint32_t attempt;       /* the newest */
    double past_energy_j;   /* of earlier attempts */
    double past_time_s;
    double energy_j; /* of the newest attempt, as far as reported */
    double time_s;
    double past_startup_energy_j; /* of earlier attempts; NAN: that of one is not known */
    double past_startup_time_s;
    double startup_energy_j; /* of the newest attempt; NAN: not known */
    double startup_time_s;
    uint32_t epochs_done;
    double metric;                        /* the newest */
    double least_metric, greatest_metric; /* of all reports; NAN: none */
    bool profiled;
    bool parted;             /* it measured some or all limits of a profile */
    double limit_w;          /* NAN: unknown */
    uint32_t epochs;         /* that it may run; 0: not known */
    bool expired;            /* at least once */
    bool silent;             /* and gave no sign of life since */
    bool ended;              /* other than by expiry */
    json_t *end;             /* owned; has the text of `how` */
    struct ended_record how; /* the newest end, also an expiry */
    int64_t ended_us;
    double reference_per_kwh; /* the newest known in its reports; NAN */
    bool closed;
    double run_energy_j; /* of the whole run, once closed */
    double run_time_s;
    double run_reference_per_kwh; /* that counts: frozen with the end, else what came after; NAN */
};

/* The energy of an attempt from what was reported so far: unknown, not zero, when nothing was. */
static inline double trial_told_j(double energy_j, double time_s)
{
    return energy_j == 0.0 && time_s == 0.0 ? NAN : energy_j;
}

extern const struct trial_past trial_past_empty;

store_visit trial_past_visit;

/* Like trial_past_visit, for an event whose body you have; borrows `body`. NULL: it is parsed. */
int trial_past_take(struct trial_past *past, const struct store_event *event, json_t *body,
                    struct fly_error *out_error);

/* The metric that counts: the newest, or the best one so far where the job says so. */
double trial_past_metric(const struct trial_past *past, const struct fly_job_definition *definition);

void trial_past_deinit(struct trial_past *past);

#endif
