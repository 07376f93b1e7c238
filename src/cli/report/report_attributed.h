/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_ATTRIBUTED_H
#define FLYBALL_CLI_REPORT_REPORT_ATTRIBUTED_H

#include "job/past/usage.h"
#include "meter/tally/used.h"

/*
 * What flyballd attributed to processes that no job's log tells of, as rows by the report's key.
 *
 *     code = report_attributed_make(USAGE_USER, usage, &used, &attributed, out_error);
 *     ... attributed.rows[i].name, .sums.energy_j ...
 *     report_attributed_deinit(&attributed);
 *
 * A process counts only if no trial held its GPU while it was there (usage_has_held), so nothing counts
 * twice. By job its name is what the process said in FLYBALL_JOB_NAME. A process without the key's name,
 * and by account each, stays in what is unattributed.
 */
struct report_attributed {
    struct usage_row *rows; /* owned; the largest first. Their names are those of `used` */
    size_t count;
    size_t told;                   /* processes left out, since logs may have told what they took */
    size_t unknown;                /* processes whose energy is not known apart from others' */
    double energy_j, half_width_j; /* of all rows, and the bound of its error */
};

/* `used` is after used_end. FLY_ENOMEM, FLY_ELIMIT. */
int report_attributed_make(enum usage_key key, const struct usage *usage, const struct used *used,
                           struct report_attributed *out_attributed, struct fly_error *out_error);
void report_attributed_deinit(struct report_attributed *attributed);

#endif
