/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim carbon`: a job that follows the grid, from many starts in a recorded series. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/objective.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text/iso_time.h"
#include "cli/frame/call.h"
#include "cli/options/carbon_options.h"
#include "cli/options/output_path.h"
#include "cli/options/small_options.h"
#include "cli/sim/sim_commands.h"
#include "cli/sim/sim_options.h"
#include "grid/providers.h"
#include "shapes/shape_told.h"
#include "sim/carbon/carbon_job.h"
#include "sim/carbon/profile_source.h"
#include "sim/crew.h"
#include "sim/statistics.h"

/* ---- the report ---- */

/* The command's data while it runs. */
struct sim_carbon {
    struct profile_source source;
    struct carbon_profile profile, bare;
    struct grid_answer answers[CARBON_SIGNALS];
    struct grid_truth truths[CARBON_SIGNALS];
    struct carbon_world world;
    enum carbon_policy policies[CARBON_POLICY_COUNT];
    struct carbon_campaign campaign;
    size_t shown; /* how many of the policies are shown, from the first */
    size_t max_policy, static_policy, mix_policy;
    struct carbon_outcome *outcomes; /* by the campaign's policies, then by start */
    struct sim_run run;
};

static const double percent = 100.0;

#define FIGURE_COLUMNS(key, title, decimals, unit, what)                                                  \
    {key "_mean", title, MEANING_REAL, decimals, unit, MEANING_GAUGE, "Mean over the jobs of " what "."}, \
        {key "_p10", "p10", MEANING_REAL, decimals, unit, MEANING_GAUGE, "Tenth percentile of that."},    \
    {                                                                                                     \
        key "_p90", "p90", MEANING_REAL, decimals, unit, MEANING_GAUGE, "Ninetieth percentile of that."   \
    }

static const struct meaning columns[] = {
    {"policy", "policy", MEANING_TEXT, 0, NULL, MEANING_FACT, "Policy that chooses what to run."},
    {"jobs", "jobs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Simulated jobs, one for each start."},
    {"late_jobs", "late", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Jobs that took longer than they may."},
    FIGURE_COLUMNS("time_s", "time (s)", 0, "s", "its time"),
    FIGURE_COLUMNS("energy_j", "energy (J)", 0, "J", "its energy"),
    FIGURE_COLUMNS("carbon_g", "carbon (g)", 1, "g", "its carbon"),
    FIGURE_COLUMNS("money", "money", 3, "money", "its money"),
    FIGURE_COLUMNS("time_change_percent", "time %", 2, "%", "the change of its time against 'max'"),
    FIGURE_COLUMNS("energy_saving_percent", "energy saved %", 2, "%",
                   "the energy that it saves against 'max'"),
    FIGURE_COLUMNS("carbon_saving_percent", "carbon saved %", 2, "%",
                   "the carbon that it saves against 'max'"),
    {"carbon_saving_against_static_percent", "of static %", MEANING_REAL, 2, "%", MEANING_GAUGE,
     "Percentage points that it saves more carbon than 'static', on average."},
    {"carbon_saving_against_mix_percent", "of mix %", MEANING_REAL, 2, "%", MEANING_GAUGE,
     "Percentage points that it saves more carbon than 'mix', on average."},
    {"gpu_energy_j_mean", "GPUs (J)", MEANING_REAL, 0, "J", MEANING_GAUGE, "Mean energy of a job's GPUs."},
    {"paused_s_mean", "paused (s)", MEANING_REAL, 0, "s", MEANING_GAUGE,
     "Mean time for which a job was paused."},
    {"limit_changes_mean", "changes", MEANING_REAL, 1, NULL, MEANING_GAUGE,
     "Mean number of changes of a job's limit."},
    {"actual_intensity_percent", "actual %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Share of the energy whose intensity is an actual value."},
};
static const struct quantities carbon_report_quantities = {"a policy", QUANTITIES(columns)};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static const char no_price[] = "there is no --price", no_intensity[] = "there is no --intensity";

/* A figure of a job: as it is, as a share, or relative to the same job under `max`. */
static const struct figure {
    size_t at; /* a double of the outcome; changes are counted */
    enum { AS_IS, SHARE, CHANGE, SAVING } kind;
    const char *missing;
} figures[] = {
#define FIGURE(member, kind, missing)                          \
    {                                                          \
        offsetof(struct carbon_outcome, member), kind, missing \
    }
    /* Those with three columns each, in their order. */
    FIGURE(time_s, AS_IS, ""),
    FIGURE(energy_j, AS_IS, ""),
    FIGURE(grams, AS_IS, no_intensity),
    FIGURE(money, AS_IS, no_price),
    FIGURE(time_s, CHANGE, ""),
    FIGURE(energy_j, SAVING, ""),
    FIGURE(grams, SAVING, no_intensity),
    /* Those with only their mean, after those against static and mix. */
    FIGURE(gpu_energy_j, AS_IS, ""),
    FIGURE(paused_s, AS_IS, ""),
    FIGURE(changes, AS_IS, ""),
    FIGURE(known_share, SHARE, no_intensity),
};
enum { GRAMS = 2, TIME_CHANGE = 4, ENERGY_SAVING, CARBON_SAVING, SPREAD, CHANGES = 9, KNOWN, FIGURES };
_Static_assert(sizeof figures / sizeof figures[0] == FIGURES, "a number for each");

static const struct carbon_outcome *outcome_of(const struct sim_carbon *sim, size_t policy, size_t start)
{
    return &sim->outcomes[policy * sim->campaign.starts + start];
}

static double value_of(const struct figure *figure, const struct carbon_outcome *outcome)
{
    const void *value = (const char *)outcome + figure->at;

    return figure == &figures[CHANGES] ? *(const uint32_t *)value : *(const double *)value;
}

static struct statistics spread_of(const struct sim_carbon *sim, size_t policy, size_t number, double *values)
{
    const struct figure *figure = &figures[number];

    for (size_t i = 0; i < sim->campaign.starts; i++) {
        double value = value_of(figure, outcome_of(sim, policy, i));
        double max = value_of(figure, outcome_of(sim, sim->max_policy, i));

        values[i] = figure->kind == AS_IS    ? value
                    : figure->kind == SHARE  ? value * percent
                    : figure->kind == CHANGE ? (value / max - 1.0) * percent
                                             : (1.0 - value / max) * percent;
    }
    return statistics_of(values, sim->campaign.starts);
}

static void add_head(struct table *table, const struct sim_carbon *sim, size_t policy, bool people)
{
    int64_t late = 0;

    for (size_t i = 0; i < sim->campaign.starts; i++)
        late += outcome_of(sim, policy, i)->late;
    table_add_text(table, carbon_policy_names[sim->policies[policy]]);
    if (!people)
        table_add_integer(table, (int64_t)sim->campaign.starts);
    table_add_integer(table, late);
}

static void add_mean(struct table *table, const struct sim_carbon *sim, size_t policy, size_t number,
                     double *values)
{
    double mean = spread_of(sim, policy, number, values).mean;

    if (number == KNOWN && sim->world.truths[CARBON_INTENSITY] == NULL)
        mean = NAN;
    table_add_real_or(table, mean, NULL, figures[number].missing);
}

static void add_spread(struct table *table, const struct sim_carbon *sim, size_t policy, size_t number,
                       double *values)
{
    struct statistics spread = spread_of(sim, policy, number, values);

    table_add_real_or(table, spread.mean, NULL, figures[number].missing);
    table_add_real_or(table, spread.p10, NULL, figures[number].missing);
    table_add_real_or(table, spread.p90, NULL, figures[number].missing);
}

/* By how many percentage points a policy saves more than static and mix. */
static void add_more(struct table *table, const struct sim_carbon *sim, size_t policy, double *values)
{
    double saved = spread_of(sim, policy, CARBON_SAVING, values).mean;

    table_add_real_or(table, saved - spread_of(sim, sim->static_policy, CARBON_SAVING, values).mean, NULL,
                      no_intensity);
    table_add_real_or(table, saved - spread_of(sim, sim->mix_policy, CARBON_SAVING, values).mean, NULL,
                      no_intensity);
}

static void add_row(struct table *table, const struct sim_carbon *sim, size_t policy, double *values)
{
    add_head(table, sim, policy, false);
    for (size_t i = 0; i < SPREAD; i++)
        add_spread(table, sim, policy, i, values);
    add_more(table, sim, policy, values);
    for (size_t i = SPREAD; i < FIGURES; i++)
        add_mean(table, sim, policy, i, values);
}

/* ---- what stands beside the rows ---- */

static const struct shape_field remarks_rows[] = {
    {SHAPE_AT(grid_remarks, missing), TOLD_SIZE},     {SHAPE_AT(grid_remarks, zero), TOLD_SIZE},
    {SHAPE_AT(grid_remarks, absurd), TOLD_SIZE},      {SHAPE_AT(grid_remarks, duplicates), TOLD_SIZE},
    {SHAPE_AT(grid_remarks, overlapping), TOLD_SIZE}, {SHAPE_AT(grid_remarks, unordered), TOLD_SIZE},
};
static const struct shape remarks_shape = {SHAPE_OF(grid_remarks, remarks_rows)};

struct told_signal {
    bool given;
    const char *source, *provider, *signal, *scope;
    size_t periods;
    int64_t step_s;
    struct grid_remarks remarks;
};

static const struct shape_field signal_rows[] = {
    {SHAPE_AT(told_signal, source), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, provider), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, signal), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, scope), TOLD_ANY_TEXT},
    {SHAPE_AT(told_signal, periods), TOLD_SIZE},
    {SHAPE_AT(told_signal, step_s), TOLD_I64},
    {SHAPE_AT(told_signal, remarks), SHAPE_IS_STRUCT(&remarks_shape)},
};
static const struct shape signal_shape = {SHAPE_OF(told_signal, signal_rows)};

static struct told_signal told_signal(const struct grid_answer *answer, const char *source)
{
    const struct grid_series *series = answer != NULL ? &answer->actual : NULL;

    if (series == NULL)
        return (struct told_signal){.given = false};
    return (struct told_signal){
        .given = true,
        .source = source,
        .provider = series->kind.provider,
        .signal = grid_signal_name(series->kind.signal),
        .scope = grid_scope_name(series->kind.scope),
        .periods = series->count,
        .step_s = grid_series_step(series),
        .remarks = series->remarks,
    };
}

struct told_campaign {
    const char *profile;
    size_t gpus;
    double work_s, bound_s, max_limit_w, static_limit_w, host_power_w, pue;
    struct told_signal intensity, price;
    char first_start[ISO_TIME_TEXT_MAX], last_start[ISO_TIME_TEXT_MAX];
};

static const struct shape_field campaign_rows[] = {
    {SHAPE_AT(told_campaign, profile), TOLD_ANY_TEXT},
    {SHAPE_AT(told_campaign, gpus), TOLD_SIZE},
    {SHAPE_AT(told_campaign, work_s), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, bound_s), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, max_limit_w), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, static_limit_w), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, host_power_w), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, pue), TOLD_NUMBER},
    {SHAPE_AT(told_campaign, intensity), SHAPE_IS_STRUCT(&signal_shape),
     SHAPE_IF(told_campaign, intensity.given)},
    {SHAPE_AT(told_campaign, price), SHAPE_IS_STRUCT(&signal_shape), SHAPE_IF(told_campaign, price.given)},
    {SHAPE_AT(told_campaign, first_start), TOLD_ANY_CHARS(told_campaign, first_start)},
    {SHAPE_AT(told_campaign, last_start), TOLD_ANY_CHARS(told_campaign, last_start)},
};
static const struct shape campaign_shape = {SHAPE_OF(told_campaign, campaign_rows)};

static void put_start(const struct carbon_campaign *campaign, size_t start, char text[ISO_TIME_TEXT_MAX])
{
    int64_t start_s = 0;

    (void)carbon_campaign_start(campaign, start, &start_s, NULL);
    iso_time_format(start_s, text);
}

static void add_members(struct table *table, const struct cli_call *call, const struct sim_carbon *sim)
{
    const struct carbon_campaign *campaign = &sim->campaign;
    const struct carbon_world *world = &sim->world;
    const struct carbon_profile *profile = world->profile;
    size_t limit = carbon_profile_static(profile, world->work_s, world->bound_s);
    struct told_campaign told = {
        .profile = cli_text(call, "profile"),
        .gpus = sim->source.gpus,
        .work_s = world->work_s,
        .bound_s = world->bound_s,
        .max_limit_w = profile->points[profile->fastest].limit_w,
        .static_limit_w = profile->points[limit].limit_w,
        .host_power_w = world->host_w,
        .pue = world->pue,
        .intensity = told_signal(world->answers[CARBON_INTENSITY], cli_text(call, "intensity")),
        .price = told_signal(world->answers[CARBON_PRICE], cli_text(call, "price")),
    };

    put_start(campaign, 0, told.first_start);
    put_start(campaign, campaign->starts - 1, told.last_start);
    table_members(table, &campaign_shape, &told);
}

/* For people: the few columns that answer the question. */
static const struct meaning short_columns[] = {
    TABLE_SHOWN("policy", MEANING_TEXT, 0),
    TABLE_SHOWN("late", MEANING_WHOLE, 0),
    TABLE_SHOWN("time %", MEANING_REAL, 2),
    TABLE_SHOWN("energy saved %", MEANING_REAL, 2),
    TABLE_SHOWN("carbon saved %", MEANING_REAL, 2),
    TABLE_SHOWN("p10", MEANING_REAL, 2),
    TABLE_SHOWN("p90", MEANING_REAL, 2),
    TABLE_SHOWN("more than static", MEANING_REAL, 2),
    TABLE_SHOWN("than mix", MEANING_REAL, 2),
    TABLE_SHOWN("carbon (g)", MEANING_REAL, 1),
    TABLE_SHOWN("changes", MEANING_REAL, 1),
};

static void add_short_row(struct table *table, const struct sim_carbon *sim, size_t policy, double *values)
{
    add_head(table, sim, policy, true);
    add_mean(table, sim, policy, TIME_CHANGE, values);
    add_mean(table, sim, policy, ENERGY_SAVING, values);
    add_spread(table, sim, policy, CARBON_SAVING, values);
    add_more(table, sim, policy, values);
    add_mean(table, sim, policy, GRAMS, values);
    add_mean(table, sim, policy, CHANGES, values);
}

static int carbon_report_emit(const struct cli_call *call, const struct sim_carbon *sim,
                              struct fly_error *out_error)
{
    bool people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct table *table = people ? table_new("flyball.sim.carbon/2", short_columns,
                                             sizeof short_columns / sizeof short_columns[0])
                                 : table_new("flyball.sim.carbon/2", columns, COLUMN_COUNT);
    double *values = malloc(sim->campaign.starts * sizeof *values);
    int code;

    if (values == NULL) {
        table_free(table);
        return error_no_memory(out_error);
    }
    for (size_t i = 0; i < sim->shown; i++) {
        if (people)
            add_short_row(table, sim, i, values);
        else
            add_row(table, sim, i, values);
    }
    if (!people)
        add_members(table, call, sim);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    free(values);
    return code;
}

static void write_number(FILE *stream, double value)
{
    char text[NUMBER_TEXT_MAX];

    fprintf(stream, ",%s", isnan(value) ? "" : number_format(value, text));
}

/* Writes every job as a row of CSV. */
static int carbon_report_write(const struct sim_carbon *sim, const char *path, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = output_path_open(path, &file, out_error);

    if (code < 0)
        return code;
    fputs("policy,start,time_s,energy_j,gpu_energy_j,carbon_g,money,paused_s,limit_changes,pauses,late\n",
          file.stream);
    for (size_t policy = 0; policy < sim->shown; policy++) {
        for (size_t i = 0; i < sim->campaign.starts; i++) {
            const struct carbon_outcome *outcome = outcome_of(sim, policy, i);
            char start[ISO_TIME_TEXT_MAX];
            int64_t start_s = 0;

            (void)carbon_campaign_start(&sim->campaign, i, &start_s, NULL);
            fprintf(file.stream, "%s,%s", carbon_policy_names[sim->policies[policy]],
                    iso_time_format(start_s, start));
            write_number(file.stream, outcome->time_s);
            write_number(file.stream, outcome->energy_j);
            write_number(file.stream, outcome->gpu_energy_j);
            write_number(file.stream, outcome->grams);
            write_number(file.stream, outcome->money);
            write_number(file.stream, outcome->paused_s);
            fprintf(file.stream, ",%u,%u,%d\n", outcome->changes, outcome->pauses, outcome->late);
        }
    }
    return atomic_file_commit(&file, out_error);
}

enum { DAY_S = 86400 };

static const double known_ahead_all_s = 100.0 * 366 * DAY_S;

/* Time after the record's end, for policies that know no bound. */
static const int64_t beyond_s = 366 * (int64_t)DAY_S;

static const char *const scope_names[] = {"direct", "life-cycle", NULL};
static const enum grid_scope scopes[] = {GRID_DIRECT, GRID_LIFE_CYCLE};
static const char *const constant_names[] = {"scaled", "original", NULL};

static const struct cli_option options[] = {
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
    sim->shown = list->count;
    /* The policies that others are compared with are always computed. */
    sim->max_policy = find_policy(sim, CARBON_POLICY_MAX);
    sim->static_policy = find_policy(sim, CARBON_POLICY_STATIC);
    sim->mix_policy = find_policy(sim, CARBON_POLICY_MIX);
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
    int code = 0;

    if (cli_set(call, "jobs"))
        code = carbon_report_write(sim, cli_text(call, "jobs"), out_error);
    return code == 0 ? carbon_report_emit(call, sim, out_error) : code;
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
    .shared = {&carbon_profile_option, &carbon_bound_options, &carbon_pause_option},
    .examples =
        {{"flyball sim carbon --profile traces:zeus_nsdi23,v100,imagenet,256 --intensity us_ciso_2022.csv",
          "compare the policies at 3 % more time"},
         {"flyball sim carbon --profile profile.json --intensity grid.csv --deadline 120h --pause "
          "idle=60,checkpoint=2min,on=1h,off=1h",
          "let a job of 96 h pause within five days"}},
    .outputs = {&carbon_report_quantities},
    .run = sim_carbon_run,
};
