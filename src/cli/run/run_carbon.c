/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_carbon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <flyball/objective.h>
#include <flyball/tuner.h>

#include "base/error.h"
#include "base/thread/thread_group.h"
#include "cli/options/carbon_options.h"
#include "cli/run/run_tune.h"
#include "cli/views/statement_view.h"
#include "grid/providers.h"
#include "shapes/shape_told.h"
#include "train/carbon/carbon_governor.h"
#include "train/carbon/carbon_head.h"

/* clang-format off */
static const struct cli_option option_rows[] = {
    {.name = "carbon", .often = true, .type = CLI_TEXT, .placeholder = "SOURCE", .key = "carbon.source",
     .help = "Account for the grid's carbon intensity from this source, PROVIDER:PLACE or a CSV file; given here with "
             "--tune or --job, run slower in dirty hours and faster in clean ones. One that only a file or a variable names "
             "is accounted for and not followed."},
    {.name = "price", .type = CLI_TEXT, .placeholder = "SOURCE", .key = "carbon.price",
     .help = "The same of the price of electricity."},
    {.name = "carbon-objective", .type = CLI_TEXT, .placeholder = "WHAT", .key = "carbon.objective",
     .help = "With --tune or --job, and --carbon or --price: what to make small: carbon, money, energy, or their weights "
             "in g, money and kWh as carbon=0.0001,money=1. If not given, carbon where there is a source of it, else money."},
    {.name = "steps", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 9007199254740992.0,
     .help = "With --tune and --carbon or --price: steps of the whole training, from which follows what can wait for a "
             "cleaner hour."},
    {.name = "epochs", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 1000000,
     .help = "In place of --steps: its epochs, where the program reports them; known after the first."},
    {.name = "host-power", .type = CLI_REAL, .placeholder = "W", .minimum = 0, .maximum = 1e6,
     .key = "carbon.host_power",
     .help = "With --carbon or --price: what the rest of the machine draws while the program runs, in place of what was "
             "measured of it."},
    {.name = "pue", .type = CLI_REAL, .placeholder = "FACTOR", .minimum = 1, .maximum = 10, .key = "carbon.pue",
     .help = "With --carbon or --price: power usage effectiveness of the site: energy it takes for each J of the "
             "machine's."}
};
/* clang-format on */
const struct cli_options run_carbon_options = CLI_OPTIONS(option_rows);

/* ---- options ---- */

/* How long the start of a run waits for the disk with a source. */
static const double try_most_s = 2.0;

/* The option of each signal, and what its source must give. */
static const struct {
    const char *name, *what;
} signals[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = {"carbon", "carbon intensities"},
    [CARBON_PRICE] = {"price", "prices"},
};

static bool is_given(const struct cli_call *call, const char *name)
{
    return cli_source(call, name) == CLI_OPTION;
}

/* An account may be read from anywhere, so it names files by their full path. */
static void take_source(const char *source, char text[RUN_CARBON_SOURCE_MAX])
{
    const struct grid_provider *provider = grid_provider_of(source);
    const char *file = provider == NULL ? source : strchr(source, ':') + 1;
    char *path = provider == NULL || provider == &grid_provider_csv ? realpath(file, NULL) : NULL;

    if (path != NULL && strlen(path) + sizeof "csv:" <= RUN_CARBON_SOURCE_MAX)
        snprintf(text, RUN_CARBON_SOURCE_MAX, "csv:%s", path);
    else
        snprintf(text, RUN_CARBON_SOURCE_MAX, "%s", source);
    free(path);
}

/* Checks what a local source must have; a service's figures are known only when it has answered. */
static int try_source(const char *source, int signal, struct fly_error *out_error)
{
    struct grid_request request = {.cached_only = true};
    struct grid_answer answer;
    int code = grid_read_signal(source, signal, &request, &answer, "", out_error);
    bool possible = code != FLY_EUSAGE && code != FLY_EUNSUPPORTED && code != FLY_ECONFIG;

    if (code < 0)
        return possible && !grid_is_local(source) ? 0 : code;
    grid_answer_deinit(&answer);
    return 0;
}

struct trial {
    char source[RUN_CARBON_SOURCE_MAX];
    int signal, code;
    struct fly_error error;
};

