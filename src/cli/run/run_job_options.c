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

const char *const run_job_directions[] = {"rises", "falls", NULL};
const char *const run_job_scalings[] = {
    [FLY_SCALE_LINEAR] = "linear", [FLY_SCALE_SQUARE_ROOT] = "square-root", NULL};

/* Options that have no meaning without --job. */
static const char *const own[] = {"tries",
                                  "batch-sizes",
                                  "default-batch-size",
                                  "target-metric",
                                  "metric",
                                  "max-epochs",
                                  "train-on",
                                  "beta",
                                  "policy",
                                  "control-every",
                                  "learning-rate",
                                  "scaling",
                                  "seed",
                                  "tries-directory",
                                  "metric-regex",
                                  "metric-name",
                                  "oom-regex",
                                  "oom-status",
                                  "grace",
                                  "leave-limits",
                                  "target-hold",
                                  "best-so-far",
                                  "max-metric-loss",
                                  "report-every-samples",
                                  "report-every-steps",
                                  "window",
                                  "no-default",
                                  "recurrences-left",
                                  "like",
                                  "revision"};

/* Those of them and of the tuning's options that define the job. */
static const char *const defining[] = {"batch-sizes",
                                       "default-batch-size",
                                       "target-metric",
                                       "metric",
                                       "max-epochs",
                                       "train-on",
                                       "beta",
                                       "policy",
                                       "control-every",
                                       "objective",
                                       "eta",
                                       "max-slowdown",
                                       "target-hold",
                                       "best-so-far",
                                       "max-metric-loss",
                                       "report-every-samples",
                                       "report-every-steps",
                                       "window",
                                       "no-default"};

static bool any_given(const struct cli_call *call, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cli_source(call, names[i]) == CLI_OPTION)
            return true;
    }
    return false;
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

static int read_batch_sizes(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    struct fly_session_options *options = &job->options;
    uint32_t *sizes = NULL;
    int code = number_list_option(call, "batch-sizes", 1, JOB_BATCHES_MAX, &job->arena, &sizes,
                                  &options->batch_count, out_error);

    if (code < 0)
        return code;
    if (sizes != NULL)
        options->batch_sizes = sizes;
    if (cli_set(call, "default-batch-size"))
        options->default_batch_size = (uint32_t)cli_integer(call, "default-batch-size");
    if (sizes == NULL && cli_set(call, "default-batch-size")) {
        options->batch_sizes = &options->default_batch_size;
        options->batch_count = 1;
    }
    if (options->batch_count == 0 || !cli_set(call, "default-batch-size") || !cli_set(call, "max-epochs"))
        return cli_usage(call, out_error,
                         "a job is defined by --batch-sizes, --default-batch-size and --max-epochs");
    return 0;
}

static int read_definition(const struct cli_call *call, struct run_job *job, struct fly_error *out_error)
{
    struct fly_session_options *options = &job->options;
    int code = read_batch_sizes(call, job, out_error);

    if (code < 0)
        return code;
    options->objective =
        (struct fly_objective){.kind = run_tune_objective(call), .eta = cli_real(call, "eta")};
    if (options->objective.kind != FLY_OBJECTIVE_COST)
        options->objective.eta = cli_given(call, "objective") ? 0.0 : NAN; /* named, or not (job.h) */
    code = slowdown_option_read(call, &options->objective.max_slowdown, out_error);
    if (code < 0)
        return code;
    if (cli_set(call, "target-metric")) {
        options->target = cli_choice(call, "metric") == 0 ? FLY_TARGET_AT_LEAST : FLY_TARGET_AT_MOST;
        options->target_metric = cli_real(call, "target-metric");
    }
    if (cli_set(call, "target-hold"))
        options->target_hold = (uint32_t)cli_integer(call, "target-hold");
    if (cli_set(call, "report-every-samples"))
        options->report_every_samples = (uint32_t)cli_integer(call, "report-every-samples");
    if (cli_set(call, "report-every-steps"))
        options->report_every_steps = (uint32_t)cli_integer(call, "report-every-steps");
    options->best_so_far = cli_flag(call, "best-so-far");
    if (cli_set(call, "max-metric-loss"))
        options->max_metric_loss = cli_real(call, "max-metric-loss");
    options->window = (uint32_t)cli_integer(call, "window");
    options->no_default = cli_flag(call, "no-default");
    options->max_epochs = (uint32_t)cli_integer(call, "max-epochs");
    options->trains_on = cli_flag(call, "train-on");
    options->beta = cli_real(call, "beta");
    options->control_every = (uint32_t)cli_integer(call, "control-every");
    return 0;
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
    for (size_t i = 0; i < sizeof defining / sizeof defining[0]; i++) {
        if (cli_source(call, defining[i]) == CLI_OPTION &&
            !(strcmp(defining[i], "policy") == 0 && policy_plugins_is_path(cli_text(call, "policy"))))
            return true;
    }
    return false;
}

/* A job on record that counts grams or money names its grid. */
static void take_grid(struct run_job *job, const struct job_definition *definition)
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
    static const enum fly_target targets[] = {FLY_TARGET_NONE, FLY_TARGET_AT_LEAST, FLY_TARGET_AT_MOST};
    static const struct job_options to_read = {.existing = true};
    struct fly_session_options *options = &job->options;
    struct job_shown shown = {0};
    const char *policy;
    struct jobs jobs;
    int code = jobs_open(options->store, &to_read, &jobs, out_error);

    if (code == 0) {
        code = jobs.backend->show(jobs.self, options->job_name, &job->arena, &shown, out_error);
        jobs_close(&jobs);
    }
    if (code == FLY_ENOTFOUND)
        return error_set(out_error, FLY_ENOTFOUND,
                         "there is no job '%s' yet; define it with --batch-sizes, --default-batch-size and "
                         "--max-epochs",
                         options->job_name);
    if (code < 0)
        return code;
    options->batch_sizes = shown.definition.batch_sizes;
    options->batch_count = shown.definition.batch_count;
    options->default_batch_size = shown.definition.default_batch_size;
    options->objective = shown.definition.objective;
    options->beta = shown.definition.beta;
    options->target = targets[shown.definition.target];
    options->target_metric = shown.definition.target_metric;
    options->trains_on = shown.definition.trains_on;
    options->target_hold = shown.definition.target_hold;
    options->best_so_far = shown.definition.best_so_far;
    options->report_every_samples = shown.definition.report_every_samples;
    options->report_every_steps = shown.definition.report_every_steps;
    if (!isnan(shown.definition.max_metric_loss))
        options->max_metric_loss = shown.definition.max_metric_loss;
    options->window = shown.definition.window;
    options->no_default = shown.definition.no_default;
    options->max_epochs = shown.definition.max_epochs;
    options->control_every = shown.definition.control_every;
    policy = job_shown_policy(&shown);
    if (cli_source(call, "policy") == CLI_OPTION && policy != NULL && strcmp(options->policy, policy) != 0)
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s' has the policy '%s' on record, and the plug-in is '%s'", options->job_name,
                         policy, options->policy);
    options->policy = policy;
    options->seed = shown.definition.seed;
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
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (cli_source(call, own[i]) == CLI_OPTION)
            return cli_usage(call, out_error, "--%s is about --job without --tune, which is not given",
                             own[i]);
    }
    return 0;
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
        .like = cli_text(call, "like"),
        .revision = cli_text(call, "revision"),
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
    if (!any_given(call, defining, sizeof defining / sizeof defining[0]))
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
