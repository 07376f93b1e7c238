/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a session, and closes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disabled.h"
#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "job/core/definition.h"
#include "job/core/policy_choice.h"
#include "meter/identity.h"
#include "meter/meter.h"
#include "train/program/run_variables.h"
#include "train/session/session_private.h"

static const double wait_usual_s = 5.0, beat_usual_s = 60.0;

/*
 * A report delays the training by at most this time, and half of it more for the disk; the end by at most
 * that.
 */
static const double answer_most_s = 0.2, end_most_s = 0.5;

/* Of a program that was compiled with the first of these headers that could grow. */
static const size_t least_size = offsetof(struct fly_session_options, tries_directory);

/* The options as this library knows them; what the caller's do not have is not set. */
static struct fly_session_options whole(const struct fly_session_options *options)
{
    struct fly_session_options own = {.size = sizeof own};

    memcpy(&own, options, options->size < sizeof own ? options->size : sizeof own);
    own.size = sizeof own;
    return own;
}

static int check(const struct fly_session_options *options, struct fly_error *out_error)
{
    if (options->size < least_size)
        return error_set(out_error, FLY_EUSAGE, "session: options.size is %zu; set it to sizeof options",
                         options->size);
    if (options->job_name == NULL)
        return error_set(out_error, FLY_EUSAGE, "session: options need a job_name");
    if (options->world_size > 1 && options->all_reduce == NULL)
        return error_set(out_error, FLY_EUSAGE, "session: %u ranks need an all_reduce that joins them",
                         options->world_size);
    if (options->rank > 0 && options->rank >= options->world_size)
        return error_set(out_error, FLY_EUSAGE, "session: rank %u of %u; ranks count from 0", options->rank,
                         options->world_size);
    if (whole(options).replicas > (options->world_size > 0 ? options->world_size : 1))
        return error_set(out_error, FLY_EUSAGE, "session: %u replicas of %u ranks; there are at most as many",
                         whole(options).replicas, options->world_size > 0 ? options->world_size : 1);
    if (!(options->wait_s >= 0.0))
        return error_set(out_error, FLY_EUSAGE, "session: wait_s is %g; give seconds from 0",
                         options->wait_s);
    if (options->limit_count > FLY_POWER_SEARCH_LIMITS_MAX)
        return error_set(out_error, FLY_EUSAGE, "session: %zu limits; give at most %d", options->limit_count,
                         FLY_POWER_SEARCH_LIMITS_MAX);
    if (options->run != NULL && strlen(options->run) >= JOB_TEXT_MAX)
        return error_set(out_error, FLY_ELIMIT, "session: run '%.40s...' is longer than %d bytes",
                         options->run, JOB_TEXT_MAX - 1);
    return 0;
}

/* Copies all that the options point to; false without memory. */
static bool copy_options(struct fly_session *session, const struct fly_session_options *options)
{
    struct fly_session_options *own = &session->options;
    struct fly_carbon_options *carbon = &session->carbon.options;
    const char **const texts[] = {&own->job_name, &own->policy,    &own->store,          &own->run,
                                  &own->gpus,     &carbon->source, &carbon->price,       &carbon->directory,
                                  &own->like,     &own->revision,  &own->tries_directory};
    size_t batch_bytes = options->batch_count * sizeof session->batch_sizes[0],
           limit_bytes = options->limit_count * sizeof session->limits_w[0];

    *own = whole(options);
    session->carbon.wanted = own->carbon != NULL;
    if (own->carbon != NULL)
        *carbon = *own->carbon;
    own->carbon = NULL;
    if (own->store == NULL || own->store[0] == '\0')
        own->store = run_variable(RUN_VARIABLE_STORE);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        session->texts[i] = *texts[i] != NULL ? strdup(*texts[i]) : NULL;
        if (*texts[i] != NULL && session->texts[i] == NULL)
            return false;
        *texts[i] = session->texts[i];
    }
    session->batch_sizes = malloc(batch_bytes + 1);
    session->limits_w = malloc(limit_bytes + 1);
    if (session->batch_sizes == NULL || session->limits_w == NULL)
        return false;
    if (batch_bytes > 0)
        memcpy(session->batch_sizes, options->batch_sizes, batch_bytes);
    if (limit_bytes > 0)
        memcpy(session->limits_w, options->limits_w, limit_bytes);
    own->world_size = own->world_size > 0 ? own->world_size : 1;
    own->tries = own->tries > 0 ? own->tries : 1;
    own->wait_s = own->wait_s > 0.0 ? own->wait_s : wait_usual_s;
    return true;
}

