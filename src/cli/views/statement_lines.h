/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_STATEMENT_LINES_H
#define FLYBALL_CLI_VIEWS_STATEMENT_LINES_H

#include <jansson.h>

#include "base/buffer.h"
#include "train/account/carbon_statement.h"

/*
 * What a run took, emitted and cost: as lines for people, each after `indent`, and as an object
 * for programs. Both say what is not known.
 */
void statement_lines(const struct carbon_statement *statement, const char *indent, struct buffer *out);

/* Owned by the caller; NULL without memory. */
json_t *statement_json(const struct carbon_statement *statement);

/*
 * Writes "312 g", "1.24 kg" or "0.213 EUR"; without a unit if the currency is "". A figure that
 * is not finite is "unknown".
 */
enum { STATEMENT_AMOUNT_MAX = 64 };
char *statement_amount(int signal, double amount, const char *currency, char text[STATEMENT_AMOUNT_MAX]);

#endif
