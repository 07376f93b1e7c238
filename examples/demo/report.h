/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_REPORT_H
#define FLYBALL_EXAMPLES_DEMO_REPORT_H

#include <stdio.h>

#include "demo/findings.h"

/* The output of the demo: the same findings in all forms. */
struct demo_report {
    const struct demo *demo;
    struct findings findings[DEMO_JOBS];
    const char *command; /* as which `flyball` was called, for the commands that the text names */
    const char *tries_path;
    const char *picture_path;
};

/* Print the report: for people, in six lines or whole; as JSON; as CSV. */
void report_text(FILE *out, const struct demo_report *report, bool whole);
void report_json(FILE *out, const struct demo_report *report);
void report_csv(FILE *out, const struct demo_report *report);

/* Writes a header and every try of both jobs: policy, default and check. */
void report_tries(FILE *out, const struct demo_report *report);

/* Draws, as SVG, what every choice of the first job takes, the default and our choice. */
void picture_draw(FILE *out, const struct demo_report *report);

#endif
