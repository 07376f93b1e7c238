/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_OPTIONS_H
#define FLYBALL_CLI_CARBON_OPTIONS_H

#include <stdbool.h>

#include "policy/carbon_pause.h"
#include "sim/carbon_job.h"

/*
 * What options about carbon say, as people write it. All are pure and leave their
 * out-parameters untouched when they return false.
 */

/* "96h", "1h30min", "90s", "4d", or as ISO 8601 has it: "PT96H". Above 0, at most a year, in s. */
bool carbon_parse_duration(const char *text, double *out_s);

/* "carbon", "money", "energy", or weights: "carbon=0.001,money=1,energy=0". Not all of them 0. */
bool carbon_parse_objective(const char *text, struct carbon_objective *out_objective);

/* "idle=25,checkpoint=2min,on=1h,off=30min": what is left out is 0, but `idle` has to be there. */
bool carbon_parse_pause(const char *text, struct carbon_pause *out_pause);

#endif
