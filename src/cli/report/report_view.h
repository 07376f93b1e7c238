/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_VIEW_H
#define FLYBALL_CLI_REPORT_REPORT_VIEW_H

#include "cli/frame/call.h"
#include "cli/report/report_meters.h"

/* A log that could not be added up, and why. */
struct report_trouble {
    const char *job, *text;
};

/* Everything that `flyball report` has to say. */
struct report {
    enum usage_key key;
    int64_t since_us, until_us; /* until: the time of the report where none was given */
    struct usage *usage;
    const struct usage_row *rows;
    size_t row_count;
    struct report_meters *meters; /* NULL: none were named */
    struct usage_balance balance; /* with meters */
    const struct report_trouble *troubles;
    size_t trouble_count;
};

/* "user", ..., ended by NULL; by enum usage_key. */
extern const char *const report_keys[USAGE_KEYS + 1];

extern const struct quantities report_name_quantities, report_amount_quantities, report_count_quantities;

/* The table, and a line below it for people. */
int report_emit(const struct cli_call *call, const struct report *report, struct fly_error *out_error);

/* What has to be known of the figures. */
void report_put_notes(const struct cli_call *call, const struct report *report);

#endif
