/* SPDX-License-Identifier: Apache-2.0 */
/* Reads --carbon and related options, and checks whether the sources can be read. */
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
#include "cli/run/run_carbon.h"
#include "cli/run/run_tune.h"
#include "grid/providers.h"

/* How long the start of a run waits for the disk with a source. */
static const double try_most_s = 2.0;

/* The option of each signal, and what its source must give. */
static const struct {
    const char *name, *what;
    enum grid_quantity quantity;
} signals[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = {"carbon", "carbon intensities", GRID_CARBON},
    [CARBON_PRICE] = {"price", "prices", GRID_PRICE},
};

static bool is_given(const struct cli_call *call, const char *name)
{
    return cli_source(call, name) == CLI_OPTION;
}

/* Returns the provider named before the colon; NULL: a file without a provider. */
static const struct grid_provider *provider_of(const char *source)
{
    const char *colon = strchr(source, ':');

    for (size_t i = 0; colon != NULL && grid_providers[i] != NULL; i++) {
        const char *name = grid_providers[i]->name;

        if (strlen(name) == (size_t)(colon - source) && strncmp(source, name, strlen(name)) == 0)
            return grid_providers[i];
    }
    return NULL;
}

static bool is_online(const struct grid_provider *provider)
{
    return provider != NULL && provider != &grid_provider_csv && provider != &grid_provider_constant;
}

/* An account may be read from anywhere, so it names files by their full path. */
static void take_source(const char *source, const struct grid_provider *provider,
                        char text[RUN_CARBON_SOURCE_MAX])
{
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
    struct grid_request request = {.quantity = signals[signal].quantity, .cached_only = true};
    struct grid_answer answer;
    enum grid_quantity quantity;
    int code = grid_read(source, &request, &answer, out_error);

    if (code < 0)
        return is_online(provider_of(source)) && code != FLY_EUSAGE && code != FLY_EUNSUPPORTED &&
                       code != FLY_ECONFIG
                   ? 0
                   : code;
    quantity = answer.actual.kind.quantity;
    grid_answer_deinit(&answer);
    if (quantity != signals[signal].quantity)
        return error_set(out_error, FLY_EUSAGE, "'%.200s' has no %s", source, signals[signal].what);
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
        take_source(source, provider_of(source), carbon->sources[signal]);
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
