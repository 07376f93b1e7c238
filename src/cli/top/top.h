/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_TOP_TOP_H
#define FLYBALL_CLI_TOP_TOP_H

#include "cli/frame/call.h"
#include "cli/top/top_group.h"

/* What `flyball top` has read last, and its two forms of output. */
struct top {
    const struct cli_call *call;
    const char *daemon;
    double interval_s;
    struct top_wish wish;
    struct arena arena; /* of the two below */
    struct top_answer answer;
    struct top_groups groups;
    double read_unix_s;
};

enum { TOP_WHO_MAX = 160, TOP_SENTENCE_MAX = 160 };

/*
 * Asks the daemon, and groups and sorts what it says. After an error what was read before is kept. Begin
 * with a zeroed struct and the members above; end with top_end.
 */
int top_read(struct top *top, struct fly_error *out_error);
void top_end(struct top *top);

/*
 * Returns what a row is of, for people: "python3", "ada", "job 4711", "(idle)"; NULL if that is unknown, with
 * the reason.
 */
const char *top_who(const struct top_group *group, enum top_by by, char text[TOP_WHO_MAX],
                    const char **out_reason);

/* Returns why that text of a row is not known, a clause. */
const char *top_text_reason(const struct top_group *group, enum top_text text);

/* The answer in a line: "3 GPUs, 512 W now, limits or clocks of 2 held by leases". */
const char *top_sentence(const struct top *top, char text[TOP_SENTENCE_MAX]);

extern const struct quantities top_quantities;

/* Print a table or document, or lines that go on, the first with a heading. */
int top_put_table(const struct top *top, struct fly_error *out_error);
int top_put_lines(const struct top *top, bool heading, struct fly_error *out_error);

/* Shows the screen until q or a signal to end. FLY_EUNSUPPORTED for a terminal that cannot be drawn on. */
int top_screen(struct top *top, struct fly_error *out_error);

#endif
