/* SPDX-License-Identifier: Apache-2.0 */
/* Changes what a user wants of a job from now on. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/small_options.h"
#include "cli/options/store_option.h"
#include "job/core/definition.h"

enum { PIN_TEXT_MAX = 64 };

static const struct cli_option options[] = {
    {.name = "objective",
     .type = CLI_TEXT,
     .placeholder = "WHAT",
     .help = "What the job makes small: energy, time, cost:ETA, lowest-limit, or carbon or money of a job "
             "that names its "
             "grid. A bound that holds stays."},
    {.name = "eta",
     .type = CLI_REAL,
     .placeholder = "WEIGHT",
     .minimum = 0,
     .maximum = 1,
     .help = "The same as --objective cost:WEIGHT: the weight of energy against time, from 0 (time) to 1 "
             "(energy)."},
    {.name = "max-slowdown",
     .type = CLI_TEXT,
     .placeholder = "BOUND",
     .help = "Take at most so much more time than the default: 3%, 1.03x, or none."},
    {.name = "pin",
     .type = CLI_TEXT,
     .placeholder = "BATCH[,WATTS]",
     .help = "Always run this batch size, under this power limit or under its profile's best; none: choose "
             "again."},
    {.name = "control-every",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = 1e9,
     .help = "Run the default at the highest power limit in each so many recurrences, to measure what is "
             "saved; 0: never."},
    {.name = "recurrences-left",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = 1e9,
     .help = "How many recurrences will begin from now on: only what pays within them is explored. 0: not "
             "known."},
    {.name = "policy",
     .type = CLI_TEXT,
     .placeholder = "NAME",
     .help = "Choose batch sizes by this policy, as if it had always been the job's: it learns from all "
             "trials on record. auto: the one that a new job gets."},
    {.name = "owners",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .help = "Who may change the job in a service, with commas: uid:NUMBER, gid:NUMBER (as primary group), "
             "token:NAME or anonymous. operator: nobody but the service's operator."},
};

static int read_objective(const struct cli_call *call, const struct job_shown *shown,
                          struct job_setting *setting, struct fly_error *out_error)
{
    const char *objective = cli_text(call, "objective"), *bound = cli_text(call, "max-slowdown");
    double max_slowdown = shown->objective.max_slowdown;
    struct fly_error error;

    setting->objective = shown->objective;
    if (objective != NULL && cli_set(call, "eta"))
        return cli_usage(call, out_error, "--objective and --eta both say what to make small; give one");
    if (objective != NULL && fly_objective_parse(objective, &setting->objective, &error) < 0)
        return cli_value_error(call, "objective", objective,
                               "energy, time, cost:ETA, lowest-limit, carbon or money", out_error);
    if (cli_set(call, "eta")) {
        setting->objective.kind = FLY_OBJECTIVE_COST;
        setting->objective.eta = cli_real(call, "eta");
    }
    if (slowdown_option_read(call, &max_slowdown, out_error) < 0)
        return FLY_EUSAGE;
    setting->objective.max_slowdown = max_slowdown;
    setting->set_objective = objective != NULL || cli_set(call, "eta") || bound != NULL;
    return 0;
}

static int read_pin(const struct cli_call *call, struct job_setting *setting, struct fly_error *out_error)
{
    const char *text = cli_text(call, "pin"), *comma;
    char batch[PIN_TEXT_MAX];
    uint64_t size = 0;

    if (text == NULL)
        return 0;
    setting->set_pin = true;
    if (strcmp(text, "none") == 0)
        return 0;
    comma = strchr(text, ',');
    snprintf(batch, sizeof batch, "%.*s", comma != NULL ? (int)(comma - text) : (int)strlen(text), text);
    if (!number_parse_u64(batch, UINT32_MAX, &size) || size == 0 ||
        (comma != NULL &&
         (!number_parse_double(comma + 1, &setting->pin_limit_w) || setting->pin_limit_w <= 0)))
        return cli_value_error(call, "pin", text,
                               "a batch size, or that and a limit in watts as in 64,150, or none", out_error);
    setting->pin_batch_size = (uint32_t)size;
    return 0;
}

static void tell(const struct cli_call *call, const struct job_setting *setting)
{
    char text[JOB_HARDWARE_TEXT_MAX], limit[NUMBER_TEXT_MAX];

    if (setting->set_objective)
        cli_note(call, "job '%s' is chosen for by %s", setting->job,
                 job_view_objective(&setting->objective, text));
    if (setting->set_pin && setting->pin_batch_size == 0)
        cli_note(call, "job '%s' has no pin", setting->job);
    else if (setting->set_pin && isnan(setting->pin_limit_w))
        cli_note(call, "job '%s' always runs batch size %u at its profile's best limit", setting->job,
                 setting->pin_batch_size);
    else if (setting->set_pin)
        cli_note(call, "job '%s' always runs batch size %u at %s W", setting->job, setting->pin_batch_size,
                 number_format(setting->pin_limit_w, limit));
    if (setting->set_control_every && setting->control_every == 0)
        cli_note(call, "job '%s' never runs the default to measure what is saved", setting->job);
    else if (setting->set_control_every)
        cli_note(call, "job '%s' runs the default in each %u recurrences", setting->job,
                 setting->control_every);
    if (setting->set_recurrences_left && setting->recurrences_left == 0)
        cli_note(call, "it is not known how many recurrences job '%s' will have", setting->job);
    else if (setting->set_recurrences_left)
        cli_note(call, "job '%s' has %u recurrence%s left", setting->job, setting->recurrences_left,
                 setting->recurrences_left == 1 ? "" : "s");
    if (setting->owners != NULL)
        cli_note(call, "job '%s' belongs to %s; others only read it in a service", setting->job,
                 setting->owners);
}

/* Names the policy that the job has now; that of `auto` is decided where the log is kept. */
static int tell_policy(const struct cli_call *call, const struct jobs *jobs, const char *name,
                       struct fly_error *out_error)
{
    struct job_shown shown;
    struct arena arena;
    int code;

