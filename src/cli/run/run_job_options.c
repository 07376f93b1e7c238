/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/disabled.h"
#include "base/error.h"
#include "cli/options/carbon_options.h"
#include "cli/options/small_options.h"
#include "cli/program/child.h"
#include "cli/run/run_job.h"
#include "cli/run/run_tune.h"
#include "job/core/definition.h"
#include "job/core/policy_choice.h"
#include "job/jobs.h"

enum { MEMORY_MAX = 1 << 20, GROUPS_MAX = 2 };

static const char *const directions[] = {"rises", "falls", NULL};
static const char *const scalings[] = {
    [FLY_SCALE_LINEAR] = "linear", [FLY_SCALE_SQUARE_ROOT] = "square-root", NULL};

/* clang-format off */
static const struct cli_option rows[] = {
    {.name = "job", .often = true, .type = CLI_TEXT, .placeholder = "NAME",
     .help = "The recurring job that this run is a submission of: start the program with the batch size and power "
             "limit that its log proposes, and start it again after a try that failed. With --tune: name of the job "
             "in saved profiles, and no more."},
    {.name = "tries", .often = true, .type = CLI_INTEGER, .placeholder = "N", .minimum = 0, .maximum = RUN_JOB_TRIES_MAX,
     .help = "With --job: how often the program may be started; the last time with the best known choice, and so "
             "the only time. 0: once, and who started this starts it again after status 75. Default: 3 if the "
             "command uses {try_directory}, so that it is safe; else 1."},
#define OFTEN_NEEDED true
#define OFTEN_ASKED true
#define OFTEN_OPTIONAL false
#define OFTEN_SPARING false
#define FROM_NEEDED(least) (least)
#define FROM_OPTIONAL(least) (least)
#define FROM_SPARING(least) 1
#define MINIMUM_ANY -INFINITY
#define MINIMUM_ABOVE_0 0
#define ROW(word, needed, sort, value, text, ...) \
    {.name = (word), .often = OFTEN_##needed, .type = (sort), .placeholder = (value), \
     .help = "With --job: " text ".", __VA_ARGS__},
#define FLY_LIST(name, count, longest, option, text) \
    ROW(option, NEEDED, CLI_TEXT, "LIST", text ". If no option defines the job, the one on record is used")
#define FLY_TEXT(name, need, longest, option, unit, usual, text) \
    ROW(option, need, CLI_TEXT, unit, text, .default_text = (usual))
#define FLY_WHOLE(name, need, least, most, option, unit, usual, text) \
    ROW(option, need, CLI_INTEGER, unit, text, .default_text = (usual), .minimum = FROM_##need(least), .maximum = (most))
#define FLY_REAL(name, need, range, none, option, unit, usual, text) \
    ROW(option, need, CLI_REAL, unit, text, .default_text = (usual), .minimum = MINIMUM_##range, .maximum = INFINITY, \
        .above_minimum = SHAPE_##range == SHAPE_ABOVE_0, .infinite = SHAPE_##none == SHAPE_ENDLESS)
#define FLY_FLAG(name, need, option, text) ROW(option, need, CLI_FLAG, NULL, text)
#define FLY_UNASKED(...)
#include <flyball/job_definition.def>
    {.name = "metric", .type = CLI_CHOICE, .placeholder = "WAY", .choices = directions,
     .default_text = "rises", .help = "With --job: which way the metric goes as training gets on."},
    {.name = "recurrences-left", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 1000000000,
     .help = "With --job: how many submissions there will be, with this one. Only what pays within them is "
             "explored. It holds for those that come, until another number is given."},
    {.name = "finish-by", .type = CLI_TEXT, .placeholder = "TIME",
     .help = "With --job: nothing is explored that could miss this time: 07:30, or 2026-11-22T07:30. With --tune and "
             "--carbon or --price: the training ends by then, in place of --max-slowdown."},
    {.name = "learning-rate", .type = CLI_REAL, .placeholder = "RATE", .minimum = 0, .above_minimum = true,
     .maximum = INFINITY,
     .help = "With --job: the learning rate that suits the default batch size, for {learning_rate}."},
    {.name = "scaling", .type = CLI_CHOICE, .placeholder = "RULE", .choices = scalings,
     .default_text = "linear",
     .help = "With --job: how the learning rate follows the batch size: linear suits SGD, square-root adaptive "
             "optimisers."},
    {.name = "seed", .type = CLI_INTEGER, .placeholder = "N", .minimum = 0, .maximum = UINT32_MAX,
     .default_text = "1", .help = "With --job: {seed} is this plus the trial's number."},
    {.name = "metric-regex", .type = CLI_TEXT, .placeholder = "REGEX",
     .help = "With --job: lines of standard output or standard error that tell of an epoch: an extended regular "
             "expression whose group is the metric, or whose two groups are epoch and metric. Lines of the stream "
             "where it matches first count."},
    {.name = "metric-name", .often = true, .type = CLI_TEXT, .placeholder = "NAME",
     .help = "With --job: the metric that a Trainer of Hugging Face's or of Lightning's logs under this name, as in "
             "eval_accuracy or val_acc; the start-up module for Python reports it."},
    {.name = "oom-regex", .type = CLI_TEXT, .placeholder = "REGEX",
     .help = "With --job: one more line of output or errors that says that the batch size does not fit, if the "
             "program then fails. The words of PyTorch, JAX, TensorFlow, cuDNN and cuBLAS are known without."},
    {.name = "oom-status", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 255,
     .help = "With --job: the exit status that says so."},
    {.name = "grace", .type = CLI_REAL, .placeholder = "SECONDS", .minimum = 0, .maximum = 86400,
     .default_text = "30",
     .help = "With --job: a try that has to end gets SIGTERM, and so much later SIGKILL, with all it started."},
    {.name = "tries-directory", .type = CLI_TEXT, .placeholder = "PATH", .default_text = "flyball-tries",
     .help = "With --job: where each try has a directory of its own, {try_directory}, for checkpoints. It is new for "
             "each try, and the same for another attempt of a try, as after a requeue."},
    {.name = "power-limits", .type = CLI_TEXT, .placeholder = "LIST",
     .help = "With --job: power limits to try, in W, as in 400,300,200; if not given, all that the GPUs take in "
             "steps of 25."},
    {.name = "leave-limits", .type = CLI_FLAG, .help = "With --job: turn no power limit."}
};
/* clang-format on */
const struct cli_options run_job_options = CLI_OPTIONS(rows);

/* Options that define the job, but for the last two, and others that have no meaning without --job. */
static const char *const of_definition[] = {
    "metric",
#define FLY_LIST(name, count, longest, option, ...) option,
#define FLY_TEXT(name, need, longest, option, ...) option,
#define FLY_WHOLE(name, need, least, most, option, ...) option,
#define FLY_REAL(name, need, range, none, option, ...) option,
#define FLY_FLAG(name, need, option, ...) option,
#define FLY_UNASKED(...)
#include <flyball/job_definition.def>
};
enum { OF_DEFINITION = sizeof of_definition / sizeof of_definition[0], NOT_DEFINING = 2 };
static const char *const others[] = {"tries",           "learning-rate", "scaling",      "seed",
                                     "tries-directory", "metric-regex",  "metric-name",  "oom-regex",
                                     "oom-status",      "grace",         "leave-limits", "recurrences-left"};

/* The first of these options that the command line has; NULL: none. */
static const char *any_given(const struct cli_call *call, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cli_source(call, names[i]) == CLI_OPTION)
            return names[i];
    }
    return NULL;
}

