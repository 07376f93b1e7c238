/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds all processes that a try started, however far they are from its program: a daemon has
 * another parent, session and group, and still uses the GPU. This process is the subreaper of
 * what it starts, so such a process becomes its child when the parent ends.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/wait.h"

#include "cli/run/run_job.h"

enum { ROUNDS_MAX = 100 };

static const double between_looks_s = 0.03;

void run_job_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void run_job_began(struct run_job *job)
{
    struct process_stat stat;

    job->tree.count = 0;
    job->program_start = process_stat_read(job->child->pid, &stat) ? stat.start : 0;
}

static void find_all(struct run_job *job)
{
    if (!job->child->ended)
        process_tree_find(job->child->pid, &job->tree);
    if (job->program_start > 0)
        process_tree_find_adopted(job->program_start, &job->tree);
}

void run_job_signal_all(struct run_job *job, int signal)
{
    find_all(job);
    process_tree_signal(&job->tree, signal);
}

void run_job_reap(const struct run_job *job)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
           (info.si_pid != job->child->pid || job->child->ended))
        (void)waitpid(info.si_pid, NULL, WNOHANG);
}

/* Somebody asked this process to end: it does not wait for what is left, and begins no other try. */
static bool is_hurried(const struct run_job *job)
{
    int signal = mono_signal(&job->child->waited, NULL, mono_after_s(mono_now(), between_looks_s));
    bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;

    if (ends)
        raise(signal);
    return ends;
}

static bool any_left(struct run_job *job)
{
    job->tree.count = 0;
    find_all(job);
    return process_tree_lives(&job->tree);
}

void run_job_end_rest(struct run_job *job)
{
    bool told = job->ends;

    run_job_reap(job);
    if (!told && any_left(job)) {
        job->kill_at = mono_after_s(mono_now(), job->grace_s);
        process_tree_signal(&job->tree, SIGTERM);
    }
    while (any_left(job) && mono_elapsed_s(mono_now(), job->kill_at) > 0 && !is_hurried(job))
        run_job_reap(job);
    /* They may still be starting others. */
    for (int i = 0; i < ROUNDS_MAX && any_left(job); i++) {
        process_tree_signal(&job->tree, SIGKILL);
        mono_sleep_s(between_looks_s);
    }
    run_job_reap(job);
}
