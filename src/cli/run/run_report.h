/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_REPORT_H
#define FLYBALL_CLI_RUN_RUN_REPORT_H

#include <jansson.h>

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "cli/measure/run_result.h"

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
