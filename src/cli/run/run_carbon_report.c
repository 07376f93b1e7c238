/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a run in its report, in both forms. */
#include <math.h>

#include "cli/run/run_carbon.h"
#include "cli/views/statement_view.h"
#include "shapes/shape_told.h"

static const char indent[] = "    ";

static void put_following(const struct run_carbon *carbon, struct buffer *out)
{
    const struct fly_carbon_report *report = &carbon->report;

    if (!carbon->followed)
        return;
    if (report->size == 0) {
        buffer_printf(out, "%sthe limit did not follow the grid: that never began\n", indent);
        return;
    }
    buffer_printf(out, "%sthe limit: ", indent);
    if (isfinite(report->limit_w))
        buffer_printf(out, "%g W at last, ", report->limit_w);
    buffer_printf(out, "%u decision%s, %u change%s", report->decisions, report->decisions == 1 ? "" : "s",
                  report->changes, report->changes == 1 ? "" : "s");
    if (report->reason[0] != '\0')
        buffer_printf(out, "; %s", report->reason);
    buffer_puts(out, "\n");
    if (report->text[0] != '\0')
        buffer_printf(out, "%s%s\n", indent, report->text);
}

void run_carbon_amounts(const struct run_carbon *carbon, struct buffer *out)
{
    const struct carbon_statement *statement = &carbon->statement->view.statement;
    const char *between = "";
    char amount[STATEMENT_AMOUNT_MAX];

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (statement->kinds[i] == NULL)
            continue;
        statement_amount(i, statement->ways[STATEMENT_AS_RUN].amount[i][STATEMENT_ALL],
                         statement->kinds[i]->currency, amount);
        buffer_printf(out, "%s %s by %s", between, amount, carbon->sources[i]);
        between = ",";
    }
}

void run_carbon_text(const struct run_carbon *carbon, struct buffer *out)
{
    const char *between = "";

    buffer_puts(out, "  grid: ");
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (carbon->sources[i][0] != '\0') {
            buffer_printf(out, "%s%s", between, carbon->sources[i]);
            between = " and ";
        }
    }
    if (carbon->off[0] != '\0') {
        buffer_printf(out, "; no account: %s\n", carbon->off);
        return;
    }
    buffer_puts(out, "\n");
    put_following(carbon, out);
    if (carbon->stated)
        statement_lines(&carbon->statement->view.statement, indent, out);
    else
        buffer_printf(out, "%sno statement: %s\n", indent, carbon->unstated);
    for (int i = 0; carbon->stated && i < CARBON_SIGNALS; i++) {
        if (carbon->statement->view.remarks[i][0] != '\0')
            buffer_printf(out, "%s%s\n", indent, carbon->statement->view.remarks[i]);
    }
    if (carbon->kept.text[0] != '\0')
        buffer_printf(out, "%s%s\n", indent, carbon->kept.text);
    buffer_printf(out, "%saccount: %s; 'flyball carbon report' reads it when more is known\n", indent,
                  carbon->kept.path);
}

static const struct shape_field following_rows[] = {
    {SHAPE_AT(fly_carbon_report, limit_w), TOLD_NUMBER},
    {SHAPE_AT(fly_carbon_report, intensity_g_per_kwh), TOLD_NUMBER},
    {SHAPE_AT(fly_carbon_report, decisions), TOLD_U32},
    {SHAPE_AT(fly_carbon_report, changes), TOLD_U32},
    {SHAPE_AT(fly_carbon_report, finish_s), TOLD_NUMBER},
    {SHAPE_AT(fly_carbon_report, reason), TOLD_CHARS(fly_carbon_report, reason)},
    {SHAPE_AT_AS("note", fly_carbon_report, text), TOLD_CHARS(fly_carbon_report, text)},
};
static const struct shape following_shape = {SHAPE_OF(fly_carbon_report, following_rows)};

struct told_account {
    const char *source, *price, *account, *no_account;
    uint64_t slices;
    double gpu_energy_j;
    const char *note;
    bool followed;
    const struct fly_carbon_report *following; /* NULL: it never began */
    const struct carbon_statement *statement;  /* NULL: there is none, */
    bool unstated;
    const char *statement_unavailable; /* for this reason */
    const char *intensity_note, *price_note;
};

static json_t *statement_of(const void *from)
{
    const struct carbon_statement *statement = ((const struct told_account *)from)->statement;

    return statement != NULL ? statement_json(statement) : NULL;
}

static const struct shape_field account_rows[] = {
    {SHAPE_AT(told_account, source), TOLD_TEXT},
    {SHAPE_AT(told_account, price), TOLD_TEXT},
    {SHAPE_AT(told_account, account), TOLD_TEXT, TOLD_ELSE_AT(told_account, no_account)},
    {SHAPE_AT(told_account, slices), TOLD_U64},
    {SHAPE_AT(told_account, gpu_energy_j), TOLD_NUMBER},
    {SHAPE_AT(told_account, note), TOLD_TEXT},
    {SHAPE_AT(told_account, followed), TOLD_BOOL},
    {SHAPE_AT(told_account, following), TOLD_POINTED(&following_shape)},
    {SHAPE_AT(told_account, statement), TOLD_MADE(statement_of)},
    {SHAPE_AT(told_account, intensity_note), TOLD_TEXT},
    {SHAPE_AT(told_account, price_note), TOLD_TEXT},
    {SHAPE_AT(told_account, statement_unavailable), TOLD_ANY_TEXT, SHAPE_IF(told_account, unstated)},
};
static const struct shape account_shape = {SHAPE_OF(told_account, account_rows)};

json_t *run_carbon_json(const struct run_carbon *carbon)
{
    bool kept = carbon->off[0] == '\0';
    const struct statement_view *view = carbon->stated ? &carbon->statement->view : NULL;
    const struct told_account told = {
        .source = carbon->sources[CARBON_INTENSITY],
        .price = carbon->sources[CARBON_PRICE],
        .account = kept ? carbon->kept.path : NULL,
        .no_account = kept ? NULL : carbon->off,
        .slices = carbon->kept.slices,
        .gpu_energy_j = kept ? carbon->kept.energy_j : NAN,
        .note = carbon->kept.text,
        .followed = carbon->followed,
        .following = carbon->followed && carbon->report.size > 0 ? &carbon->report : NULL,
        .statement = view != NULL ? &view->statement : NULL,
        .unstated = view == NULL,
        .statement_unavailable = carbon->unstated[0] != '\0' ? carbon->unstated : carbon->off,
        .intensity_note = view != NULL ? view->remarks[CARBON_INTENSITY] : NULL,
        .price_note = view != NULL ? view->remarks[CARBON_PRICE] : NULL,
    };

    return shape_tell(&account_shape, &told);
}
