/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon report`: what a run emitted and cost, from the account that it kept. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/carbon_accounts.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_view.h"
#include "cli/carbon/period_table.h"
#include "cli/views/statement_view.h"
#include "shapes/text_value.h"

enum { TEXT_MAX = 1 << 20, TITLE_MAX = 320, MEMORY_MAX = 64 << 20, RUNS_MAX = 64 };

static const struct cli_option options[] = {
    {.name = "list", .type = CLI_FLAG, .help = "List the accounts that there are, newest first."},
    {.name = "periods",
     .type = CLI_FLAG,
     .help = "Show each period of the grid too, with limit, energy and grams; JSON and CSV always do."},
    {.name = "directory",
     .type = CLI_TEXT,
     .placeholder = "DIR",
     .help = "Where accounts are; $XDG_STATE_HOME/flyball/carbon, or ~/.local/state/flyball/carbon, unless "
             "set."},
    {.name = "intensity",
     .type = CLI_TEXT,
     .placeholder = "SOURCE",
     .help = "Take carbon intensities from here, in place of the source that the account names."},
    {.name = "price", .type = CLI_TEXT, .placeholder = "SOURCE", .help = "The same of prices."},
    {.name = "cached", .type = CLI_FLAG, .help = "Ask no server: take what was fetched before."},
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw intensity, limit, energy and grams over time into this file."},
};

/* Finds the accounts of one run; several that are named count as its ranks. */
static int find_accounts(const struct cli_call *call, struct arena *arena,
                         struct carbon_accounts *out_accounts, struct fly_error *out_error)
{
    const char *directory = cli_text(call, "directory");
    size_t named = cli_operand_count(call);
    struct carbon_accounts one;
    int code;

    if (named <= 1)
        return carbon_accounts_find(directory, named == 1 ? cli_operand(call, 0) : NULL, arena, out_accounts,
                                    out_error);
    out_accounts->count = 0;
    out_accounts->paths = arena_alloc(arena, RUNS_MAX, sizeof out_accounts->paths[0]);
    if (out_accounts->paths == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < named; i++) {
        code = carbon_accounts_find(directory, cli_operand(call, i), arena, &one, out_error);
        if (code < 0)
            return code;
        if (one.count > 1)
            return cli_usage(call, out_error,
                             "'%s' has %zu accounts, one for each rank; name it alone, or its files",
                             cli_operand(call, i), one.count);
        out_accounts->paths[out_accounts->count++] = one.paths[0];
    }
    return 0;
}

static const char *name_of(const struct ledger_head *head, const char *path)
{
    return head->run[0] != '\0' ? head->run : head->job[0] != '\0' ? head->job : path;
}

static void put_head(const struct statement_view *view, const char *path, struct buffer *text)
{
    const struct ledger_head *head = &view->ledgers[0].head;
    const struct carbon_statement *statement = &view->statement;
    const struct statement_figures *run = &statement->ways[STATEMENT_AS_RUN];
    char from[ISO_TIME_TEXT_MAX], to[ISO_TIME_TEXT_MAX];

    buffer_printf(text, "Run %s", name_of(head, path));
    if (head->run[0] != '\0' && head->job[0] != '\0')
        buffer_printf(text, " of job %s", head->job);
    if (head->host[0] != '\0')
        buffer_printf(text, ", on %s", head->host);
    buffer_printf(text, ", %u GPU%s", statement->gpus, statement->gpus == 1 ? "" : "s");
    if (view->ledger_count > 1)
        buffer_printf(text, ", %zu ranks", view->ledger_count);
    buffer_printf(text, "\n%s to %s%s\n", iso_time_format((int64_t)floor(run->start_s), from),
                  iso_time_format((int64_t)ceil(run->end_s), to),
                  statement->torn ? "; its last line is not whole: it ended without warning, or goes on"
                                  : "");
}

static int emit_text(const struct cli_call *call, const struct statement_view *view,
                     const struct carbon_accounts *accounts, struct fly_error *out_error)
{
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    put_head(view, accounts->paths[0], &text);
    statement_lines(&view->statement, "  ", &text);
    for (size_t i = 0; i < accounts->count; i++)
        buffer_printf(&text, "Account: %s\n", accounts->paths[i]);
    /* Names come from a file: none of them may reach the terminal as a command. */
    for (size_t i = 0; i < text.length; i++) {
        if (((unsigned char)text.data[i] < ' ' && text.data[i] != '\n') || text.data[i] == 0x7F)
            text.data[i] = '?';
    }
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static void add_members(struct table *table, const struct statement_view *view,
                        const struct carbon_accounts *accounts)
{
    const struct ledger_head *head = &view->ledgers[0].head;
    json_t *paths = json_array();

    for (size_t i = 0; i < accounts->count; i++)
        json_array_append_new(paths, text_value(accounts->paths[i]));
    table_member(table, "accounts", paths);
    table_member(table, "run", text_or_null(head->run));
    table_member(table, "job", text_or_null(head->job));
    table_member(table, "program", text_or_null(head->program));
    table_member(table, "host", text_or_null(head->host));
    table_member(table, "gpus", json_integer(view->statement.gpus));
    table_member(table, "source", text_or_null(view->sources[CARBON_INTENSITY]));
    table_member(table, "source_remark", text_or_null(view->remarks[CARBON_INTENSITY]));
    table_member(table, "price", text_or_null(view->sources[CARBON_PRICE]));
    table_member(table, "price_remark", text_or_null(view->remarks[CARBON_PRICE]));
    table_member(table, "last_line_whole", json_boolean(!view->statement.torn));
    table_member(table, "statement", statement_json(&view->statement));
}

static int emit_periods(const struct cli_call *call, const struct statement_view *view,
                        const struct carbon_accounts *accounts, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct meaning columns[PERIOD_COLUMNS_MAX];
    struct table *table = period_table_new("flyball.carbon.report/2", &view->statement, for_people, columns);
    int code;

    if (table != NULL)
        add_members(table, view, accounts);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

static int draw(const struct cli_call *call, const struct statement_view *view, const char *path,
                struct fly_error *out_error)
{
    const struct ledger_content *ledger = &view->ledgers[0];
    char title[TITLE_MAX];

    if (!cli_set(call, "svg"))
        return 0;
    snprintf(title, sizeof title, "Run %.120s: the grid, the power limit, and what was used",
             name_of(&ledger->head, path));
    return statement_plot(&view->statement, ledger->slices, ledger->slice_count, title, cli_text(call, "svg"),
                          out_error);
}

static int show(const struct cli_call *call, const struct statement_view *view,
                const struct carbon_accounts *accounts, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    int code = 0;

    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (view->remarks[signal][0] != '\0')
            cli_warn(call, "%s", view->remarks[signal]);
    }
    if (for_people)
        code = emit_text(call, view, accounts, out_error);
    if (code == 0 && (!for_people || cli_flag(call, "periods")))
        code = emit_periods(call, view, accounts, out_error);
    return code == 0 ? draw(call, view, accounts->paths[0], out_error) : code;
}

static int carbon_report_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct statement_wish wish = {.sources = {cli_text(call, "intensity"), cli_text(call, "price")},
                                  .cached_only = cli_flag(call, "cached")};
    struct carbon_accounts accounts;
    struct statement_view view;
    struct arena arena;
    int code;

    if (cli_flag(call, "list"))
        return carbon_accounts_emit(call, cli_text(call, "directory"), out_error);
    arena_init(&arena, MEMORY_MAX);
    code = find_accounts(call, &arena, &accounts, out_error);
    if (code == 0) {
        wish.paths = (const char *const *)accounts.paths;
        wish.path_count = accounts.count;
        code = statement_view_open(&view, &wish, out_error);
        if (code == 0)
            code = show(call, &view, &accounts, out_error);
        statement_view_close(&view);
    }
    arena_deinit(&arena);
    return code;
}

const struct cli_command cmd_carbon_report = {
    .words = "carbon report",
    .summary = "show what a run emitted, and what it saved",
    .paragraphs =
        {"Reads the account of energy that a run kept ('flyball run --carbon', a tuner or a session that was "
         "told of the grid), of the newest one unless RUN is given: a file, its name, or the name of a run "
         "or of a job. Accounts of other ranks of the same run are added; several RUNs are taken for "
         "ranks of one.",
         "Grams and money are computed now, from what the grid's figures turned out to be, so they "
         "change when a provider corrects them. Figures that are missing have, in this order: the published "
         "forecast, one made from the past, the last value for two hours, the mean of the days before. What "
         "is left is 'unknown', adds nothing, and never counts as 0; the report says how much of the "
         "energy rests on which.",
         "The run is compared with the highest limit, and with the best single limit and the best mixture of "
         "two "
         "within its bound, as far as a power profile was measured. What the best mixture saves is saved by "
         "the "
         "lower limit; what the run saves more than that, by following the grid."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "[RUN...]",
    .operand_maximum = RUNS_MAX,
    .examples = {{"flyball carbon report", "show the newest run"},
                 {"flyball carbon report --list", "list all accounts"},
                 {"flyball carbon report night --svg night.svg --format csv",
                  "write each period of the run 'night', and draw it"}},
    .outputs = {&period_quantities, &carbon_accounts_quantities},
    .run = carbon_report_run,
};
