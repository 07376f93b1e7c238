/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_CARBON_OPTIONS_H
#define FLYBALL_CLI_OPTIONS_CARBON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/frame/call.h"
#include "policy/carbon/carbon_pause.h"
#include "sim/carbon/carbon_job.h"
#include "sim/carbon/profile_source.h"

/*
 * Parses a time by which something must be finished, as people write it:
 *
 *     07:30                     the next time that the clock shows this
 *     2026-11-22T07:30          local time
 *     2026-11-22T07:30:00Z      universal time; also +01:00, and whatever else base/text/iso_time.h
 *                               reads as a date with a time
 *
 * Gives whole seconds since 1970. Returns false for anything else, and for days that do not
 * exist; the out-parameter is then untouched. `now_s` is the time to count from.
 */
bool finish_time_parse(const char *text, int64_t now_s, int64_t *out_s);

/*
 * Parses options about carbon. The parsers are pure, and leave their out-parameters untouched if
 * they return false.
 */

/* "96h", "1h30min", "90s", "4d", or ISO 8601: "PT96H". Above 0, at most a year, in s. */
bool carbon_parse_duration(const char *text, double *out_s);

/* "carbon", "money", "energy", or weights: "carbon=0.001,money=1,energy=0". At least one must not be 0. */
bool carbon_parse_objective(const char *text, struct carbon_objective *out_objective);

/* "idle=25,checkpoint=2min,on=1h,off=30min". `idle` is required; any other that is left out is 0. */
bool carbon_parse_pause(const char *text, struct carbon_pause *out_pause);

/* clang-format off */

extern const struct cli_options carbon_profile_option;
extern const struct cli_options carbon_bound_options;
extern const struct cli_options carbon_pause_option;
/* With their keys in configuration files, or NULL. */
#define CARBON_OPTIONS_SURROUNDINGS(host_power_key, pue_key) \
    {.name = "host-power", .type = CLI_REAL, .placeholder = "W", .minimum = 0, .maximum = 1e6, \
     .default_text = "0", .key = (host_power_key), \
     .help = "What the rest of the machine draws while it runs."}, \
    {.name = "pue", .type = CLI_REAL, .placeholder = "FACTOR", .minimum = 1, .maximum = 10, \
     .default_text = "1", .key = (pue_key), .help = "Power usage effectiveness of the site."}

/* clang-format on */

/*
 * Each reads options of a call. If an option is not set, its out-parameter stays as it is.
 * FLY_EUSAGE says what the value must be.
 */

/* "work", "deadline": a time. */
int carbon_read_duration(const struct cli_call *call, const char *option, double *out_s,
                         struct fly_error *out_error);

/* Reads `text` as the option "objective". It is not the option's own value if the command chooses for it. */
int carbon_read_objective(const struct cli_call *call, const char *text,
                          struct carbon_objective *out_objective, struct fly_error *out_error);
int carbon_read_pause(const struct cli_call *call, struct carbon_pause *out_pause,
                      struct fly_error *out_error);

/*
 * "profile", which must be set, together with "host-power" and "pue". Also returns errors of
 * reading the profile.
 */
int carbon_read_profile(const struct cli_call *call, struct profile_source *source,
                        struct carbon_profile *profile, struct carbon_surroundings *out_surroundings,
                        struct fly_error *out_error);

#endif