static int compile(const struct cli_call *call, const char *name, regex_t *out_regex, bool *out_has,
                   struct fly_error *out_error)
{
    const char *text = cli_text(call, name);
    char expected[128];
    int code;

    if (text == NULL)
        return 0;
    code = regcomp(out_regex, text, REG_EXTENDED);
    if (code != 0) {
        char why[96];

        regerror(code, out_regex, why, sizeof why);
        snprintf(expected, sizeof expected, "an extended regular expression: %s", why);
        return cli_value_error(call, name, text, expected, out_error);
    }
    *out_has = true;
    return 0;
}

static int read_patterns(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    int code = 0;

    job->metric_name = cli_text(call, "metric-name");
    if (job->metric_name != NULL && (job->no_hook || cli_text(call, "metric-regex") != NULL))
        return cli_usage(call, out_error, "--metric-name does not go with %s",
                         job->no_hook ? "--no-hook, for the hook reports it" : "--metric-regex");
    code = compile(call, "metric-regex", &job->metric, &job->has_metric, out_error);
    if (code == 0 && job->has_metric && (job->metric.re_nsub < 1 || job->metric.re_nsub > GROUPS_MAX))
        code = cli_value_error(call, "metric-regex", cli_text(call, "metric-regex"),
                               "one group, the metric, or two, epoch and metric", out_error);
    if (code == 0)
        code = compile(call, "oom-regex", &job->oom, &job->has_oom, out_error);
    return code;
}

