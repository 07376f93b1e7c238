/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_RUN_REPORTS_H
#define FLYBALL_METER_TALLY_RUN_REPORTS_H

#include <jansson.h>
#include <stddef.h>

#include <flyball/error.h>

#include "meter/tally/ranks.h"
#include "meter/tally/tally.h"

/*
 * Reads reports that `flyball run --output` wrote, "flyball.run/2", as the windows of meter/tally/tally.h.
 *
 *     struct run_reports reports;
 *
 *     run_reports_init(&reports);
 *     run_reports_read(&reports, "rank0.json", NULL, out_error);
 *     tally_make(reports.windows, reports.window_count, ...);
 *     run_reports_deinit(&reports);
 */
enum { RUN_REPORT_BYTES_MAX = 16 << 20, RUN_JOBS_MAX = 8 };

struct run_reports {
    struct tally_window *windows; /* owned; their texts are in the documents */
    size_t window_count;
    json_t **documents; /* owned; the reports that were accepted */
    size_t count;
    const char *jobs[RUN_JOBS_MAX]; /* the first jobs found, each once */
    size_t job_count;               /* number of `jobs`; RUN_JOBS_MAX: there may be more */
    struct run_rank *ranks;         /* owned; of those reports that know theirs; texts in the documents */
    size_t rank_count;
    size_t emulated;    /* windows on emulated devices */
    size_t passed_over; /* reports of other jobs, left out */
};

void run_reports_init(struct run_reports *reports);
void run_reports_deinit(struct run_reports *reports);

/*
 * Adds the report in a file, or those in all *.json of a directory in the order of their names;
 * with `job` only those of that job. Messages name file, line and field: FLY_EDATA, FLY_ELIMIT (a
 * file beyond RUN_REPORT_BYTES_MAX), FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD, FLY_ENOMEM.
 */
int run_reports_read(struct run_reports *reports, const char *path, const char *job,
                     struct fly_error *out_error);

/* Does the same for a report in memory; `text` ends with a NUL. */
int run_reports_read_text(struct run_reports *reports, const char *name, const char *text, size_t length,
                          const char *job, struct fly_error *out_error);

#endif
