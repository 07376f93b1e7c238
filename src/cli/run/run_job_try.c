/* SPDX-License-Identifier: Apache-2.0 */
/* Follows one try: the program's reports, and ending the program if it must end. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/run/run_job.h"

/* How often to check the program; and how often to look for output if the system does not signal it. */
static const double check_s = 0.4, ask_s = 0.005;

enum { LINES_AT_ONCE = 1000, PIECES_AT_ONCE = 16, NUMBER_TEXT = 64 };

/* Printed if a call into the driver does not return. */
static const char never_turned[] =
    "flyball: a driver did not answer; the guard process puts back what stood before, and 'flyball power "
    "restore' does so later\n";

static void end_program(struct run_job *job)
{
    if (job->ends)
        return;
    job->ends = true;
    job->kill_at = mono_after_s(mono_now(), job->grace_s);
    run_job_signal_all(job, SIGTERM);
}

/*
 * A program that has done all its epochs may still have to save its model, so it is not ended: it
 * ends by itself or goes on.
 */
static void heed(struct run_job *job, enum fly_answer answer)
{
    if (answer == FLY_GO_ON || (answer == FLY_REACHED && !job->session->proposal.stops_at_target))
        return;
    if (answer == FLY_STOP && job->session->stop == JOB_STOP_EPOCHS && !job->all_epochs)
        job->all_epochs = true;
    else
        end_program(job);
}

/* Reads late answers of the log. */
static void hear(struct run_job *job)
{
    enum fly_answer before = job->session->answer;

    session_heed(job->session);
    if (job->session->answer != before && !job->session->released)
        heed(job, job->session->answer);
}

/* Returns whether the newest step was over before it was heard of. */
static bool is_missed(struct run_job *job)
{
    if (step_lines_at(&job->lines) > job->missed_to)
        return false;
    if (step_lines_end(&job->lines) >= job->missed_to)
        return true;
    job->missed_to = 0; /* the file was cut short */
    return false;
}

/*
 * To start a guard or set a limit takes time, and the program's steps of that time wait in the file. They
 * would look like steps that take no time, so they are counted and not measured. No window is open then.
 */
static void begin_step(struct run_job *job)
{
    const struct knob_turner *turner = &job->session->limit.knob_turner;
    unsigned turns = turner->turns;

    if (job->all_epochs)
        end_program(job);
    else if (is_missed(job))
        session_step_missed(job->session);
    else
        heed(job, fly_session_step_begin(job->session));
    if (turner->turns != turns)
        job->missed_to = step_lines_end(&job->lines);
}

/* Programs count from 1 or from 0. */
static void report(struct run_job *job, uint32_t epoch, double metric)
{
    struct fly_session *session = job->session;

    if (session->released)
        return;
    if (job->all_epochs)
        end_program(job);
    job->zero_based |= !job->reported && epoch == 0;
    if (!session_set_epoch(session, epoch + (job->zero_based ? 1 : 0)))
        return;
    job->reported = true;
    /* The program goes on, so what it said of memory before was no failure. */
    job->said = (struct memory_seen){.count = {0}};
    output_watch_progress(&job->watch);
    heed(job, fly_session_report(session, metric));
    if (session->epoch == session->epoch_newest)
        job->metric_now = metric;
}

static void take(struct run_job *job, enum step_event event)
{
    struct fly_session *session = job->session;

    if (session->released && event != STEP_OUT_OF_MEMORY)
        return;
    switch (event) {
    case STEP_BEGIN:
        begin_step(job);
        break;
    case STEP_EPOCH_BEGIN:
        fly_session_evaluation_begin(session);
        fly_session_epoch_begin(session);
        break;
    case STEP_EPOCH_END:
        fly_session_evaluation_begin(session);
        break;
    case STEP_REPORT:
        report(job, job->lines.report.epoch, job->lines.report.metric);
        break;
    case STEP_OUT_OF_MEMORY:
        session_fail(session, TRIAL_OUT_OF_MEMORY, "said by the program");
        job->oom_seen = true;
        break;
    case STEP_SESSION:
        session_release(session);
        break;
    case STEP_HOOK:
    case STEP_MALFORMED:
        break;
    }
}

/* The profile gets no more steps: its limit is restored. */
static void heed_flood(struct run_job *job)
{
    if (!job->lines.flooded || job->off[0] != '\0')
        return;
    snprintf(job->off, sizeof job->off, "%s", step_lines_flood);
    job->session->uncounted = true;
    if (job->session->limit.tuner != NULL)
        session_limit_end(job->session);
}

static bool take_lines(struct run_job *job)
{
    enum step_event event;

    step_lines_noticed(&job->lines);
    for (int i = 0; i < LINES_AT_ONCE; i++) {
        if (!step_lines_next(&job->lines, &event)) {
            heed_flood(job);
            return false;
        }
        take(job, event);
    }
    return true;
}

/* Reads the number in a group of a match. */
static bool read_group(const char *line, const regmatch_t *match, double *out_value)
{
    size_t length = (size_t)(match->rm_eo - match->rm_so);
    char text[NUMBER_TEXT];

    if (match->rm_so < 0 || length >= sizeof text)
        return false;
    memcpy(text, line + match->rm_so, length);
    text[length] = '\0';
    if (strcasecmp(text, "nan") == 0) {
        *out_value = NAN;
        return true;
    }
    return number_parse_double(text, out_value);
}