static void try_now(void *of)
{
    struct trial *trial = of;

    trial->code = try_source(trial->source, trial->signal, &trial->error);
}

/* A disk that does not answer is no reason to refuse the source: the account says later what came of it. */
static int try_in_time(const char *source, int signal, struct fly_error *out_error)
{
    struct trial *trial = calloc(1, sizeof *trial);
    int code;

    if (trial == NULL)
        return error_no_memory(out_error);
    snprintf(trial->source, sizeof trial->source, "%s", source);
    trial->signal = signal;
    if (!apart_run(try_now, free, trial, try_most_s))
        return 0;
    code = trial->code;
    if (code < 0)
        error_set(out_error, code, "%s", trial->error.text);
    free(trial);
    return code;
}

static int read_source(const struct cli_call *call, int signal, struct run_carbon *carbon,
                       struct fly_error *out_error)
{
    const char *source = cli_text(call, signals[signal].name);
    struct fly_error error;
    int code;

    if (source == NULL)
        return 0;
    code = strlen(source) < RUN_CARBON_SOURCE_MAX
               ? try_in_time(source, signal, &error)
               : error_set(&error, FLY_ELIMIT, "it is longer than %d characters", RUN_CARBON_SOURCE_MAX - 1);
    if (code == 0) {
        take_source(source, carbon->sources[signal]);
        carbon->wanted = true;
        return 0;
    }
    if (is_given(call, signals[signal].name))
        return error_set(out_error, code, "option '--%s': %s", signals[signal].name, error.text);
    cli_warn(call, "%s: %s; the run has no account of %s", cli_origin(call, signals[signal].name), error.text,
             signals[signal].what);
    return 0;
}

/* Reads what to make small: as given, else by what the command line asked for. */
static int read_objective(const struct cli_call *call, struct run_carbon *carbon, struct fly_error *out_error)
{
    const char *text = cli_text(call, "carbon-objective");
    enum fly_objective_kind kind = run_tune_objective(call);
    bool money = kind == FLY_OBJECTIVE_MONEY || (kind != FLY_OBJECTIVE_CARBON && !is_given(call, "carbon"));
    struct carbon_objective objective = {.per_g = money ? 0.0 : 1.0, .per_money = money ? 1.0 : 0.0};

    if (text != NULL && !carbon_parse_objective(text, &objective))
        return cli_value_error(call, "carbon-objective", text,
                               "carbon, money, energy, or weights as in carbon=0.0001,money=1", out_error);
    /* If nothing else says it, the job's log decides by what it counts. */
    if (!carbon->followed || (text == NULL && !cli_flag(call, "tune")))
        return 0;
    if ((objective.per_g > 0.0 && carbon->sources[CARBON_INTENSITY][0] == '\0') ||
        (objective.per_money > 0.0 && carbon->sources[CARBON_PRICE][0] == '\0'))
        return cli_usage(call, out_error,
                         "carbon needs a source of intensities, --carbon, and money one of "
                         "prices, --price");
    carbon->options.per_g = objective.per_g;
    carbon->options.per_money = objective.per_money;
    carbon->options.per_kwh = objective.per_kwh;
    return 0;
}

/* Refuses options about something that is not there. */
static int refuse_alone(const struct cli_call *call, const struct run_carbon *carbon,
                        struct fly_error *out_error)
{
    static const char *const of_accounts[] = {"host-power", "pue"};
    static const char *const of_following[] = {"carbon-objective", "steps", "epochs"};
    bool recurs = !cli_flag(call, "tune") && cli_text(call, "job") != NULL;

