/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program again until there is a model or no try is left. */
#include "cli/run/run_job.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "job/core/definition.h"
#include "policy/batch_policies.h"

/* How long the process waits at its gate; it is released at once. */
static const double patience_s = 60.0;

enum { DESCRIPTORS_MAX = 1024 };

/* What is restored before each program starts. */
struct inheritance {
    sigset_t mask;
    struct sigaction pipe;
    bool open[DESCRIPTORS_MAX];
};

static void for_descriptors(void (*act)(int descriptor, struct inheritance *inheritance),
                            struct inheritance *inheritance)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;

    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        int descriptor = (int)strtol(entry->d_name, NULL, 10);

        if (entry->d_name[0] != '.' && descriptor != dirfd(directory) && descriptor < DESCRIPTORS_MAX)
            act(descriptor, inheritance);
    }
    if (directory != NULL)
        closedir(directory);
}

static void note_open(int descriptor, struct inheritance *inheritance)
{
    inheritance->open[descriptor] = true;
}

/* Drivers and libraries open files that a program must not inherit. */
static void hide(int descriptor, struct inheritance *inheritance)
{
    if (descriptor > STDERR_FILENO && !inheritance->open[descriptor])
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

static void note_inheritance(struct inheritance *inheritance)
{
    memset(inheritance, 0, sizeof *inheritance);
    sigprocmask(SIG_SETMASK, NULL, &inheritance->mask);
    sigaction(SIGPIPE, NULL, &inheritance->pipe);
    for_descriptors(note_open, inheritance);
}

/* Signals that came between two tries take effect here. */
static void restore_inheritance(struct inheritance *inheritance)
{
    for_descriptors(hide, inheritance);
    sigaction(SIGPIPE, &inheritance->pipe, NULL);
    sigprocmask(SIG_SETMASK, &inheritance->mask, NULL);
}

static void put_off(struct run_job *job, const char *text)
{
    if (job->off[0] == '\0')
        snprintf(job->off, sizeof job->off, "%s", text);
}

void run_job_take_grid(struct run_job *job, const struct run_carbon *carbon)
{
    enum fly_objective_kind kind = job->options.objective.kind;
    bool counts = kind == FLY_OBJECTIVE_CARBON || kind == FLY_OBJECTIVE_MONEY;
    struct fly_carbon_options recorded = job->grid;

    if (!job->wanted)
        return;
    job->parts.keeper = carbon->keeper;
    /* A job that counts grams or money needs its grid, wherever its source was named. */
    if (!carbon->followed && !(carbon->wanted && counts))
        return;
    job->grid = carbon->options;
    if (job->grid.source == NULL)
        job->grid.source = recorded.source;
    if (job->grid.price == NULL)
        job->grid.price = recorded.price;
    job->options.carbon = &job->grid;
}

void run_job_watch(struct run_job *job)
{
    const bool watched[OUTPUT_STREAMS] = {!job->has_metric, true};
    struct fly_error error;

    job->errors = (struct run_capture){.program_end = -1};
    if (job->has_metric && capture_open(&job->errors, -1, &error) < 0)
        put_off(job, error.text);
    output_watch_begin(&job->watch, job->has_oom ? &job->oom : NULL, watched, job->errors.program_end);
}

void run_job_reserve(struct run_job *job)
{
    job->reserved = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void open_streams(struct run_job *job)
{
    struct fly_error error;

    job->lines = (struct step_lines)STEP_LINES_NONE;
    if (job->reserved >= 0)
        close(job->reserved);
    if (step_lines_open(&job->lines, &error) < 0)
        put_off(job, error.text);
    else if (!job->no_hook)
        python_hook_offer(&job->hook, &job->lines.hook);
    if (job->has_metric && capture_open(&job->capture, STDOUT_FILENO, &error) < 0)
        put_off(job, error.text);
    fflush(NULL);
}

static void close_streams(struct run_job *job)
{
    job->seen = job->lines.hook;
    step_lines_close(&job->lines);
    capture_close(&job->capture);
}

/* Starts the program and follows it. FLY_ELIMIT, FLY_ENOMEM: no process could be made. */
static int run_try(struct run_job *job, char *const *words, const char *variable,
                   struct inheritance *inheritance, struct child *child, struct fly_error *out_error)
{
    char **filled = run_job_words(job, words);
    int code;

    if (filled == NULL)
        return error_no_memory(out_error);
    job->child = child;
    job->program_start = 0;
    restore_inheritance(inheritance);
    open_streams(job);
    run_job_set_variables(job);
    run_job_make_directory(job, words);
    capture_put(&job->capture);
    output_watch_put(&job->watch);
    code = child_fork(child, filled, patience_s, out_error);
    output_watch_take_back(&job->watch);
    capture_take_back(&job->capture);
    step_lines_passed(&job->lines);
    python_hook_take_back(&job->hook);
    run_job_reserve(job);
    if (code == 0 && job->begins != NULL)
        job->begins(job->moment_data);
    if (code == 0 && child_start(child, variable) == 0)
        run_job_follow(job, child);
    close_streams(job);
    free(filled);
    return code;
}

/* Returns whether to start the program again. */
static bool is_again(const struct run_job *job, const struct run_job_try *attempt)
{
    const struct fly_session *session = job->session;
    bool wanted = attempt->end == RUN_JOB_SPOKE ? attempt->exit_status == FLY_SESSION_EXIT_AGAIN
                  : session->released && !session->nothing_learnt ? attempt->end != RUN_JOB_INTERRUPTED
                                                                  : session_wants_again(session);

    return wanted && attempt->end != RUN_JOB_INTERRUPTED && attempt->end != RUN_JOB_SILENT;
}

/*
 * Returns the program's status. If we ended the program: 0 if it had reached the target, else
 * FLY_SESSION_EXIT_AGAIN.
 */
static int status_of(const struct run_job *job, const struct run_job_try *attempt, bool again)
{
    if (again && job->options.tries == FLY_SESSION_ALWAYS)
        return FLY_SESSION_EXIT_AGAIN;
    if (!attempt->ended_by_us)
        return attempt->exit_status;
    return attempt->end == RUN_JOB_REACHED ? 0 : FLY_SESSION_EXIT_AGAIN;
}

/* Records the try. Returns whether another follows. */
static bool end_try(struct run_job *job, const struct child *child)
{
    struct run_job_try *attempt = &job->tries[job->try_count++];
    bool again;

    *attempt = (struct run_job_try){.exit_status = child->status,
                                    .signal = child->signal,
                                    .ended_by_us = job->ends,
                                    .metric = job->metric_now,
                                    .steps = job->lines.events[STEP_BEGIN],
                                    .startup_energy_j = job->session->startup.energy_j,
                                    .startup_time_s = job->session->startup.time_s,
                                    .status = {.size = sizeof attempt->status}};
    attempt->end = run_job_find_end(job, child, attempt);
    (void)fly_session_status(job->session, &attempt->status);
    job->carbon_report.size = sizeof job->carbon_report;
    if (fly_session_carbon(job->session, &job->carbon_report) < 0)
        job->carbon_report.size = 0;
    again = is_again(job, attempt);
    job->status = status_of(job, attempt, again);
    return again && child->exec_errno == 0 && job->options.tries != FLY_SESSION_ALWAYS &&
           session_tries_left(job->session) && job->try_count < RUN_JOB_TRIES_MAX;
}

static int run_all(struct run_job *job, char *const *words, const char *variable, struct child *child,
                   struct inheritance *inheritance, struct fly_error *out_error)
{
    for (;;) {
        int code = run_try(job, words, variable, inheritance, child, out_error);
        bool again;

        if (code < 0)
            return code;
        again = end_try(job, child);
        /* The next try needs the GPU for itself, and a user who ends the command ends all of it. */
        if (again || job->tries[job->try_count - 1].end == RUN_JOB_INTERRUPTED)
            run_job_end_rest(job);
        if (!again)
            return 0;
        session_next_try(job->session);
    }
}

/* A service that does not know the policy refuses the job here; the report says what else it refuses. */
static int check_policy(const struct run_job *job, struct fly_error *out_error)
{
    const struct fly_session *session = job->session;
    struct fly_session_status status = {.size = sizeof status};

    if (session->code != FLY_EUSAGE || !definition_names_policy(&session->options.job) ||
        batch_policy_find(session->options.job.policy) != NULL)
        return 0;
    (void)fly_session_status(session, &status);
    return error_set(out_error, FLY_EUSAGE, "%s", status.text);
}

/*
 * Says once, before the program starts, what is explored: without it, users would notice only
 * after many submissions.
 */
static void say_what_is_explored(const struct run_job *job)
{
    const struct fly_session *session = job->session;
    const struct fly_job_definition *definition = &session->options.job;

    if (!session->known || session->proposal.trial != 1 || session->proposal.attempt != 1 ||
        job->options.tries != 1 || definition->batch_count < 2 || definition->target == FLY_TARGET_NONE ||
        (definition_names_policy(definition) && strcmp(definition->policy, batch_policy_default.name) == 0))
        return;
    cli_warn(
        job->call,
        "job '%s': one try is allowed, so that batch size %u alone is run and none of the other %zu is ever "
        "explored; allow more with --tries 3, or with --tries 0 where something starts this command again",
        definition->name, session->proposal.batch_size, definition->batch_count - 1);
}

/* Says of a try that failed, alone, how another is had. */
static void say_how_to_try_again(const struct run_job *job)
{
    enum run_job_end end = job->try_count == 1 ? job->tries[0].end : RUN_JOB_REACHED;

    if (job->options.tries == 1 &&
        (end == RUN_JOB_NOT_REACHED || end == RUN_JOB_OUT_OF_MEMORY || end == RUN_JOB_CRASHED))
        cli_warn(job->call,
                 "job '%s': the try failed and no second was made, since one is allowed; with --tries 3, or "
                 "{try_directory} in the command for what a try saves, there are three",
                 job->options.job_name);
}

int run_job_tries(struct run_job *job, char *const *arguments, const char *variable, struct fly_meter *meter,
                  struct child *out_child, struct fly_error *out_error)
{
    struct inheritance inheritance;
    enum fly_session_end end = FLY_SESSION_FINISHED;
    const char *note;
    int code;

    note_inheritance(&inheritance);
    run_job_adopt();
    job->parts.heeds = true;
    job->options.meter = meter;
    if (meter == NULL)
        job->options.gpus = "none";
    job->tries = calloc(RUN_JOB_TRIES_MAX, sizeof *job->tries);
    if (job->tries == NULL)
        return error_no_memory(out_error);
    code = session_new(&job->options, &job->parts, &job->session, out_error);
    if (code < 0)
        return code;
    say_what_is_explored(job);
    code = check_policy(job, out_error);
    if (code == 0)
        code = run_all(job, arguments, variable, out_child, &inheritance, out_error);
    if (code < 0 || (job->try_count > 0 && job->tries[job->try_count - 1].end == RUN_JOB_INTERRUPTED))
        end = FLY_SESSION_INTERRUPTED;
    say_how_to_try_again(job);
    note = job->session->note;
    session_close(job->session, end, &job->kept);
    job->session = NULL;
    output_watch_close(&job->watch);
    capture_close(&job->errors);
    if (job->kept.text[0] == '\0' && note != NULL)
        snprintf(job->kept.text, sizeof job->kept.text, "%s", note);
    return code;
}
