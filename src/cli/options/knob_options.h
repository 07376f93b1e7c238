/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_KNOB_OPTIONS_H
#define FLYBALL_CLI_OPTIONS_KNOB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/frame/call.h"
#include "device/device.h"
#include "device/recording/facts.h"
#include "knob/gpu_lock.h"
#include "knob/knob.h"

/*
 * Parses a power limit and a duration as people write them. Pure.
 *
 *     struct power_wish wish;
 *
 *     if (power_wish_parse("60%", &wish))
 *         limit_mw = power_wish_limit_mw(&wish, highest_mw);
 */

/* Exactly one of the two is above 0. */
struct power_wish {
    double power_w;
    double share; /* of a GPU's highest limit, at most 1 */
};

/* "150", "150W", "150 W", "187.5"; "60%". From 1 W to POWER_WISH_MAX_W. */
enum { POWER_WISH_MAX_W = 100000 };

bool power_wish_parse(const char *text, struct power_wish *out_wish);

/* Returns it in whole milliwatts, as drivers take it; a share is rounded to a whole watt. */
int64_t power_wish_limit_mw(const struct power_wish *wish, int64_t highest_mw);

/* "90", "90s", "15min", "2h", "1.5h", "1h30min": above 0, at most a year. */
bool span_parse(const char *text, double *out_time_s);

/*
 * Restores what sessions left on GPUs when they were killed together with their guards.
 * cli_open_devices calls this, so it runs at the start of every command that opens GPUs; `flyball
 * run` calls it again when its program has ended.
 *
 * If the journal has no entry, this looks at one directory and returns. It prints a line for each
 * setting that it restored, and one line for all that it could not. It leaves settings that are
 * meant to stay, and it leaves everything while the operator's lock is there.
 */
enum leftovers_wait {
    LEFTOVERS_AT_ONCE,    /* leaves GPUs that somebody is using */
    LEFTOVERS_AFTER_GUARD /* waits up to two seconds for guards at work, of sessions that died */
};

void leftovers_repair(const struct cli_call *call, const struct device_list *list, enum leftovers_wait wait);

/*
 * Whether this user may set a GPU's power limit here, as far as that can be known without setting
 * it:
 *
 *     struct limit_outlook outlook;
 *
 *     limit_outlook_find(&options, directory, &missing, gpu, &outlook);
 *     ... facts_may_words[outlook.may], outlook.why_not.text ...
 */
struct limit_outlook {
    enum facts_may may;
    struct fly_error why_not; /* code 0: no reason is known */
    int held;                 /* whether somebody holds its knobs: 1, 0, or the code of `lock` */
    char holder[GPU_LOCK_HOLDER_MAX];
    struct fly_error lock;
};

/* Finds it. `directory` has the locks; `missing` says why there is none, with code 0 if there is one. */
void limit_outlook_find(const struct knob_options *options, const char *directory,
                        const struct fly_error *missing, const struct device *gpu,
                        struct limit_outlook *out_outlook);

enum { CLI_READONLY_MAX = 512 };

/*
 * Returns the options of knob_open and knob_repair for any command with device_options: the
 * driver's library, and the path of the operator's lock: under --sysfs-root if it exists there,
 * else at its usual place. `program` is the name that others see for this program. Borrows it,
 * the call and `readonly_path`.
 */
struct knob_options cli_knob_options(const struct cli_call *call, const char *program,
                                     char readonly_path[CLI_READONLY_MAX]);

#endif
