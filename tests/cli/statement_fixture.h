/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_CLI_STATEMENT_FIXTURE_H
#define FLYBALL_TESTS_CLI_STATEMENT_FIXTURE_H

#include "test.h"

#include "train/account/carbon_statement.h"

/* A carbon statement, and the ledgers and grid values that it is made from, for two ranks at most. */

enum { STATEMENT_HOUR_S = 3600, STATEMENT_SLICES_MAX = 400, STATEMENT_PERIODS_MAX = 400 };

extern const double statement_start_s;  /* 2023-11-14T22:13:20Z, 13 min 20 s after a full hour */
extern const int64_t statement_hours_s; /* 22:00 */

/* Time and energy of a step: 300 J, 220 J, 150 J. */
extern const struct fly_power_point statement_points[3];

struct statement_fixture {
    struct arena arena;
    struct ledger_content ledgers[2];
    struct energy_slice slices[2][STATEMENT_SLICES_MAX];
    struct fly_power_point points[3];
    struct grid_answer answers[CARBON_SIGNALS];
    struct statement_request request;
    struct carbon_statement statement;
};

/* Begins with rank 0 alone, with the profile, and without any figure of the grid. */
void statement_begin(struct statement_fixture *fixture);
void statement_end(struct statement_fixture *fixture);

/* Adds a measured value of a signal. */
void statement_add_value(struct statement_fixture *fixture, int signal, int64_t from_s, int64_t to_s,
                         double value);

/* Adds what a rank's GPUs took under a limit, at that time after the start. */
void statement_add_slice(struct statement_fixture *fixture, int ledger, double from_s, double length_s,
                         double gpu_j, double limit_w);

/* Makes the statement, which must succeed. Call it again after changes. */
void statement_make(struct statement_fixture *fixture);

#endif
