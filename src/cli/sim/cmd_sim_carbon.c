/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim carbon`: a job that follows the grid, from many starts in a recorded series. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/objective.h>

#include "base/error.h"
#include "cli/options/carbon_options.h"
#include "cli/options/small_options.h"
#include "cli/sim/carbon_report.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "grid/providers.h"
#include "sim/crew.h"

enum { DAY_S = 86400, POLICIES_MAX = CARBON_POLICY_COUNT };

static const double known_ahead_all_s = 100.0 * 366 * DAY_S;

/* Time after the record's end, for policies that know no bound. */
static const int64_t beyond_s = 366 * (int64_t)DAY_S;

static const char *const scope_names[] = {"direct", "life-cycle", NULL};
static const enum grid_scope scopes[] = {GRID_DIRECT, GRID_LIFE_CYCLE};
static const char *const constant_names[] = {"scaled", "original", NULL};

static const struct cli_option options[] = {
    CARBON_OPTION_PROFILE,
    {.name = "intensity",
     .type = CLI_TEXT,
     .placeholder = "SOURCE",
     .help = "Carbon intensity of the grid over time: a CSV file, or constant:380 in g/kWh."},
    {.name = "scope",
     .type = CLI_CHOICE,
     .placeholder = "WHICH",
     .choices = scope_names,
     .default_text = "direct",
     .help = "Which intensity of a file that has both: of burning the fuel, or of the whole life cycle."},
    {.name = "price",
     .type = CLI_TEXT,
     .placeholder = "SOURCE",
     .help = "Price of electricity over time, likewise."},
    {.name = "objective",
     .type = CLI_TEXT,
     .placeholder = "WHAT",
     .default_text = "carbon",
     .help = "What to make small: carbon, money, energy, or their weights in g, money and kWh as "
             "carbon=0.0001,money=1."},
    {.name = "work",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .default_text = "96h",
     .help = "Length of the job at the fastest limit, as 96h, 4d or 90min."},
    CARBON_OPTIONS_BOUND,
    {.name = "policy",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .choices = carbon_policy_names,
     .default_text = "max,static,mix,published,plan,foresight",
     .help = "Policies to compare."},
    {.name = "known-ahead",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help =
         "How far ahead the published forecasts of the record were known, as 24h, or 'all'. If not given, "
         "only that of the current period counts, since a record does not say when it was published; of a "
         "record without actual values all do."},
    CARBON_OPTION_PAUSE,
    {.name = "starts",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = CARBON_STARTS_MAX,
     .default_text = "40",
     .help = "Starts, evenly spaced over the record from its ninth day on."},
    {.name = "seed",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = UINT32_MAX,
     .help = "Draw the starts at random by this seed instead; the same ones for every policy."},
    CARBON_OPTIONS_SURROUNDINGS(NULL, NULL),
    {.name = "eta",
     .type = CLI_REAL,
     .placeholder = "WEIGHT",
     .minimum = 0,
     .maximum = 1,
     .default_text = "0.24",
     .help = "Weight of carbon against time in the published rule."},
    {.name = "constants",
     .type = CLI_CHOICE,
     .placeholder = "WHICH",
     .choices = constant_names,
     .default_text = "scaled",
     .help = "The published rule's constants: scaled to the series and the GPU, or the original ones."},
    {.name = "least-gain",
     .type = CLI_TEXT,
     .placeholder = "SHARE",
     .default_text = "0.2%",
     .help = "The plan changes nothing for less than this gain."},
    {.name = "jobs",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Write every job of the policies named by --policy to this CSV file."},
    {.name = "threads",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = CREW_THREADS_MAX,
     .key = "sim.threads",
     .help = "Worker threads; if not given, one for each processor."},
};

/* The command's data while it runs. */
struct sim_carbon {
    struct profile_source source;
    struct carbon_profile profile, bare;
    struct grid_answer answers[CARBON_SIGNALS];
    struct grid_truth truths[CARBON_SIGNALS];
    struct carbon_world world;
    enum carbon_policy policies[POLICIES_MAX];
    struct carbon_campaign campaign;
    struct carbon_result result;
    struct carbon_outcome *outcomes;
    struct sim_run run;
};

static int read_profile(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct carbon_surroundings none = {0.0, 1.0};
    struct carbon_surroundings surroundings;
    int code = carbon_read_profile(call, &sim->source, &sim->profile, &surroundings, out_error);

    if (code == 0)
        code = carbon_profile_init(&sim->bare, sim->source.points, sim->source.count, &none, out_error);
    sim->world.profile = &sim->profile;
    sim->world.bare = &sim->bare;
    sim->world.host_w = surroundings.host_w;
    sim->world.pue = surroundings.pue;
    return code;
}

static int read_signal(struct sim_carbon *sim, const struct cli_call *call, int signal,
                       struct fly_error *out_error)
{
    static const char *const names[CARBON_SIGNALS] = {"intensity", "price"};
    struct grid_request request = {.quantity = signal == CARBON_PRICE ? GRID_PRICE : GRID_CARBON,
                                   .scope = scopes[cli_choice(call, "scope")]};
    const char *source = cli_text(call, names[signal]);
    int code;

    if (source == NULL)
        return 0;
    code = grid_read(source, &request, &sim->answers[signal], out_error);
    if (code < 0)
        return code;
    sim->world.answers[signal] = &sim->answers[signal];
    code = grid_truth_init(&sim->truths[signal], &sim->answers[signal], beyond_s, source, out_error);
    if (code == 0)
        sim->world.truths[signal] = &sim->truths[signal];
    return code;
}

static int read_known_ahead(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct grid_answer *answer = sim->world.answers[CARBON_INTENSITY];
    bool all = !cli_set(call, "known-ahead") && answer != NULL && !grid_series_has_value(&answer->actual);

    if (all || (cli_set(call, "known-ahead") && strcmp(cli_text(call, "known-ahead"), "all") == 0))
        sim->world.known_ahead_s = known_ahead_all_s;
    else if (cli_set(call, "known-ahead"))
        return carbon_read_duration(call, "known-ahead", &sim->world.known_ahead_s, out_error);
    return 0;
}

static int read_bound(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    double factor = 1.0;
    int code = carbon_read_duration(call, "work", &sim->world.work_s, out_error);

    if (code == 0)
        code = slowdown_option_read_finite(call, &factor, out_error);
    sim->world.bound_s = sim->world.work_s * factor;
    if (code < 0 || !cli_set(call, "deadline"))
        return code;
    if (cli_given(call, "max-slowdown"))
        return cli_usage(call, out_error,
                         "both --deadline and --max-slowdown bound the time; give one of them");
    code = carbon_read_duration(call, "deadline", &sim->world.bound_s, out_error);
    if (code == 0 && sim->world.bound_s < sim->world.work_s)
        return cli_usage(call, out_error,
                         "the job of %g s cannot end within --deadline %s even at the fastest limit; give it "
                         "more time or less --work",
                         sim->world.work_s, cli_text(call, "deadline"));
    return code;
}

static int read_objective(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    struct carbon_objective *objective = &sim->world.objective;
    int code = carbon_read_objective(call, cli_text(call, "objective"), objective, out_error);

    if (code < 0)
        return code;
    if (objective->per_g > 0.0 && sim->world.answers[CARBON_INTENSITY] == NULL)
        return cli_usage(call, out_error, "the objective counts carbon, but there is no --intensity");
    if (objective->per_money > 0.0 && sim->world.answers[CARBON_PRICE] == NULL)
        return cli_usage(call, out_error, "the objective counts money, but there is no --price");
    if (sim->world.answers[CARBON_INTENSITY] == NULL && sim->world.answers[CARBON_PRICE] == NULL)
        return cli_usage(call, out_error,
                         "no series of the grid given; name one with --intensity or --price");
    return 0;
}

static int read_plan(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const char *gain = cli_text(call, "least-gain");
    bool original = cli_choice(call, "constants") == 1;
    double factor = 1.0;
    int code;

    if (fly_slowdown_parse(gain, &factor, NULL) < 0 || factor > 2.0)
        return cli_value_error(call, "least-gain", gain, "a percentage as 0.2%", out_error);
    sim->world.plan = (struct carbon_plan_settings){
        .least_gain = factor - 1.0, .dwell_s = 300.0, .doubt = CARBON_USUAL_DOUBT};
    code = carbon_read_pause(call, &sim->world.plan.pause, out_error);
    if (code < 0)
        return code;
    sim->world.rule = carbon_rule_original;
    sim->world.rule.eta = cli_real(call, "eta");
    sim->world.rule_is_scaled = !original;
    if (!original)
        sim->world.rule.max_power_w = sim->profile.points[sim->profile.count - 1].limit_w;
    sim->world.rule.max_power_w *= (double)sim->source.gpus;
    return 0;
}

static size_t find_policy(struct sim_carbon *sim, enum carbon_policy policy)
{
    size_t i = 0;

    while (i < sim->campaign.policy_count && sim->policies[i] != policy)
        i++;
    if (i == sim->campaign.policy_count)
        sim->policies[sim->campaign.policy_count++] = policy;
    return i;
}

static int read_policies(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    const struct cli_list *list = cli_list(call, "policy");

    for (size_t i = 0; i < list->count; i++) {
        if (list->choices[i] == CARBON_POLICY_PUBLISHED && sim->world.answers[CARBON_INTENSITY] == NULL)
            return cli_usage(call, out_error,
                             "the policy 'published' follows carbon, but there is no --intensity");
        sim->policies[i] = (enum carbon_policy)list->choices[i];
    }
    sim->campaign.policy_count = list->count;
    sim->result.shown = list->count;
    /* The policies that others are compared with are always computed. */
    sim->result.max_policy = find_policy(sim, CARBON_POLICY_MAX);
    sim->result.static_policy = find_policy(sim, CARBON_POLICY_STATIC);
    sim->result.mix_policy = find_policy(sim, CARBON_POLICY_MIX);
    return 0;
}

static int read_all(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int code = read_bound(sim, call, out_error);

    if (code == 0)
        code = read_profile(sim, call, out_error);
    for (int i = 0; i < CARBON_SIGNALS && code == 0; i++)
        code = read_signal(sim, call, i, out_error);
    if (code == 0)
        code = read_known_ahead(sim, call, out_error);
    if (code == 0)
        code = read_objective(sim, call, out_error);
    if (code == 0)
        code = read_plan(sim, call, out_error);
    if (code == 0)
        code = read_policies(sim, call, out_error);
    return code;
}

static int simulate(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    int64_t start_s;
    int code;

    sim->campaign.world = &sim->world;
    sim->campaign.policies = sim->policies;
    sim->campaign.starts = (size_t)cli_integer(call, "starts");
    if (cli_set(call, "seed"))
        sim->campaign.seed = (uint32_t)cli_integer(call, "seed");
    sim->campaign.threads = thread_option(call);
    code = carbon_campaign_start(&sim->campaign, 0, &start_s, out_error);
    if (code < 0)
        return code;
    sim->outcomes = calloc(sim->campaign.policy_count * sim->campaign.starts, sizeof sim->outcomes[0]);
    if (sim->outcomes == NULL)
        return error_no_memory(out_error);
    cli_progress_begin(call, &sim->run.progress, "starts", sim->campaign.starts);
    sim->campaign.progress = sim_run_progress;
    sim->campaign.progress_context = &sim->run;
    code = carbon_campaign_run(&sim->campaign, sim->outcomes, out_error);
    progress_end(&sim->run.progress);
    return code;
}

static int report(struct sim_carbon *sim, const struct cli_call *call, struct fly_error *out_error)
{
    struct carbon_result *result = &sim->result;
    int code = 0;

    result->campaign = &sim->campaign;
    result->outcomes = sim->outcomes;
    result->source = &sim->source;
    result->profile = cli_text(call, "profile");
    result->intensity = cli_text(call, "intensity");
    result->price = cli_text(call, "price");
    if (cli_set(call, "jobs"))
        code = carbon_report_write(result, cli_text(call, "jobs"), out_error);
    return code == 0 ? carbon_report_emit(call, result, out_error) : code;
}

static int sim_carbon_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct sim_carbon sim; /* large; the program runs one command */
    int code = read_all(&sim, call, out_error);

    if (code == 0)
        code = simulate(&sim, call, out_error);
    if (code == 0)
        code = report(&sim, call, out_error);
    free(sim.outcomes);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        grid_truth_deinit(&sim.truths[i]);
        grid_answer_deinit(&sim.answers[i]);
    }
    return code;
}

const struct cli_command cmd_sim_carbon = {
    .words = "sim carbon",
    .summary = "let a job follow the grid's carbon intensity",
    .paragraphs =
        {"Replays one job from many starts within a recorded series of carbon intensities, under several "
         "policies: max (the fastest limit), static (the best single limit within the bound), mix (the best "
         "constant speed within it: two "
         "limits that take turns all the time), published (the "
         "published rule, which knows no bound), plan (what Flyball does: actual values of ended "
         "periods and forecasts alone), and foresight (the exact optimum with everything known, which no "
         "policy beats; with pauses that cost something it is sought, and may miss the optimum).",
         "Savings are against max, with mean, p10 and p90 over the starts; what plan saves more than mix "
         "is what following the grid brings beyond a lower speed alone. Speed and "
         "power "
         "are those of the profile, without noise, and limits change at once.",
         "Where the series has no actual value the published forecast, else the line between the neighbours, "
         "stands in for the account; the last column says for how much of the energy there is an actual "
         "value."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples =
        {{"flyball sim carbon --profile traces:zeus_nsdi23,v100,imagenet,256 --intensity us_ciso_2022.csv",
          "compare the policies at 3 % more time"},
         {"flyball sim carbon --profile profile.json --intensity grid.csv --deadline 120h --pause "
          "idle=60,checkpoint=2min,on=1h,off=1h",
          "let a job of 96 h pause within five days"}},
    .outputs = {&carbon_report_quantities},
    .run = sim_carbon_run,
};
