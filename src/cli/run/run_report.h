/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_REPORT_H
#define FLYBALL_CLI_RUN_RUN_REPORT_H

#include <jansson.h>

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "cli/measure/run_result.h"
#include "cli/options/output_path.h"

/*
 * The files of `flyball run`. Errors name the file: FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND,
 * FLY_EDATA, FLY_ENOMEM.
 */

struct run_paths {
    struct output_path output;
    char csv[OUTPUT_PATH_MAX];
};

/* Fills in the paths, and those of the result, by --output and --csv. */
int run_paths_name(const struct cli_call *call, struct run_paths *out_paths, struct run_result *result,
                   struct fly_error *out_error);

/* Keeps other runs from the report's path, and warns if it cannot be written. */
void run_output_hold(const struct cli_call *call, struct run_paths *paths, const struct run_result *result);

/*
 * Checks whether a report could be written there now, so that the user learns of a problem before
 * a long run.
 */
int run_output_check(const char *path, struct fly_error *out_error);

/* Writes the document. The file appears as a whole or not at all. */
int run_output_write(const struct run_result *result, const char *path, struct fly_error *out_error);

/*
 * Checks whether lines of this meter's GPUs could be added there now; without a meter, any lines.
 * Creates no file. Errors as below.
 */
int run_csv_check(const struct fly_meter *meter, const char *path, struct fly_error *out_error);

/*
 * Appends the measurement to a file of lines in the layout FLY_RECORD_CSV_GPUS. A file that does
 * not exist is created with a heading. FLY_EDATA if its heading differs: other GPUs, or another
 * layout. Several runs may append to one file at the same time.
 */
int run_csv_append(const struct fly_meter *meter, const struct fly_measurement *measured, const char *path,
                   struct fly_error *out_error);

/*
 * Counts this program's own use into the result, writes the files that the options ask for, and shows the
 * report in the form of --format. `meter` measured the result. A file that cannot be written is a warning.
 */
void run_report_emit(const struct cli_call *call, struct run_result *result, const struct fly_meter *meter);

/*
 * Appends the report for people: first what a person wants to know, in a sentence and at most a few lines;
 * `verbose`: and all the rest.
 */
void run_report_text(const struct run_result *result, bool verbose, struct buffer *out);

/* The first lines of it; `brief`: there is no rest. */
void run_answer_text(const struct run_result *result, const struct run_totals *totals, bool brief,
                     struct buffer *out);

/* Returns the document, owned by the caller; NULL without memory. */
json_t *run_report_json(const struct run_result *result);

#endif