    for (size_t i = 0; !carbon->wanted && i < sizeof of_accounts / sizeof of_accounts[0]; i++) {
        if (is_given(call, of_accounts[i]))
            return cli_usage(call, out_error, "--%s is about --carbon or --price, which are not given",
                             of_accounts[i]);
    }
    for (size_t i = 0; i < sizeof of_following / sizeof of_following[0]; i++) {
        if (is_given(call, of_following[i]) && !(carbon->followed && (i == 0 || !recurs)))
            return cli_usage(call, out_error, "--%s is about --tune together with --carbon or --price",
                             of_following[i]);
    }
    if (is_given(call, "finish-by") && !recurs && !carbon->followed)
        return cli_usage(call, out_error,
                         "--finish-by is about --job, or --tune together with --carbon or --price");
    if (carbon->followed && cli_flag(call, "tune") && run_tune_objective(call) == FLY_OBJECTIVE_TIME)
        return cli_usage(call, out_error,
                         "--objective time leaves the fastest limit alone, and none to follow the grid with");
    if (carbon->followed && cli_flag(call, "tune") && cli_choice(call, "knob") != FLY_TUNER_POWER_LIMIT &&
        cli_choice(call, "knob") != FLY_TUNER_AUTO)
        return cli_usage(call, out_error, "it is power limits that follow the grid; leave --knob power");
    if (cli_set(call, "steps") && cli_set(call, "epochs"))
        return cli_usage(call, out_error, "--steps and --epochs both say how long the training is; give one");
    return 0;
}

/* Both bounds mean the same in different words. */
static int read_bounds(const struct cli_call *call, struct run_carbon *carbon, struct fly_error *out_error)
{
    const char *finish = cli_text(call, "finish-by"), *bound = cli_text(call, "max-slowdown");

    if (carbon->followed)
        carbon->max_slowdown = fly_objective_usual_bound(run_tune_objective(call));
    if (bound != NULL && fly_slowdown_parse(bound, &carbon->max_slowdown, NULL) < 0)
        carbon->max_slowdown = INFINITY; /* whoever reads the option reports it */
    if (bound != NULL && carbon->followed && cli_flag(call, "tune") && strcmp(bound, "none") == 0 &&
        finish == NULL)
        return cli_usage(call, out_error,
                         "what follows the grid takes all the time it may: give --max-slowdown a "
                         "percentage, or --finish-by");
    if (finish == NULL || !carbon->followed)
        return 0;
    if (!finish_time_parse(finish, time(NULL), &carbon->options.finish_by_unix_s))
        return cli_value_error(call, "finish-by", finish, "a time as in 07:30 or 2026-11-22T07:30",
                               out_error);
    if (carbon->options.finish_by_unix_s <= time(NULL))
        return cli_value_error(call, "finish-by", finish, "a time to come", out_error);
    return 0;
}

int run_carbon_read(const struct cli_call *call, struct run_carbon *out_carbon, struct fly_error *out_error)
{
    struct run_carbon *carbon = out_carbon;
    int code = 0;

    *carbon = (struct run_carbon){.max_slowdown = INFINITY};
    for (int i = 0; code == 0 && i < CARBON_SIGNALS; i++)
        code = read_source(call, i, carbon, out_error);
    if (code < 0)
        return code;
    carbon->followed = (cli_flag(call, "tune") || cli_text(call, "job") != NULL) &&
                       (is_given(call, "carbon") || is_given(call, "price"));
    carbon->options = (struct fly_carbon_options){
        .size = sizeof carbon->options,
        .source = carbon->sources[CARBON_INTENSITY][0] != '\0' ? carbon->sources[CARBON_INTENSITY] : NULL,
        .price = carbon->sources[CARBON_PRICE][0] != '\0' ? carbon->sources[CARBON_PRICE] : NULL,
        .host_w = cli_set(call, "host-power") ? cli_real(call, "host-power") : 0.0,
        .pue = cli_set(call, "pue") ? cli_real(call, "pue") : 1.0,
        .steps = cli_set(call, "steps") ? (uint64_t)cli_integer(call, "steps") : 0,
    };
    carbon->epochs = cli_set(call, "epochs") ? (uint64_t)cli_integer(call, "epochs") : 0;
    code = refuse_alone(call, carbon, out_error);
    if (code == 0)
        code = read_objective(call, carbon, out_error);
    if (code == 0)
        code = read_bounds(call, carbon, out_error);
    return code;
}

/* ---- the account ---- */

/* How long the end of a run waits for the disk with the account and the grid's figures. */
static const double statement_most_s = 2.0;

static void put_off(struct run_carbon *carbon, const char *text)
{
    if (carbon->off[0] == '\0')
        snprintf(carbon->off, sizeof carbon->off, "%s", text);
}

