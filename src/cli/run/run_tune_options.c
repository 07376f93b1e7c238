/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of `flyball run --tune` and of `flyball profile`. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/options/small_options.h"
#include "cli/run/run_tune.h"

static const char *const objectives[] = {"energy", "time", "cost", "carbon", "money", NULL};
static const enum fly_objective_kind objective_kinds[] = {
    FLY_OBJECTIVE_ENERGY, FLY_OBJECTIVE_TIME, FLY_OBJECTIVE_COST, FLY_OBJECTIVE_CARBON, FLY_OBJECTIVE_MONEY};
enum { OBJECTIVES = sizeof objective_kinds / sizeof objective_kinds[0] };
_Static_assert(sizeof objectives / sizeof objectives[0] == OBJECTIVES + 1, "a kind for each");

static const char *const knobs[] = {
    [FLY_TUNER_POWER_LIMIT] = "power", [FLY_TUNER_CLOCK] = "clock",     [FLY_TUNER_BOTH] = "both",
    [FLY_TUNER_AUTO] = "auto",         [FLY_TUNER_PROFILE] = "profile", NULL};

/* Workload profiles have no order, and no picture. */
const char *const run_tune_profile_knobs[] = {[FLY_TUNER_POWER_LIMIT] = "power",
                                              [FLY_TUNER_CLOCK] = "clock",
                                              [FLY_TUNER_BOTH] = "both",
                                              [FLY_TUNER_AUTO] = "auto",
                                              NULL};

/* clang-format off */
static const struct cli_option rows[] = {
    {.name = "tune", .often = true, .type = CLI_FLAG,
     .help = "Find the best power limit while the program runs and reports its steps, keep it, and put back "
             "at the end what stood before."},
    {.name = "knob", .type = CLI_CHOICE, .placeholder = "KNOB", .choices = knobs,
     .default_text = "auto", .help = "With --tune: what is turned: the power limit, a ceiling on the GPU clock, "
             "both, the workload power profile, or the limit and the clock where the limit may not be set."},
    {.name = "objective", .often = true, .type = CLI_CHOICE, .placeholder = "WHAT", .choices = objectives,
     .default_text = "energy", .help = "With --tune or --job: what is made small; carbon and money are those of --carbon and --price."},
    {.name = "eta", .type = CLI_REAL, .placeholder = "WEIGHT", .minimum = 0, .maximum = 1, .default_text = "0.5",
     .help = "With --tune or --job: weight of energy against time in the score that --objective cost makes small, from 0 (time) to 1 (energy). It asks for that objective."},
    {.name = "max-slowdown", .often = true, .type = CLI_TEXT, .placeholder = "BOUND",
     .help = "With --tune: a step takes at most so much more time than at the highest limit: 3% or 1.03x. "
             "With --job: training does, against the default. none: no bound. Default: 5%, for time and cost none; "
             "a job keeps its own."},
    {.name = "profile-steps", .type = CLI_INTEGER, .placeholder = "N", .minimum = 2, .maximum = 100000,
     .help = "With --tune or --job: steps to measure under each limit, at least. If not given, --tune measures as "
             "many as the choice needs, and --job, --carbon and --price 40."},
    RUN_TUNE_OPTION_TOLERANCE("With --tune or --job: "),
    {.name = "profile-directory", .type = CLI_TEXT, .placeholder = "DIR",
     .help = "With --tune: reuse the profile of the same GPUs, driver, --job and --batch-size in this directory, "
             "and save it there."},
    {.name = "profile", .type = CLI_TEXT, .placeholder = "FILE",
     .help = "With --tune: reuse this profile, as 'flyball profile --output' writes it; what does not fit is "
             "measured."},
    {.name = "give-back", .type = CLI_REAL, .placeholder = "SECONDS", .minimum = 0, .maximum = 1e9,
     .help = "With --tune: put back what stood before when no step has come for so long, until the next one; 0: "
             "never. If not given, 30, or 20 steps where these take longer."},
    RUN_TUNE_OPTION_NO_HOOK("With --tune or --job: "),
    RUN_TUNE_OPTION_BATCH_SIZE("With --tune: ")
};
/* clang-format on */
const struct cli_options run_tune_options = CLI_OPTIONS(rows);

