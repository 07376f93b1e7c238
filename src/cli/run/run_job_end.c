/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how a try ended: by the session, by the program, for lack of memory, or because we ended it. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/amount.h"
#include "cli/run/run_job.h"

enum { SIGNAL_STATUS = 128 };

#define UNMATCHED "none of the %" PRIu64 " lines of its output and errors matches --metric-regex '%.160s'"

static void cause(struct run_job_try *attempt, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void cause(struct run_job_try *attempt, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(attempt->cause, sizeof attempt->cause, format, arguments);
    va_end(arguments);
}

static void explain_failure(const struct child *child, struct run_job_try *attempt)
{
    if (child->exec_errno != 0)
        cause(attempt, "it could not be started: %s", strerror(child->exec_errno));
    else if (child->signal != 0)
        cause(attempt, "signal %d", child->signal);
    else
        cause(attempt, "exit status %d", child->status);
}

/* Whether the pattern for metrics was looked for and never found. */
static bool is_unmatched(const struct run_job *job)
{
    return job->has_metric && job->metric_stream < 0 && !job->reported;
}

static bool fails(const struct child *child)
{
    return child->status != 0 && child->status != FLY_SESSION_EXIT_AGAIN;
}

/* Finds which memory a failed program lacked, and what shows it. */
static enum memory_kind find_memory(struct run_job *job, const struct child *child, const char **out_words)
{
    const struct memory_seen *said = &job->said;
    uint64_t kills = host_memory_kills(&job->memory);
    bool told = job->oom_seen || said->count[MEMORY_TOLD] > 0 ||
                (child->signal == 0 && child->status == job->oom_status);
    enum memory_kind kind = said->count[MEMORY_GPU] > 0    ? MEMORY_GPU
                            : said->count[MEMORY_HOST] > 0 ? MEMORY_HOST
                                                           : MEMORY_NONE;

    if (!fails(child) || told)
        return told && fails(child) ? MEMORY_TOLD : MEMORY_NONE;
    /* A killed program could not say why; and it had recovered from what it had reported earlier. */
    if (kills > 0 && (kind == MEMORY_NONE || child->status == SIGNAL_STATUS + SIGKILL))
        return MEMORY_HOST;
    if (kind != MEMORY_NONE)
        *out_words = said->words[kind];
    return kind;
}

/*
 * Writes the failure, with the memory that ran out: "host memory: its output says 'MemoryError',
 * exit status 1".
 */
static void explain_memory(const struct child *child, enum memory_kind kind, const char *words,
                           struct run_job_try *attempt)
{
    char failure[RUN_JOB_TEXT_MAX];

    explain_failure(child, attempt);
    if (kind != MEMORY_GPU && kind != MEMORY_HOST)
        return;
    memcpy(failure, attempt->cause, sizeof failure);
    if (words[0] != '\0')
        cause(attempt, "%s memory: its output says '%s', %.64s", kind == MEMORY_GPU ? "GPU" : "host", words,
              failure);
    else
        cause(attempt, "host memory: the kernel killed a process in its cgroup for want of it, %.64s",
              failure);
}

/*
 * Returns whether this batch size is too large. The GPUs' memory depends on it; the machine's is
 * shared with others.
 */
static bool excludes(enum memory_kind kind)
{
    return kind == MEMORY_TOLD || kind == MEMORY_GPU;
}

/* Whether the program failed before any sign of its training, and not for lack of memory. */
static bool failed_before_a_step(const struct run_job *job, const struct child *child,
                                 enum memory_kind memory)
{
    const uint64_t *events = job->lines.events;

    /* A session of the program's own announces itself, and then its training. */
    if (child->exec_errno != 0)
        return true;
    return child->status != 0 && memory == MEMORY_NONE && !job->reported &&
           !session_has_begun(job->session) && events[STEP_BEGIN] == 0 && events[STEP_EPOCH_BEGIN] == 0 &&
           events[STEP_REPORT] == 0 && events[STEP_SESSION] < 2;
}

/* Reports that the program failed before its first step, and how. */
static enum run_job_end leave(struct run_job *job, const struct run_job_try *attempt)
{
    char text[RUN_JOB_TEXT_MAX];

    snprintf(text, sizeof text, JOB_END_WITHOUT_STEP ": %.256s", attempt->cause);
    job->session->nothing_learnt = true;
    if (!job->session->released)
        session_leave(job->session, text);
    else if (job->session->known)
        session_say_end(job->session, TRIAL_CRASHED, text);
    return RUN_JOB_NOT_STARTED;
}

/* The program's own session reported the end; adds only what that session could not say. */
static enum run_job_end end_of_session(struct run_job *job, const struct child *child,
                                       struct run_job_try *attempt)
{
    struct fly_session *session = job->session;
    const char *words = "";
    enum memory_kind memory = find_memory(job, child, &words);

    if (!fails(child))
        return RUN_JOB_SPOKE;
    explain_memory(child, memory, words, attempt);
    if (failed_before_a_step(job, child, memory))
        return leave(job, attempt);
    if (session->known)
        session_say_end(session, excludes(memory) ? TRIAL_OUT_OF_MEMORY : TRIAL_CRASHED, attempt->cause);
    return excludes(memory) ? RUN_JOB_OUT_OF_MEMORY : RUN_JOB_CRASHED;
}

/* A failure may be why nothing matched, or a pattern that never would have. */
static void add_unmatched(const struct run_job *job, struct run_job_try *attempt)
{
    size_t length = strlen(attempt->cause);

    snprintf(attempt->cause + length, sizeof attempt->cause - length, "; " UNMATCHED, job->output_lines,
             cli_text(job->call, "metric-regex"));
}

/* Finds the end from what the program did. */
static enum run_job_end end_of_program(struct run_job *job, const struct child *child,
                                       struct run_job_try *attempt)
{
    struct fly_session *session = job->session;
    const char *words = "";
    enum memory_kind memory = find_memory(job, child, &words);

    explain_memory(child, memory, words, attempt);
    if (child->status != 0 && is_unmatched(job))
        add_unmatched(job, attempt);
    if (excludes(memory) || (session->failed && job->oom_seen)) {
        session_fail(session, TRIAL_OUT_OF_MEMORY, attempt->cause);
        return RUN_JOB_OUT_OF_MEMORY;
    }
    if (failed_before_a_step(job, child, memory))
        return leave(job, attempt);
    if (child->status != 0) {
        session_fail(session, TRIAL_CRASHED, attempt->cause);
        return RUN_JOB_CRASHED;
    }
    attempt->cause[0] = '\0';
    if (is_unmatched(job)) {
        cause(attempt, UNMATCHED, job->output_lines, cli_text(job->call, "metric-regex"));
        session_leave(session, attempt->cause);
        return RUN_JOB_SILENT;
    }
    if (!job->reported) {
        cause(attempt, "it reported no epoch; a line 'epoch 1 metric 0.5' for each, written to the file in "
                       "FLYBALL_STEPS, --metric-name or --metric-regex, is what is learnt from; inside a "
                       "container and on another node the file is not there");
        session_leave(session, JOB_END_WITHOUT_EPOCH);
        return RUN_JOB_SILENT;
    }
    session->answer = FLY_STOP;
    session->stop = JOB_STOP_EPOCHS;
    if (session->options.job.target != FLY_TARGET_NONE)
        cause(attempt, "it ended by itself after epoch %u of %u", session->epoch,
              session->options.job.max_epochs);
    return session->options.job.target != FLY_TARGET_NONE ? RUN_JOB_NOT_REACHED : RUN_JOB_REACHED;
}

/* Says what the epochs took, and what the trial took apart from them, as the log was told. */
static void explain_cost(const struct fly_session *session, struct run_job_try *attempt)
{
    const double startup_s = attempt->startup_time_s, epochs = session->epoch;
    const double startup_j = attempt->startup_energy_j;
    char energy[AMOUNT_MAX], time[AMOUNT_MAX], apart[AMOUNT_MAX] = "";

    if (startup_s > 0.0)
        snprintf(apart, sizeof apart, " beside a start-up of %s", amount_time(startup_s, time));
    cause(attempt,
          "its score would be too high after one more epoch: %u took %s and %s each%s, and it may run %u",
          session->epoch, amount_time((session->time_s - (startup_s > 0.0 ? startup_s : 0.0)) / epochs, time),
          amount_energy((session->energy_j - (startup_j > 0.0 ? startup_j : 0.0)) / epochs, NAN, "", energy),
          apart, session->epochs);
}

enum run_job_end run_job_find_end(struct run_job *job, const struct child *child, struct run_job_try *attempt)
{
    static const char *const stops[] = {
        [JOB_STOP_NONE] = "",
        [JOB_STOP_TARGET] = "",
        [JOB_STOP_EPOCHS] = "",
        [JOB_STOP_COST] = "its score would be too high after one more epoch",
        [JOB_STOP_DEADLINE] = "another try has to finish by the time given",
        [JOB_STOP_ENDED] = "somebody ended the trial",
    };
    const struct fly_session *session = job->session;

    if ((child->passed != 0 || child->interrupted) && child->status != 0 && !job->ends) {
        explain_failure(child, attempt);
        return RUN_JOB_INTERRUPTED;
    }
    if (session->released)
        return end_of_session(job, child, attempt);
    if (session->reached)
        return RUN_JOB_REACHED;
    if (session->limit.refused) {
        cause(attempt, "not one epoch fits below its bound");
        return RUN_JOB_STOPPED;
    }
    if (session->answer != FLY_STOP)
        return end_of_program(job, child, attempt);
    if (session->stop == JOB_STOP_EPOCHS)
        return session->options.job.target != FLY_TARGET_NONE ? RUN_JOB_NOT_REACHED : RUN_JOB_REACHED;
    if (session->stop == JOB_STOP_COST && session->epoch > 0 && !isnan(session->energy_j))
        explain_cost(session, attempt);
    else
        cause(attempt, "%s", stops[session->stop]);
    return RUN_JOB_STOPPED;
}
