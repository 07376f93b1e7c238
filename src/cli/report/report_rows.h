/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_ROWS_H
#define FLYBALL_CLI_REPORT_REPORT_ROWS_H

#include "cli/report/report_attributed.h"
#include "cli/report/report_meters.h"
#include "shapes/table.h"

/* A log that could not be summed up, and why. */
struct report_trouble {
    const char *job, *text;
};

/* All contents of `flyball report`. */
struct report {
    enum usage_key key;
    int64_t since_us, until_us; /* until: the time of the report if none was given */
    struct usage *usage;
    const struct usage_row *rows;
    size_t row_count;
    struct report_meters *meters;        /* NULL: none were named */
    struct report_attributed attributed; /* with meters: what flyballd's record adds */
    struct usage_balance balance;        /* with meters */
    const struct report_trouble *troubles;
    size_t trouble_count;
};

/* "user", ..., ended by NULL; by enum usage_key. */
extern const char *const report_keys[USAGE_KEYS + 1];

extern const struct quantities report_name_quantities, report_amount_quantities, report_count_quantities;

enum { REPORT_COLUMNS_MAX = 24 };

/*
 * Makes a table of the rows, for people or for programs. It borrows `columns`, which this fills
 * in. NULL without memory.
 */
struct table *report_rows(const struct report *report, bool for_people,
                          struct meaning columns[REPORT_COLUMNS_MAX]);

/* The text shown if there are no meters. */
extern const char report_no_meters[];

/* Returns whether unattributed use is listed by place, a host or a GPU. */
bool report_is_placed(const struct report *report);

/* Return the key of the i-th count of trials, NULL behind the last, and its number. */
const char *report_count_key(size_t i);
uint64_t report_count_in(const struct usage_sums *sums, size_t i);

#endif