enum fly_objective_kind run_tune_objective(const struct cli_call *call)
{
    return cli_given(call, "eta") && !cli_given(call, "objective")
               ? FLY_OBJECTIVE_COST
               : objective_kinds[cli_choice(call, "objective")];
}

const char *run_tune_objective_name(enum fly_objective_kind kind)
{
    for (int i = 0; i < OBJECTIVES; i++) {
        if (objective_kinds[i] == kind)
            return objectives[i];
    }
    return "unknown";
}

static int read_bound(const struct cli_call *call, struct fly_objective *objective,
                      struct fly_error *out_error)
{
    objective->max_slowdown = fly_objective_usual_bound(objective->kind);
    return slowdown_option_read(call, &objective->max_slowdown, out_error);
}

/* Reads what both have in common. */
static int read_common(const struct cli_call *call, const char *program, struct run_tune *out_tune,
                       struct fly_error *out_error)
{
    const char *gpus = cli_text(call, "gpus");

    out_tune->lines = (struct step_lines)STEP_LINES_NONE;
    out_tune->no_hook = cli_flag(call, "no-hook");
    if (out_tune->wanted && !out_tune->every_limit && gpus != NULL && strcmp(gpus, "none") == 0)
        return cli_usage(call, out_error, "-i none leaves no GPU whose limits could be tried");
    status_line_begin(&out_tune->status, cli_status_line_fd(call));
    out_tune->wish = (enum fly_tuner_knob)cli_choice(call, "knob");
    out_tune->objective.eta = cli_real(call, "eta");
    if (cli_set(call, "profile-steps"))
        out_tune->profile_steps = (uint32_t)cli_integer(call, "profile-steps");
    out_tune->energy_tolerance = cli_real(call, "energy-tolerance");
    out_tune->profile_directory = cli_text(call, "profile-directory");
    out_tune->job_name = cli_text(call, "job");
    out_tune->batch_size = cli_set(call, "batch-size") ? (uint64_t)cli_integer(call, "batch-size") : 0;
    out_tune->knob_options = cli_knob_options(call, program, out_tune->readonly_path);
    return read_bound(call, &out_tune->objective, out_error);
}

int run_tune_read(const struct cli_call *call, struct run_tune *out_tune, struct fly_error *out_error)
{
    static const struct {
        const char *name;
        bool of_jobs; /* --job accepts it too */
    } options[] = {
        {"knob", false},        {"objective", true},     {"eta", true},
        {"max-slowdown", true}, {"profile-steps", true}, {"energy-tolerance", true},
        {"no-hook", true},      {"profile", false},      {"profile-directory", false},
        {"batch-size", false},  {"give-back", false},
    };
    bool recurs = !cli_flag(call, "tune") && cli_text(call, "job") != NULL;

    out_tune->wanted = cli_flag(call, "tune");
    for (size_t i = 0; !out_tune->wanted && i < sizeof options / sizeof options[0]; i++) {
        if (cli_source(call, options[i].name) != CLI_OPTION || (recurs && options[i].of_jobs))
            continue;
        if (strcmp(options[i].name, "no-hook") == 0 && !cli_flag(call, "no-hook"))
            return cli_usage(
                call, out_error,
                "--hook finds steps for --tune and --job, and neither is given: add --tune, which "
                "says what a step takes and chooses a power limit by it; 'flyball profile' measures "
                "a step at every limit");
        return cli_usage(call, out_error, "--%s is about --tune, which is not given", options[i].name);
    }
    out_tune->objective.kind = run_tune_objective(call);
    out_tune->profile_file = cli_text(call, "profile");
    if (cli_set(call, "give-back"))
        out_tune->give_back_s = cli_real(call, "give-back") > 0.0 ? cli_real(call, "give-back") : INFINITY;
    return read_common(call, "flyball run --tune", out_tune, out_error);
}

int run_tune_profile(const struct cli_call *call, struct run_tune *out_tune, struct fly_error *out_error)
{
    out_tune->wanted = out_tune->every_limit = true;
    out_tune->objective.kind = FLY_OBJECTIVE_ENERGY;
    return read_common(call, "flyball profile", out_tune, out_error);
}
