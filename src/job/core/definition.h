/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_CORE_DEFINITION_H
#define FLYBALL_JOB_CORE_DEFINITION_H

#include "job/core/job.h"

/* The checks of a job's definition; the default one and job_definition_check stand in job.h. */

/* FLY_EUSAGE for an objective that counts what the job's grid does not have. */
int definition_allows(const struct job_definition *definition, const struct fly_objective *objective,
                      struct fly_error *out_error);

#endif
