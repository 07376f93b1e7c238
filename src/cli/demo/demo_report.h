/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_DEMO_DEMO_REPORT_H
#define FLYBALL_CLI_DEMO_DEMO_REPORT_H

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "demo/findings.h"

/* The output of `flyball demo`: the same findings in all forms. */
struct demo_report {
    const struct demo *demo;
    const struct findings *findings; /* one for every job */
    const char *policy;
    const char *store;
    const char *tries_path;
    const char *picture_path;
};

extern const struct quantities demo_quantities;

/* Prints the report in the format of the call. */
int demo_report_emit(const struct cli_call *call, const struct demo_report *report,
                     struct fly_error *out_error);

/* Appends the header and every try of both jobs: policy, default and check. */
void demo_tries_write(struct buffer *out, const struct demo_report *report);

/* Appends an SVG picture: all measured choices of the first job, the default and our choice. */
int demo_picture_draw(struct buffer *out, const struct demo_report *report, struct fly_error *out_error);

#endif
