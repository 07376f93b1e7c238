/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_VIEW_H
#define FLYBALL_CLI_REPORT_REPORT_VIEW_H

#include "cli/frame/call.h"
#include "cli/report/report_rows.h"

/* Prints the table, and for people a line below it. */
int report_emit(const struct cli_call *call, const struct report *report, struct fly_error *out_error);

/* Prints notes that readers of the figures must know. */
void report_put_notes(const struct cli_call *call, const struct report *report);

#endif