/* Counts the GPUs that are counted here. If others count all of them, `out_by` says who. */
static uint32_t count_gpus(const struct run_carbon_place *place, const char **out_by)
{
    uint32_t counted = 0;

    *out_by = NULL;
    for (size_t i = 0; i < place->list->count; i++) {
        const struct claim *claim = &place->claims->devices[i];

        if (place->list->devices[i].info.kind != DEVICE_GPU)
            continue;
        if (i >= place->claims->count || claim->counted)
            counted++;
        else
            *out_by = claim->by;
    }
    return counted;
}

/* Fills in the account's heading. */
static int fill_head(const struct run_carbon *carbon, const struct run_carbon_place *place, uint32_t gpus,
                     struct ledger_head *out_head, struct fly_error *out_error)
{
    const char *run = getenv("FLYBALL_RUN_ID");
    const struct carbon_governor_options options = {
        .carbon = carbon->options,
        .max_slowdown = carbon->max_slowdown,
        .job = place->job,
        .run = run != NULL && run[0] != '\0' ? run : place->claims->job,
        .program = "flyball run",
        .gpus = gpus,
        .rank = place->identity->rank > 0 ? (uint32_t)place->identity->rank : 0,
    };

    return carbon_governor_head(&options, out_head, out_error);
}

void run_carbon_begin(struct run_carbon *carbon, const struct run_carbon_place *place)
{
    struct carbon_keeper_options options = {.meter = place->meter, .rests = place->rests};
    struct fly_error error;
    const char *by;
    uint32_t gpus;

    if (!carbon->wanted)
        return;
    gpus = count_gpus(place, &by);
    if (place->meter == NULL)
        put_off(carbon, "nothing is measured");
    else if (gpus == 0 && by != NULL)
        snprintf(carbon->off, sizeof carbon->off, "these GPUs are counted by %s", by);
    else if (fill_head(carbon, place, gpus, &options.head, &error) < 0 ||
             carbon_keeper_open(&options, &carbon->keeper, &error) < 0)
        put_off(carbon, error.text);
}

void run_carbon_start(struct run_carbon *carbon)
{
    if (carbon->keeper != NULL)
        carbon_keeper_go(carbon->keeper);
}

void run_carbon_note(struct run_carbon *carbon)
{
    if (carbon->keeper != NULL)
        carbon_keeper_rest(carbon->keeper);
}

static void read_statement(void *of)
{
    struct run_statement *statement = of;
    const char *const path = statement->path;
    const struct statement_wish wish = {.paths = &path, .path_count = 1, .cached_only = true};

    statement->code = statement_view_open(&statement->view, &wish, &statement->error);
}

static void free_statement(void *of)
{
    struct run_statement *statement = of;

    statement_view_close(&statement->view);
    free(statement);
}

/* Computes the statement from what the cache has for that time; does not wait for the network. */
static void state(struct run_carbon *carbon)
{
    struct run_statement *statement = calloc(1, sizeof *statement);
    const char *why = "there is no memory for the statement";

    if (statement != NULL)
        memcpy(statement->path, carbon->kept.path, sizeof statement->path);
    if (statement != NULL && !apart_run(read_statement, free_statement, statement, statement_most_s)) {
        statement = NULL;
        why = "the disk does not answer; 'flyball carbon report' reads it later";
    }
    carbon->statement = statement;
    carbon->stated = statement != NULL && statement->code == 0;
    if (!carbon->stated)
        snprintf(carbon->unstated, sizeof carbon->unstated, "%s",
                 statement != NULL ? statement->error.text : why);
}

void run_carbon_end(struct run_carbon *carbon)
{
    if (carbon->keeper == NULL)
        return;
    carbon_keeper_close(carbon->keeper, &carbon->kept);
    carbon->keeper = NULL;
    if (carbon->kept.path[0] == '\0')
        put_off(carbon, carbon->kept.text);
    else
        state(carbon);
}

void run_carbon_free(struct run_carbon *carbon)
{
    if (carbon->statement != NULL)
        free_statement(carbon->statement);
    carbon->statement = NULL;
    carbon->stated = false;
}

/* ---- the report ---- */

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
