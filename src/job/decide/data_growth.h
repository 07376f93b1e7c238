/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_DECIDE_DATA_GROWTH_H
#define FLYBALL_JOB_DECIDE_DATA_GROWTH_H

#include "job/core/job_record.h"
#include "job/decide/state.h"

/*
 * A job whose data grow takes more energy and time from recurrence to recurrence, though nothing has changed
 * but the steps of an epoch: the cost of an epoch is that of a step times the steps. So the growth is read
 * from the steps that trainings count, and all costs and times from which is learnt are those at the size
 * that the data had first. Policies see neither a trend nor a change of level in it, and what they answer,
 * epochs, is the same at every size.
 *
 *     growth = steps of this trial's epoch / steps of an epoch at the first size
 *
 * The latter is known for each batch size from its own trials, so it does not matter how a program counts
 * samples. A batch size that runs for the first time has the growth that another one showed last. Where
 * nobody counts steps, the growth is 1. Steps that differ by one are the same: the last batch of an epoch may
 * be a smaller one, or left out.
 */

/*
 * Takes in the steps of the newest epoch of a trial. The first two epochs in a row that agree tell the
 * growth: the steps of a single one may not be all, where a program leaves some untold.
 */
void data_growth_note(struct job_line *line, struct job_trial *trial, double steps);

/* The growth of a trial whose newest report, not noted yet, tells so many steps; 0: there is none. */
double data_growth_of(const struct job_line *line, const struct job_trial *trial, double steps);

/*
 * The index of another batch size whose epochs had exactly these steps, though the trial's epochs, all of so
 * many steps, should have others; spec->batch_count for none. Few steps are equal by rounding.
 */
size_t data_growth_same_steps(const struct job_line *line, const struct job_trial *trial, uint32_t steps);

/* The steps of an epoch by a report; 0: not known. */
double data_growth_steps(const struct job_trial *trial, const struct epoch_record *record);

/* Units of work in an epoch, as they would have been at the first size; a unit may be a whole epoch, too. */
double data_growth_units(const struct job_line *line, const struct job_trial *trial, double units);

#endif