    arena_init(&arena, 1 << 20);
    code = jobs->backend->show(jobs->self, name, &arena, &shown, out_error);
    if (code == 0)
        cli_note(call,
                 "job '%s' chooses its batch sizes by the policy '%s', which has learnt from all "
                 "trials on record",
                 name, job_shown_policy(&shown));
    arena_deinit(&arena);
    return code;
}

static int set_in(const struct cli_call *call, const struct jobs *jobs, const char *name,
                  struct fly_error *out_error)
{
    struct job_setting setting = {.job = name, .pin_limit_w = NAN};
    struct job_shown shown;
    struct arena arena;
    int code;

    arena_init(&arena, 1 << 20);
    code = jobs->backend->show(jobs->self, name, &arena, &shown, out_error);
    arena_deinit(&arena);
    if (code < 0)
        return code;
    code = read_objective(call, &shown, &setting, out_error);
    if (code == 0)
        code = read_pin(call, &setting, out_error);
    if (code < 0)
        return code;
    setting.set_control_every = cli_set(call, "control-every");
    if (setting.set_control_every)
        setting.control_every = (uint32_t)cli_integer(call, "control-every");
    setting.policy = cli_text(call, "policy");
    setting.set_recurrences_left = cli_set(call, "recurrences-left");
    if (setting.set_recurrences_left)
        setting.recurrences_left = (uint32_t)cli_integer(call, "recurrences-left");
    setting.owners = cli_text(call, "owners");
    if (!setting.set_objective && !setting.set_pin && !setting.set_control_every &&
        !setting.set_recurrences_left && setting.policy == NULL && setting.owners == NULL)
        return cli_usage(call, out_error, "nothing to set was given");
    code = jobs->backend->set(jobs->self, &setting, out_error);
    if (code == 0)
        tell(call, &setting);
    if (code == 0 && setting.policy != NULL)
        code = tell_policy(call, jobs, name, out_error);
    return code;
}

static int job_set_run(const struct cli_call *call, struct fly_error *out_error)
{
    return job_view_run(call, set_in, out_error);
}

const struct cli_command cmd_job_set = {
    .words = "job set",
    .summary = "change what is wanted of a recurring job",
    .paragraphs =
        {"Writes into the job's log what holds from the next trial on: another objective or bound, a choice "
         "on "
         "the frontier of 'flyball job pareto' to stay with, how often the default is measured, or another "
         "policy. What was observed so far counts for the new objective and the new policy too. Everything "
         "else in a job's definition is fixed; "
         "a "
         "job that differs needs a name of its own."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .operands = "JOB",
    .operand_maximum = 1,
    .examples = {{"flyball job set digits --objective energy --max-slowdown 3%",
                  "save energy for at most 3 % more time"},
                 {"flyball job set digits --pin 64,150", "always run batch size 64 at 150 W"},
                 {"flyball job set digits --owners uid:1000,token:night-runs",
                  "let two change it in a service, and all others only read it"},
                 {"flyball job set digits --pin none --control-every 10",
                  "choose again, and measure the default in each tenth recurrence"}},
    .run = job_set_run,
};
