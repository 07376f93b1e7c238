/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_SAVING_BALANCE_H
#define FLYBALL_JOB_PAST_SAVING_BALANCE_H

#include "job/past/saving_run.h"
#include "job/past/savings.h"

/*
 * Computes the balance of the savings, whose groups and energies are already known, from the runs in order.
 */
void saving_balance_of(const struct saving_run *runs, size_t count, struct job_savings *savings);

#endif
