/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_CARBON_PLANNING_H
#define FLYBALL_CLI_CARBON_CARBON_PLANNING_H

#include "cli/frame/call.h"
#include "sim/carbon/carbon_course.h"
#include "sim/carbon/profile_source.h"
#include "train/account/carbon_statement.h"

/*
 * A plan on paper for `flyball carbon plan`: its options, the course of the plan, and its
 * statement. Large: keep it in static storage.
 */
struct carbon_planning {
    struct profile_source source;
    struct carbon_profile profile;
    const char *sources[CARBON_SIGNALS];        /* NULL: none */
    struct grid_answer answers[CARBON_SIGNALS]; /* owned */
    bool has[CARBON_SIGNALS];
    struct grid_answer seen[CARBON_SIGNALS]; /* as the plan sees them; `published` is owned */
    bool saw[CARBON_SIGNALS];
    struct carbon_course_request request;
    struct carbon_course course; /* owned */
    struct ledger_content ledger;
    struct arena arena;
    struct carbon_statement statement;
    struct progress progress;
};

/* Reads the options' values and the grid's figures. FLY_EUSAGE, and the errors of reading them. */
int carbon_planning_read(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error);

/* Walks the plan and computes what it takes. */
int carbon_planning_walk(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error);

void carbon_planning_free(struct carbon_planning *planning);

#endif