/* Takes the members of the definition that have an option of their own. */
static int read_members(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    struct fly_job_definition *definition = &job->options.job;
    uint32_t *sizes = NULL;
    int code = number_list_option(call, "batch-sizes", 1, JOB_BATCHES_MAX, &job->arena, &sizes,
                                  &definition->batch_count, out_error);

    if (code < 0)
        return code;
    definition->batch_sizes = sizes;
#define TAKE(member, option, get) \
    if (cli_set(call, option))    \
        definition->member = get(call, option);
#define FLY_TEXT(member, need, longest, option, ...) TAKE(member, option, cli_text)
#define FLY_WHOLE(member, need, least, most, option, ...) TAKE(member, option, (uint32_t)cli_integer)
#define FLY_REAL(member, need, range, none, option, ...) TAKE(member, option, cli_real)
#define FLY_FLAG(member, need, option, ...) TAKE(member, option, cli_flag)
#define FLY_UNASKED(...)
#include <flyball/job_definition.def>
    if (cli_set(call, "target-metric"))
        definition->target = cli_choice(call, "metric") == 0 ? FLY_TARGET_AT_LEAST : FLY_TARGET_AT_MOST;
    return 0;
}

/* Takes the rest of a definition on the command line. */
static int read_definition(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    struct fly_job_definition *definition = &job->options.job;

    if (definition->batch_count == 0 && definition->default_batch_size > 0) {
        definition->batch_sizes = &definition->default_batch_size;
        definition->batch_count = 1;
    }
    if (definition->batch_count == 0 || definition->default_batch_size == 0 || definition->max_epochs == 0)
        return cli_usage(call, out_error,
                         "a job is defined by --batch-sizes, --default-batch-size and --max-epochs");
    definition->objective =
        (struct fly_objective){.kind = run_tune_objective(call), .eta = cli_real(call, "eta")};
    if (definition->objective.kind != FLY_OBJECTIVE_COST)
        definition->objective.eta = cli_given(call, "objective") ? 0.0 : NAN; /* named, or not (job.h) */
    return slowdown_option_read(call, &definition->objective.max_slowdown, out_error);
}

/* Reads the user's own policy, from the command line or the variable. */
static int read_policy(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    struct fly_session_options *options = &job->options;
    bool remote = jobs_are_remote(options->store);

    options->policy = disabled_by_user() ? batch_policy_default.name : cli_text(call, "policy");
    if (policy_plugins_is_path(options->policy) && !remote)
        return policy_plugins_add(options->policy, &job->plugins, &options->policy, out_error);
    if (remote && !policy_plugins_is_path(options->policy))
        return 0; /* the service may have such a plug-in, and reports it if not */
    if (!remote && policy_plugins_open(&job->plugins, out_error) < 0)
        return out_error->code;
    return job_policy_check(options->job_name, options->policy, job->plugins.list, out_error);
}

