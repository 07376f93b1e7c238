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

/* Appends the report for people. */
void run_report_text(const struct run_result *result, struct buffer *out);

/* Returns the document, owned by the caller; NULL without memory. */
json_t *run_report_json(const struct run_result *result);

#endif