/* An epoch has the samples of one evaluation at the default batch size; 0 if they are too many to count. */
static uint32_t samples_of_steps(const struct fly_session_options *options)
{
    uint64_t samples = (uint64_t)options->report_every_steps * options->default_batch_size;

    return samples <= UINT32_MAX ? (uint32_t)samples : 0;
}

static void define(struct fly_session *session)
{
    static const enum job_target targets[] = {JOB_NO_TARGET, JOB_AT_LEAST, JOB_AT_MOST};
    const struct fly_session_options *options = &session->options;
    struct job_definition *job = &session->definition;

    *job = job_definition_default;
    job->name = options->job_name;
    job->batch_sizes = session->batch_sizes;
    job->batch_count = options->batch_count;
    job->default_batch_size = options->default_batch_size;
    job->objective = options->objective;
    if (job->objective.max_slowdown == 0.0)
        job->objective.max_slowdown = NAN; /* not named */
    if (job->objective.kind == FLY_OBJECTIVE_CARBON)
        job->grid = session->carbon.options.source;
    if (job->objective.kind == FLY_OBJECTIVE_MONEY)
        job->grid = session->carbon.options.price;
    if (options->beta != 0.0)
        job->beta = options->beta;
    if ((unsigned)options->target < sizeof targets / sizeof targets[0])
        job->target = targets[options->target];
    job->target_metric = options->target_metric;
    job->trains_on = options->trains_on;
    job->max_epochs = options->max_epochs;
    job->target_hold = options->target_hold;
    job->report_every_steps = options->report_every_steps;
    job->report_every_samples =
        options->report_every_samples > 0 ? options->report_every_samples : samples_of_steps(options);
    job->best_so_far = options->best_so_far;
    if (options->max_metric_loss != 0.0)
        job->max_metric_loss = options->max_metric_loss;
    job->window = options->window;
    job->no_default = options->no_default;
    session->objective = definition_objective(job);
    job->like = options->like;
    job->revision = options->revision;
    job->control_every = options->control_every;
    job->seed = options->seed;
    job->policy = options->policy;
    if (!definition_names_policy(job)) /* then the log's keeper chooses one */
        job->policy = NULL;
}

/* Names the run. A launcher gives the job another name after a requeue, a scheduler does not. */
static void name_run(struct fly_session *session)
{
    const char *given = session->options.run != NULL ? session->options.run : run_variable(RUN_VARIABLE_RUN);
    struct identity identity;

    gethostname(session->host, sizeof session->host - 1);
    identity_find((const char *const *)environ, session->host, &identity);
    if (given != NULL)
        snprintf(session->run, sizeof session->run, "%.*s", JOB_TEXT_MAX - 1, given);
    else if (identity.job[0] != '\0' && !identity.job_of_launcher)
        snprintf(session->run, sizeof session->run, "%.90s%s%.30s", identity.job,
                 identity.step[0] != '\0' ? "." : "", identity.step);
    memcpy(session->submission, session->run, sizeof session->submission);
}

/*
 * Names whose the run is. Anybody can set a variable with a name of a user; a service records whom it knows.
 */
static void name_origin(struct fly_session *session)
{
    static const char *const accounts[] = {"SLURM_JOB_ACCOUNT", "PBS_ACCOUNT"};
    const char *value = NULL;

    snprintf(session->user, sizeof session->user, "uid:%lu", (unsigned long)getuid());
    for (size_t i = 0; value == NULL && i < sizeof accounts / sizeof accounts[0]; i++)
        value = getenv(accounts[i]);
    snprintf(session->account, sizeof session->account, "%s", value != NULL ? value : "");
}

/* Names the GPUs of this rank. Those that do not fit are left out. */
static void name_gpus(struct fly_session *session)
{
    size_t length = 0;

    for (size_t i = 0; i < session->limit.gpu_count; i++) {
        const char *uuid = session->limit.gpus[i]->info.uuid;
        size_t room = sizeof session->gpus - length;

        if (strlen(uuid) + 2 <= room)
            length += (size_t)snprintf(session->gpus + length, room, "%s%s", length > 0 ? "," : "", uuid);
    }
}