/* The path of a plug-in says where its code is; it does not define the job. */
static bool defines(const struct cli_call *call)
{
    static const char *const tuning[] = {"objective", "eta", "max-slowdown"};

    for (size_t i = 0; i < OF_DEFINITION - NOT_DEFINING; i++) {
        if (cli_source(call, of_definition[i]) == CLI_OPTION &&
            !(strcmp(of_definition[i], "policy") == 0 && policy_plugins_is_path(cli_text(call, "policy"))))
            return true;
    }
    return any_given(call, tuning, sizeof tuning / sizeof tuning[0]) != NULL;
}

/* A job on record that counts grams or money names its grid. */
static void take_grid(struct run_job *job, const struct fly_job_definition *definition)
{
    bool has_grid = definition->grid != NULL && definition->grid[0] != '\0';

    if (!has_grid)
        return;
    job->grid = (struct fly_carbon_options){.size = sizeof job->grid};
    *(definition->objective.kind == FLY_OBJECTIVE_MONEY ? &job->grid.price : &job->grid.source) =
        definition->grid;
    job->options.carbon = &job->grid;
}

/* Reads the definition on record, if the command line has none. */
static int look_up(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    static const struct job_options to_read = {.existing = true};
    struct fly_session_options *options = &job->options;
    const struct fly_job_definition asked = options->job;
    struct job_shown shown = {0};
    const char *policy;
    struct jobs jobs;
    int code = jobs_open(options->store, &to_read, &jobs, out_error);

    if (code == 0) {
        code = jobs.backend->show(jobs.self, asked.name, &job->arena, &shown, out_error);
        jobs_close(&jobs);
    }
    if (code == FLY_ENOTFOUND)
        return error_set(out_error, FLY_ENOTFOUND,
                         "there is no job '%s' yet; define it with --batch-sizes, --default-batch-size and "
                         "--max-epochs",
                         asked.name);
    if (code < 0)
        return code;
    policy = job_shown_policy(&shown);
    if (cli_source(call, "policy") == CLI_OPTION && policy != NULL && strcmp(asked.policy, policy) != 0)
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s' has the policy '%s' on record, and the plug-in is '%s'", asked.name,
                         policy, asked.policy);
    options->job = shown.definition;
    options->job.name = asked.name;
    options->job.policy = policy;
    options->job.policy_sha256 = NULL;
    options->job.like = asked.like;
    options->job.revision = asked.revision;
    take_grid(job, &shown.definition);
    return 0;
}

static int read_limits(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    uint32_t *limits = NULL;
    int code = number_list_option(call, "power-limits", 1, FLY_POWER_SEARCH_LIMITS_MAX, &job->arena, &limits,
                                  &job->options.limit_count, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; limits != NULL && i < job->options.limit_count; i++)
        job->limits_w[i] = limits[i];
    job->options.limits_w = job->limits_w;
    return 0;
}

static int read_finish(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    const char *text = cli_text(call, "finish-by");

    if (text != NULL && !finish_time_parse(text, time(NULL), &job->options.finish_by_unix_s))
        return cli_value_error(call, "finish-by", text, "a time as in 07:30 or 2026-11-22T07:30", out_error);
    return 0;
}

static int refuse_alone(const struct cli_call *call, struct fly_error *out_error)
{
    const char *given = any_given(call, of_definition, OF_DEFINITION);

    if (given == NULL)
        given = any_given(call, others, sizeof others / sizeof others[0]);
    return given == NULL
               ? 0
               : cli_usage(call, out_error, "--%s is about --job without --tune, which is not given", given);
}

