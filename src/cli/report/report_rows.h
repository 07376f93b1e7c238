/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_ROWS_H
#define FLYBALL_CLI_REPORT_REPORT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "job/past/usage.h"
#include "job/past/usage_balance.h"
#include "meter/tally/recorded.h"
#include "meter/tally/run_reports.h"
#include "meter/tally/used.h"
#include "shapes/table.h"

/*
 * Parses a moment in the past, as people write it:
 *
 *     30d                    so long before now; also 12h, 90m, 45s, 4w
 *     2026-11-22             the beginning of that day, local time
 *     2026-11-22T07:30       and what else carbon_options.h reads as a date
 *
 * Gives microseconds since 1970. Returns false for anything else; the out-parameter is then
 * untouched.
 */
bool report_moment_parse(const char *text, int64_t now_us, int64_t *out_us);

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

/*
 * What the meters counted within a period, from recordings, from reports of `flyball run
 * --output`, and from flyballd's record of who used the GPUs. Each GPU counts once at each moment, as
 * meter/tally/tally.h defines it.
 *
 *     report_meters_init(&meters, since_unix_s, until_unix_s);
 *     report_meters_read(&meters, "node1=/var/lib/flyball", out_error);    for each that is named
 *     report_meters_sum(&meters, usage, out_error);
 *     ... meters.gpus[i].energy_j ...
 *     report_meters_deinit(&meters);
 */
struct report_meters {
    double since_unix_s, until_unix_s;
    struct run_reports reports;
    struct recorded recorded;
    struct used used;
    size_t files;             /* recordings */
    struct usage_meter *gpus; /* owned; filled by report_meters_sum with the GPUs that have a figure */
    size_t count;
    size_t without_figure; /* GPUs */
    size_t others;         /* processors and memory, which no job's energy includes */
    double others_j;
    struct name_index places; /* UUIDs whose node is on record; */
    const char **nodes;       /* owned: that node for each */
    size_t node_capacity;
};

void report_meters_init(struct report_meters *meters, double since_unix_s, double until_unix_s);
void report_meters_deinit(struct report_meters *meters);

/*
 * Reads a file, or all *.jsonl and *.json in a directory; of flyballd's directory, its record of who used
 * the GPUs alone. `HOST=PATH` says on which host a
 * recording was made. FLY_ENOTFOUND if there is nothing.
 */
int report_meters_read(struct report_meters *meters, const char *named, struct fly_error *out_error);

/* Sums up. A GPU whose node is not on record is placed where the usage saw it. */
int report_meters_sum(struct report_meters *meters, const struct usage *usage, struct fly_error *out_error);

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
