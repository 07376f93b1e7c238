/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon report`: what a run emitted and cost, from the account that it kept. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_view.h"
#include "cli/carbon/period_table.h"
#include "cli/frame/call.h"
#include "cli/views/statement_view.h"
#include "shapes/table.h"
#include "shapes/text_value.h"
#include "train/account/carbon_ledger.h"

/* ---- accounts ---- */

/*
 * The accounts of energy that runs have left, and those that belong to one run: a file for each
 * rank. A run is named by a path, by a file's name with or without its ending, or by the name of
 * the run or of the job; of several, the newest is taken.
 */
enum { ACCOUNT_RANKS_MAX = 4096 };

struct carbon_accounts {
    char **paths; /* in the arena, rank 0 first */
    size_t count;
};

enum { MEMORY_MAX = 1 << 30, NEAR_S = 3600 };

static const char suffix[] = ".jsonl";

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Reads only the first line. Returns false if it cannot be read. */
static bool read_head(const char *path, struct ledger_head *out_head)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct ledger_content content = {.slice_count = 0};
    struct arena arena;
    char line[LEDGER_LINE_MAX];
    const char *end = NULL;
    ssize_t length;
    bool known = false;

    if (file < 0)
        return false;
    length = read(file, line, sizeof line);
    if (length > 0)
        end = memchr(line, '\n', (size_t)length);
    close(file);
    if (end != NULL) {
        arena_init(&arena, MEMORY_MAX);
        known = carbon_ledger_parse(path, line, (size_t)(end - line) + 1, &arena, &content, NULL) == 0;
        arena_deinit(&arena);
    }
    if (known)
        *out_head = content.head;
    return known;
}

static bool is_file_named(const char *path, const char *name)
{
    const char *file = file_name(path);
    size_t length = strlen(name);

    return strcmp(file, name) == 0 ||
           (strncmp(file, name, length) == 0 && strcmp(file + length, suffix) == 0);
}

/* Finds a path; if the name is no file's, that of the newest run or job of that name. */
static const char *find_path(char **paths, size_t count, const char *name)
{
    struct ledger_head head;

    for (size_t i = 0; i < count; i++) {
        if (name == NULL || is_file_named(paths[i], name))
            return paths[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (read_head(paths[i], &head) && (strcmp(head.run, name) == 0 || strcmp(head.job, name) == 0))
            return paths[i];
    }
    return NULL;
}

struct rank {
    uint32_t rank;
    char *path;
};

static int compare_ranks(const void *left, const void *right)
{
    const struct rank *a = left, *b = right;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Returns whether it is another rank of the same run, which began at about the same time. */
static bool belongs(const struct ledger_head *head, const struct ledger_head *other, const struct rank *ranks,
                    size_t count)
{
    if (head->run[0] == '\0' || strcmp(head->run, other->run) != 0 || strcmp(head->job, other->job) != 0 ||
        strcmp(head->program, other->program) != 0 || llabs(head->start_s - other->start_s) > NEAR_S)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (ranks[i].rank == other->rank)
            return false;
    }
    return true;
}

static int join_ranks(char **paths, size_t count, const char *path, struct arena *arena,
                      struct carbon_accounts *out_accounts, struct fly_error *out_error)
{
    struct rank *ranks = arena_alloc(arena, ACCOUNT_RANKS_MAX, sizeof ranks[0]);
    struct ledger_head head, other;
    size_t found = 1;

    out_accounts->paths = arena_alloc(arena, ACCOUNT_RANKS_MAX, sizeof out_accounts->paths[0]);
    if (ranks == NULL || out_accounts->paths == NULL)
        return error_no_memory(out_error);
    ranks[0].path = arena_strdup(arena, path);
    if (ranks[0].path == NULL)
        return error_no_memory(out_error);
    if (read_head(path, &head)) {
        ranks[0].rank = head.rank;
        for (size_t i = 0; i < count && found < ACCOUNT_RANKS_MAX; i++) {
            if (strcmp(paths[i], path) == 0 || !read_head(paths[i], &other) ||
                !belongs(&head, &other, ranks, found))
                continue;
            ranks[found++] = (struct rank){other.rank, paths[i]};
        }
    }
    qsort(ranks, found, sizeof ranks[0], compare_ranks);
    for (size_t i = 0; i < found; i++)
        out_accounts->paths[i] = ranks[i].path;
    out_accounts->count = found;
    return 0;
}

/* Finds the files of a run; `name` NULL: the newest one. FLY_ENOTFOUND, FLY_EREAD, FLY_ENOMEM. */
static int carbon_accounts_find(const char *directory, const char *name, struct arena *arena,
                                struct carbon_accounts *out_accounts, struct fly_error *out_error)
{
    char **paths = NULL;
    const char *path;
    size_t count = 0;
    int code;

    if (name != NULL && (strchr(name, '/') != NULL || access(name, F_OK) == 0))
        return join_ranks(NULL, 0, name, arena, out_accounts, out_error);
    code = carbon_ledger_list(directory, arena, &paths, &count, out_error);
    if (code < 0)
        return code;
    path = find_path(paths, count, name);
    if (path == NULL && name == NULL)
        return error_set(out_error, FLY_ENOTFOUND,
                         "there is no account of energy yet; 'flyball run --carbon SOURCE' keeps one");
    if (path == NULL)
        return error_set(out_error, FLY_ENOTFOUND,
                         "no account of energy is called '%.200s', and no run or job of one is; see 'flyball "
                         "carbon report --list'",
                         name);
    return join_ranks(paths, count, path, arena, out_accounts, out_error);
}

static const struct meaning account_columns[] = {
    {"account", "account", MEANING_TEXT, 0, NULL, MEANING_FACT, "File of the account."},
    {"start", "start", MEANING_DATE, 0, NULL, MEANING_FACT, "When it begins."},
    {"time_s", "time (s)", MEANING_REAL, 0, "s", MEANING_COUNTER, "Time that its slices cover."},
    {"gpu_energy_j", "GPUs (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy of the GPUs in them."},
    {"program", "program", MEANING_TEXT, 0, NULL, MEANING_FACT, "Program that ran."},
    {"run", "run", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the run."},
    {"job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the job."},
    {"rank", "rank", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Rank of the process in the run."},
    {"source", "source", MEANING_TEXT, 0, NULL, MEANING_FACT, "Source of the grid's carbon intensities."},
    {"price", "price", MEANING_TEXT, 0, NULL, MEANING_FACT, "Source of its prices."},
    {"host", "host", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine that it ran on."},
    {"gpus", "GPUs", MEANING_WHOLE, 0, NULL, MEANING_FACT, "GPUs whose energy is in it."},
    {"slices", "slices", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Slices of the account."},
};
static const struct quantities carbon_accounts_quantities = {"an account of energy",
                                                             QUANTITIES(account_columns)};
enum { COLUMN_COUNT = sizeof account_columns / sizeof account_columns[0], PEOPLE_COUNT = 10 };

static void add_text(struct table *table, const char *text, const char *missing)
{
    if (text[0] != '\0')
        table_add_text(table, text);
    else
        table_add_unavailable(table, "-", missing);
}

static void add_content(struct table *table, const struct ledger_content *content, size_t shown)
{
    const struct ledger_head *head = &content->head;
    double time_s = 0.0, energy_j = 0.0;
    char time[ISO_TIME_TEXT_MAX];

    for (size_t i = 0; i < content->slice_count; i++) {
        time_s += content->slices[i].end_s - content->slices[i].start_s;
        energy_j += content->slices[i].gpu_j;
    }
    table_add_text(table, iso_time_format(head->start_s, time));
    table_add_real(table, time_s);
    table_add_known(table, energy_j, "the energy of a part of it is not known");
    add_text(table, head->program, "nobody said");
    add_text(table, head->run, "nobody said");
    add_text(table, head->job, "nobody said");
    table_add_integer(table, head->rank);
    add_text(table, head->sources[CARBON_INTENSITY], "there is none");
    add_text(table, head->sources[CARBON_PRICE], "there is none");
    if (shown <= PEOPLE_COUNT)
        return;
    add_text(table, head->host, "nobody said");
    table_add_integer(table, head->gpus);
    table_add_integer(table, (int64_t)content->slice_count);
}

/* Prints a table of all accounts; one that cannot be read says why. */
static int carbon_accounts_emit(const struct cli_call *call, const char *directory,
                                struct fly_error *out_error)
{
    size_t shown = cli_format(call) == TABLE_FORMAT_TABLE ? (size_t)PEOPLE_COUNT : (size_t)COLUMN_COUNT;
    struct table *table;
    struct arena arena;
    char **paths = NULL;
    size_t count = 0;
    int code;

    arena_init(&arena, MEMORY_MAX);
    code = carbon_ledger_list(directory, &arena, &paths, &count, out_error);
    table = table_new("flyball.carbon.accounts/1", account_columns, shown);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct fly_error error = {.text = ""};
        struct ledger_content content;
        struct arena one;

        arena_init(&one, MEMORY_MAX);
        table_add_text(table, file_name(paths[i]));
        if (carbon_ledger_read(paths[i], &one, &content, &error) == 0) {
            add_content(table, &content, shown);
        } else {
            for (size_t column = 1; column < shown; column++)
                table_add_unavailable(table, "?", error.text);
        }
        arena_deinit(&one);
    }
    if (code == 0 && count == 0 && cli_format(call) == TABLE_FORMAT_TABLE)
        cli_note(call, "there is no account of energy yet; 'flyball run --carbon SOURCE' keeps one");
    else if (code == 0)
        code = cli_emit_table(call, table, out_error);
    table_free(table);
    arena_deinit(&arena);
    return code;
}

enum { TEXT_MAX = 1 << 20, TITLE_MAX = 320, RUNS_MAX = 64 };

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
