/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_VIEW_H
#define FLYBALL_CLI_REPORT_REPORT_VIEW_H

#include "cli/frame/call.h"
#include "cli/report/report_rows.h"

/* The table, and a line below it for people. */
int report_emit(const struct cli_call *call, const struct report *report, struct fly_error *out_error);

/* What has to be known of the figures. */
void report_put_notes(const struct cli_call *call, const struct report *report);

#endif
