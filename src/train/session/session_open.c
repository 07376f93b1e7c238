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

enum { OPTIONS_MEMORY_MAX = 1 << 20 };

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

/* Gives the job's members that are not set their defaults, and the objective its grid. */
static void define(struct fly_job_definition *job, const struct fly_carbon_options *carbon)
{
    if (carbon != NULL && job->objective.kind == FLY_OBJECTIVE_CARBON)
        job->grid = carbon->source;
    if (carbon != NULL && job->objective.kind == FLY_OBJECTIVE_MONEY)
        job->grid = carbon->price;
    definition_settle(job);
    if (!definition_names_policy(job)) /* then the log's keeper chooses one */
        job->policy = NULL;
}

/* Copies all that the options point to; false without memory. */
static bool keep_options(struct fly_session *session)
{
    struct fly_session_options *own = &session->options;
    struct fly_carbon_options *carbon = &session->carbon.options;
    const char **const texts[] = {&own->store,     &own->run,      &own->gpus,        &own->tries_directory,
                                  &carbon->source, &carbon->price, &carbon->directory};
    double *limits_w = arena_alloc(&session->arena, own->limit_count + 1, sizeof limits_w[0]);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] != NULL && (*texts[i] = arena_strdup(&session->arena, *texts[i])) == NULL)
            return false;
    }
    if (limits_w == NULL)
        return false;
    if (own->limit_count > 0)
        memcpy(limits_w, own->limits_w, own->limit_count * sizeof limits_w[0]);
    own->limits_w = limits_w;
    return definition_keep(&own->job, &session->arena);
}

/* Takes the options, with what is not set replaced by its default. */
static int take_options(struct fly_session *session, const struct fly_session_options *options,
                        struct fly_error *out_error)
{
    struct fly_session_options *own = &session->options;
    int code;

    *own = whole(options);
    session->carbon.wanted = own->carbon != NULL;
    if (own->carbon != NULL)
        session->carbon.options = *own->carbon;
    define(&own->job, own->carbon);
    own->carbon = NULL;
    if (own->store == NULL || own->store[0] == '\0')
        own->store = run_variable(RUN_VARIABLE_STORE);
    own->world_size = own->world_size > 0 ? own->world_size : 1;
    own->tries = own->tries > 0 ? own->tries : 1;
    own->wait_s = own->wait_s > 0.0 ? own->wait_s : wait_usual_s;
    session->objective = definition_objective(&own->job);
    code = job_definition_check(&own->job, out_error);
    if (code == 0 && !keep_options(session))
        code = error_no_memory(out_error);
    return code == 0 ? session_account_check(session, out_error) : code;
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
    arena_deinit(&session->arena);
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
    arena_init(&session->arena, OPTIONS_MEMORY_MAX);
    code = take_options(session, options, out_error);
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
    session->inside = !session->disabled && run_variables_of(session->options.job_name);
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
