/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_CALL_CHECK_H
#define FLYBALL_JOB_CORE_CALL_CHECK_H

#include "job/core/job.h"

/*
 * What every back end refuses in a call before it asks anybody, in the same words; for a definition see
 * job_definition_check. Returns FLY_EDATA for amounts and metrics, FLY_EUSAGE for other fields out of range,
 * FLY_ELIMIT for a text that is too long. Pure.
 */
int call_check_question(const struct job_question *question, struct fly_error *out_error);
int call_check_profile(const struct job_profile *profile, struct fly_error *out_error);
int call_check_beat(const struct job_beat *beat, struct fly_error *out_error);
int call_check_epoch(const struct job_epoch *epoch, struct fly_error *out_error);
int call_check_end(const struct job_end *end, struct fly_error *out_error);

#endif