static void open_meter(struct fly_session *session)
{
    const struct fly_meter_options options = {.size = sizeof options, .gpus = session->options.gpus};
    struct fly_error error;

    session->meter = session->options.meter;
    session->energies = calloc(DEVICES_MAX, sizeof session->energies[0]);
    if (session->meter == NULL && session->energies != NULL)
        session->meter_owned = fly_meter_open(&options, &session->meter, &error) == 0;
    if (session->energies == NULL)
        session->meter = NULL;
}

static int open_post(struct fly_session *session, const struct session_parts *parts,
                     struct fly_error *out_error)
{
    const struct post_options options = {
        .clock = session->clock,
        .directory = parts->spool_directory,
        .store = session->options.store,
        .jobs = parts->jobs,
        .wait_s = session->options.wait_s,
        .answer_s = parts->heeds ? 0.0 : fmin(answer_most_s, session->options.wait_s),
    };

    return session->disabled ? 0 : post_new(&options, &session->post, out_error);
}

static void free_memory(struct fly_session *session)
{
    for (size_t i = 0; i < sizeof session->texts / sizeof session->texts[0]; i++)
        free(session->texts[i]);
    free(session->batch_sizes);
    free(session->limits_w);
    free(session->energies);
    free(session);
}

int session_new(const struct fly_session_options *options, const struct session_parts *parts,
                struct fly_session **out_session, struct fly_error *out_error)
{
    int code = check(options, out_error);
    struct fly_session *session;

    if (code < 0)
        return code;
    session = calloc(1, sizeof *session);
    if (session == NULL)
        return error_no_memory(out_error);
    if (!copy_options(session, options)) {
        free_memory(session);
        return error_no_memory(out_error);
    }
    define(session);
    code = job_definition_check(&session->definition, out_error);
    if (code == 0)
        code = session_account_check(session, out_error);
    if (code < 0) {
        free_memory(session);
        return code;
    }
    session->forks = fork_generation();
    session->clock = parts->clock != NULL     ? parts->clock
                     : options->meter != NULL ? meter_clock(options->meter)
                                              : &clock_real;
    session->knobs = parts->knobs;
    session->carbon.keeper = parts->keeper;
    session->heeds = parts->heeds;
    session->beat_s = parts->beat_s > 0.0 ? parts->beat_s : beat_usual_s;
    session->disabled = disabled_by_user();
    session->inside = !session->disabled && run_variables_of(session->definition.name);
    name_run(session);
    name_origin(session);
    session_directory_open(session);
    code = open_post(session, parts, out_error);
    if (code < 0) {
        free_memory(session);
        return code;
    }
    session->limit.held_w = NAN;
    if (!session->disabled) {
        open_meter(session);
        session_limit_open(session);
        name_gpus(session);
        session_announce(session);
    }
    session_begin_try(session);
    *out_session = session;
    return 0;
}

int fly_session_open(const struct fly_session_options *options, struct fly_session **out_session,
                     struct fly_error *out_error)
{
    int code = check(options, out_error);

    /* Opening the log loads the plug-ins that the variable names. */
    if (code == 0 && options->policy != NULL && getenv(POLICY_PLUGINS_VARIABLE) == NULL)
        code = job_policy_check(options->job_name, options->policy, NULL, out_error);
    return code < 0 ? code
                    : session_new(options, &(struct session_parts){.jobs = NULL}, out_session, out_error);
}

void session_close(struct fly_session *session, enum fly_session_end end, struct post_status *out_status)
{
    if (session == NULL)
        return;
    if (out_status != NULL)
        *out_status = (struct post_status){.text = ""};
    if (session->forks == fork_generation()) {
        session_finish(session, end);
        session_end_try(session);
        session_limit_close(session);
        if (session->meter_owned)
            fly_meter_close(session->meter);
        post_close(session->post, end_most_s, out_status);
    } else {
        carbon_governor_close(session->carbon.governor);
        if (session->meter_owned)
            fly_meter_close(session->meter);
    }
    free_memory(session);
}

void fly_session_close(struct fly_session *session, enum fly_session_end end)
{
    session_close(session, end, NULL);
}
