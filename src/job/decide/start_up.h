/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_START_UP_H
#define FLYBALL_JOB_DECIDE_START_UP_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * What a trial takes for its epochs, and apart from them. Imports, data and compilation take time and energy
 * before the first step, and often more within the first epoch. They belong to the trial, and to no epoch:
 *
 *     what the trial takes = what it takes apart from its epochs + epochs * what an epoch takes
 *
 * Reports tell the time and energy before the first step, where it is known. What the first epochs of an
 * attempt took beyond the later ones is seen from the second report on. So before that, a trial does not end
 * for what its epochs take on average. In logs of older versions no report says anything of start-up; there
 * all that a trial takes counts as its epochs'.
 */
struct trial_parts {
    bool known; /* else a first report alone says what an epoch takes */
    double epoch_energy_j, epoch_time_s;
    double apart_energy_j, apart_time_s; /* 0: nothing is known to be apart */
};

/*
 * The parts of a trial that has taken so much for so many epochs, at the first size of data that have grown
 * so much. `energy_j` is known, `epochs` above 0.
 */
struct trial_parts start_up_parts(const struct job_trial *trial, double growth, double epochs,
                                  double energy_j, double time_s);

/* Takes a report that came now into the trial's sums; the trial's figures are still those before it. */
void start_up_take(struct job_trial *trial, const struct epoch_record *record, int64_t now_us);

/* Another attempt begins; call it before the trial takes its number. */
void start_up_next_attempt(struct job_trial *trial);

#endif