int run_job_read(const struct cli_call *call, struct run_job *out_job, struct fly_error *out_error)
{
    struct run_job *job = out_job;
    int code;

    arena_init(&job->arena, MEMORY_MAX);
    job->call = call;
    job->wanted = cli_text(call, "job") != NULL && !cli_flag(call, "tune");
    if (!job->wanted)
        return refuse_alone(call, out_error);
    job->options = (struct fly_session_options){
        .size = sizeof job->options,
        .job_name = cli_text(call, "job"),
        .store = cli_text(call, "store"),
        .tries_directory = cli_text(call, "tries-directory"),
        .leave_limits = cli_flag(call, "leave-limits"),
        .profile_steps = cli_set(call, "profile-steps") ? (uint32_t)cli_integer(call, "profile-steps") : 0,
        .energy_tolerance = cli_real(call, "energy-tolerance"),
        .recurrences_left =
            cli_set(call, "recurrences-left") ? (uint32_t)cli_integer(call, "recurrences-left") : 0,
    };
    if (cli_set(call, "tries"))
        job->options.tries =
            cli_integer(call, "tries") > 0 ? (uint32_t)cli_integer(call, "tries") : FLY_SESSION_ALWAYS;
    job->learning_rate = cli_set(call, "learning-rate") ? cli_real(call, "learning-rate") : NAN;
    job->scaling = (enum fly_scaling)cli_choice(call, "scaling");
    job->seed = (uint32_t)cli_integer(call, "seed");
    job->no_hook = cli_flag(call, "no-hook");
    job->grace_s = cli_real(call, "grace");
    status_line_begin(&job->line, cli_status_line_fd(call));
    job->root = cli_text(call, "sysfs-root") != NULL ? cli_text(call, "sysfs-root") : "";
    job->oom_status = cli_set(call, "oom-status") ? (int)cli_integer(call, "oom-status") : -1;
    job->parts.knobs = &job->knobs;
    job->knobs = cli_knob_options(call, "flyball run --job", job->readonly_path);
    code = read_finish(call, job, out_error);
    if (code == 0)
        code = read_limits(call, job, out_error);
    if (code == 0)
        code = read_patterns(call, job, out_error);
    if (code == 0)
        code = read_members(call, job, out_error);
    if (code == 0)
        code = read_policy(call, job, out_error);
    if (code == 0)
        code = defines(call) ? read_definition(call, job, out_error) : look_up(call, job, out_error);
    return code;
}

int run_job_plain_words(const struct cli_call *call, char *const *words, char ***out_words,
                        struct fly_error *out_error)
{
    static struct run_job job;
    int code = 0;

    if (!run_job_has_marks(words)) {
        *out_words = run_job_words(&job, words);
        return *out_words != NULL ? 0 : error_no_memory(out_error);
    }
    if (!defines(call))
        return cli_usage(
            call, out_error,
            "with FLYBALL_DISABLE=1 the log is not read, so --default-batch-size has to be given");
    code = run_job_read(call, &job, out_error);
    if (code == 0)
        code = run_job_take_words(&job, words, out_error);
    /* Nothing is asked or counted, so there is no grid either. */
    if (job.options.objective.kind == FLY_OBJECTIVE_CARBON ||
        job.options.objective.kind == FLY_OBJECTIVE_MONEY)
        job.options.objective.kind = FLY_OBJECTIVE_ENERGY;
    if (code == 0)
        code = session_new(&job.options, &job.parts, &job.session, out_error);
    if (code == 0) {
        run_job_set_variables(&job);
        run_job_make_directory(&job, words);
        *out_words = run_job_words(&job, words);
        code = *out_words != NULL ? 0 : error_no_memory(out_error);
        fly_session_close(job.session, FLY_SESSION_FINISHED);
    }
    run_job_free(&job);
    return code;
}

void run_job_free(struct run_job *job)
{
    if (job->has_metric)
        regfree(&job->metric);
    if (job->has_oom)
        regfree(&job->oom);
    free(job->tries);
    policy_plugins_close(&job->plugins);
    arena_deinit(&job->arena);
}
