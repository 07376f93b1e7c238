/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_PROVIDERS_H
#define FLYBALL_GRID_PROVIDERS_H

#include "grid/provider.h"

/*
 * All providers. A source is written PROVIDER:PLACE:
 *
 *     csv:germany.csv     a file; without "csv:" too
 *     constant:380        one figure for all time, in g/kWh
 *     gb:national         an online service: gb, electricity-maps, carbon-aware, watttime
 */

/* All of them, ended by NULL. */
extern const struct grid_provider *const grid_providers[];

/* Reads from a source in the form above; sets `request->place`. */
int grid_read(const char *source, struct grid_request *request, struct grid_answer *out_answer,
              struct fly_error *out_error);

#endif
