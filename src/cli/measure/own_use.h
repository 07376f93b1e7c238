/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_OWN_USE_H
#define FLYBALL_CLI_MEASURE_OWN_USE_H

#include "cli/measure/run_result.h"

/* Records what this process itself has used so far: processor time, and its peak memory. */
void own_use_count(struct run_result *result);

#endif