static void look_for_metric(struct run_job *job, const char *line, int stream)
{
    regmatch_t matches[3];
    double epoch = (double)job->session->epoch_newest + (job->zero_based ? 0.0 : 1.0), metric;
    size_t groups = job->metric.re_nsub;

    if (job->metric_stream >= 0 && job->metric_stream != stream)
        return;
    if (regexec(&job->metric, line, 3, matches, 0) != 0 || !read_group(line, &matches[groups], &metric))
        return;
    if (groups == 2 && (!read_group(line, &matches[1], &epoch) || !(epoch >= 0.0 && epoch < UINT32_MAX)))
        return;
    job->metric_stream = stream;
    fly_session_evaluation_begin(job->session);
    report(job, (uint32_t)epoch, metric);
}

static void look_at(struct run_job *job, const char *line, int stream)
{
    job->captured[stream].told = job->has_oom ? &job->oom : NULL;
    memory_words_line(&job->captured[stream], line, &job->said);
    job->output_lines++;
    look_for_metric(job, line, stream);
}

static void look_at_output(void *state, const char *line)
{
    look_at(state, line, 0);
}

static void look_at_errors(void *state, const char *line)
{
    look_at(state, line, 1);
}

static bool pass_output(struct run_job *job)
{
    bool again = true;

    for (int n = 0; n < PIECES_AT_ONCE && again; n++) {
        again = capture_pass(&job->capture, look_at_output, job);
        again |= capture_pass(&job->errors, look_at_errors, job);
    }
    return again;
}

/*
 * Returns one descriptor for all that the program may write to; -1 if the system does not signal
 * one of them.
 */
static int watch_all(struct run_job *job)
{
    int answers = job->session->post != NULL ? post_fd(job->session->post) : -1;
    const int sources[] = {step_lines_fd(&job->lines), capture_fd(&job->capture), capture_fd(&job->errors),
                           answers};
    const bool needed[] = {job->lines.file.file >= 0, job->capture.open, job->errors.open, answers >= 0};
    int events = epoll_create1(EPOLL_CLOEXEC);

    for (size_t i = 0; events >= 0 && i < sizeof sources / sizeof sources[0]; i++) {
        struct epoll_event event = {.events = EPOLLIN};

        if (needed[i] && (sources[i] < 0 || epoll_ctl(events, EPOLL_CTL_ADD, sources[i], &event) < 0)) {
            close(events);
            events = -1;
        }
    }
    return events;
}

/* Kills what did not end in time, including the program, whichever signals it blocks. */
static void look_after_end(struct run_job *job)
{
    if (!job->ends || mono_elapsed_s(mono_now(), job->kill_at) > 0)
        return;
    run_job_signal_all(job, SIGKILL);
    job->killed = true;
    job->kill_at = mono_after_s(mono_now(), check_s);
}

/* Does not check more often than needed. */
static void look_after_output(struct run_job *job)
{
    if (mono_elapsed_s(job->looked, mono_now()) < check_s)
        return;
    job->looked = mono_now();
    host_memory_look(&job->memory, job->child->pid);
    output_watch_tend(&job->watch);
}

static bool take_all(struct run_job *job)
{
    bool lines = take_lines(job), output = pass_output(job);

    hear(job);
    return lines || output;
}

/* Call it before what the other streams said is added. */
static void keep_what_counts(struct memory_seen *said)
{
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        said->count[kind] = memory_seen_since(said, (enum memory_kind)kind, 0);
    memset(said->withdrawn, 0, sizeof said->withdrawn);
}

/* What the program said at its very end belongs to that moment, and so does what the try took. */
static void take_rest(struct run_job *job)
{
    session_stop(job->session);
    if (job->ended != NULL)
        job->ended(job->moment_data);
    step_lines_last(&job->lines);
    while (take_lines(job))
        ;
    capture_end(&job->capture, look_at_output, job);
    keep_what_counts(&job->said);
    output_watch_end(&job->watch, &job->said);
    capture_end(&job->errors, look_at_errors, job);
    keep_what_counts(&job->said);
    session_settle(job->session);
    capture_flush(&job->capture);
}

static void show_status(struct run_job *job)
{
    char text[STATUS_TEXT_MAX];

    if (job->session->released || !status_line_is_due(&job->line))
        return;
    run_job_status(job, text);
    status_line_show(&job->line, text);
}

static void hide_status(void *state)
{
    status_line_end(state);
}

void run_job_follow(struct run_job *job, struct child *child)
{
    bool more = false;

    job->ends = job->killed = job->all_epochs = job->oom_seen = job->zero_based = job->reported = false;
    job->metric_now = NAN;
    job->missed_to = 0;
    job->said = (struct memory_seen){.count = {0}};
    memset(job->captured, 0, sizeof job->captured);
    job->output_lines = 0;
    job->metric_stream = -1;
    job->memory = (struct host_memory){.root = job->root};
    job->looked = mono_now();
    host_memory_look(&job->memory, child->pid);
    run_job_began(job);
    child->before_stop = hide_status;
    child->before_stop_state = &job->line;
    job->events = watch_all(job);
    for (;;) {
        double wait_s =
            more ? 0.0
                 : step_lines_wait_s(&job->lines,
                                     job->events >= 0 && !capture_waits(&job->capture) ? check_s : ask_s);

        if (child_wait_input(child, job->events, mono_after_s(mono_now(), wait_s)))
            break;
        child_guard_begin(child, never_turned);
        more = take_all(job);
        child_guard_end(child);
        look_after_end(job);
        run_job_reap(job);
        look_after_output(job);
        show_status(job);
    }
    status_line_end(&job->line);
    take_rest(job);
    if (job->ends)
        run_job_end_rest(job);
    if (job->events >= 0)
        close(job->events);
    if (child->signals > 0)
        close(child->signals);
}
