/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_RUN_RUN_JOB_H
#define FLYBALL_CLI_RUN_RUN_JOB_H

#include <jansson.h>
#include <math.h>
#include <regex.h>

#include "base/buffer.h"
#include "base/process_stat.h"
#include "cli/frame/call.h"
#include "cli/frame/command.h"
#include "cli/kit/progress.h"
#include "cli/measure/output_watch.h"
#include "cli/measure/run_capture.h"
#include "cli/options/knob_options.h"
#include "cli/program/child.h"
#include "cli/program/process_tree.h"
#include "cli/program/python_hook.h"
#include "cli/run/run_carbon.h"
#include "job/core/policy_choice.h"
#include "policy/batch_policy.h"
#include "train/program/host_memory.h"
#include "train/program/step_lines.h"
#include "train/session/session.h"

/*
 * The recurring half of `flyball run --job`: a session on behalf of a program, which is started
 * again until there is a model.
 *
 *     result = run_job_read(call, &job, out_error);
 *     run_job_watch(&job);
 *     run_job_reserve(&job);
 *     ... open devices and meter ...
 *     run_job_tries(&job, arguments, variable, meter, &child, out_error);
 *     run_job_text(&job, out);
 *     run_job_free(&job);
 *
 * run_job_options.c reads the options, run_job_words.c fills in the program's words and
 * variables, run_job_try.c follows one try, run_job_end.c finds out how it ended,
 * run_job_report.c reports. Every failure becomes a sentence in the report. Large: keep it in
 * static storage.
 */
enum { RUN_JOB_TEXT_MAX = 512, RUN_JOB_TRIES_MAX = 1000 };

/* How a try ended. */
enum run_job_end {
    RUN_JOB_REACHED,     /* it reached the target, or without one did all its epochs */
    RUN_JOB_NOT_REACHED, /* it did all its epochs without reaching the target */
    RUN_JOB_STOPPED,
    RUN_JOB_OUT_OF_MEMORY,
    RUN_JOB_CRASHED,
    RUN_JOB_NOT_STARTED, /* it failed before its first step */
    RUN_JOB_INTERRUPTED,
    RUN_JOB_SILENT, /* it ended well without any report */
    RUN_JOB_SPOKE,  /* it used a session of its own */
    RUN_JOB_END_COUNT
};

struct run_job_try {
    struct fly_session_status status;
    enum run_job_end end;
    int exit_status, signal; /* of the program */
    uint64_t steps;          /* that it told, or its hook */
    bool ended_by_us;
    double metric;                           /* the newest; NAN: none */
    double startup_energy_j, startup_time_s; /* before its first step; NAN: not known */
    char cause[RUN_JOB_TEXT_MAX];
};

typedef void run_job_moment(void *data);

struct run_job {
    bool wanted;
    const struct cli_call *call; /* borrowed; for warnings */
    struct fly_session_options options;
    struct session_parts parts;
    struct knob_options knobs;
    char readonly_path[CLI_READONLY_MAX];
    struct arena arena;            /* for batch sizes, and for a definition that was looked up */
    struct policy_plugins plugins; /* the policy that is given as a path, or those of the variable */
    double limits_w[FLY_POWER_SEARCH_LIMITS_MAX];
    double learning_rate; /* that suits the default batch size; NAN: not given */
    enum fly_scaling scaling;
    uint32_t seed;
    double grace_s;
    int oom_status; /* -1: none */
    bool has_metric, has_oom;
    regex_t metric, oom;

    /* options.carbon if the grid is followed, parts.keeper if an account is kept. */
    struct fly_carbon_options grid; /* from the command, or from a job on record that counts grams or money */

    struct fly_session *session;
    int reserved; /* a low number kept for the program's end of the lines; -1: none */
    struct step_lines lines;
    const char *metric_name; /* that the hook reports; borrowed; NULL: none */
    bool no_hook;
    struct python_hook hook;
    struct step_hook seen; /* what the hook in the newest try's Pythons said */
    /* Of standard output and a copy of standard error, with a pattern for metrics. */
    struct run_capture capture, errors;
    int events;                /* readable if one of these is, or if the log answers; -1: none */
    struct output_watch watch; /* of the streams that are not captured */
    const char *root;          /* path of the machine's files, for tests; "" */
    struct host_memory memory;
    struct mono_time looked;        /* when these two were last looked at */
    run_job_moment *begins, *ended; /* called at a program's start and after its end; NULL: not called */
    void *moment_data;

    /* The try under way. */
    struct child *child;
    bool ends, killed; /* ends: it must end; killed: it was killed */
    bool all_epochs;   /* it has done all its epochs, and should end by itself */
    bool oom_seen;     /* the program reported it in a line to us */
    off_t missed_to;   /* steps up to here in the file were over before they were heard of */
    struct memory_words captured[OUTPUT_STREAMS];
    uint64_t output_lines;   /* that were looked at */
    int metric_stream;       /* where the pattern matched first: its other matches count; -1: nowhere yet */
    struct memory_seen said; /* in captured output, since the last report */
    bool zero_based;         /* its first report was of epoch 0 */
    bool reported;
    double metric_now;
    struct mono_time kill_at;
    struct process_tree tree;
    struct status_line line;
    unsigned long long program_start; /* when the program began; 0: not known */

    struct run_job_try *tries; /* owned */
    size_t try_count;
    struct fly_carbon_report carbon_report; /* of the last try; size 0: it did not follow the grid */
    struct post_status kept;                /* what became of the reports at the end */
    int status;                             /* the command's exit status */
    char off[RUN_JOB_TEXT_MAX];             /* why the session could not go on; "" if it could */
};

extern const struct cli_options run_job_options;

/*
 * Reads the call's options. FLY_EUSAGE for options that contradict each other, FLY_ENOTFOUND for
 * a job that is not on record.
 */
int run_job_read(const struct cli_call *call, struct run_job *out_job, struct fly_error *out_error);

/* Takes what the account knows, and the grid that is followed. Call it before run_job_tries. */
void run_job_take_grid(struct run_job *job, const struct run_carbon *carbon);

/* Watches the output from now on. Call it while there are no threads. */
void run_job_watch(struct run_job *job);

/*
 * Keeps a descriptor of one digit free, since some shells accept no others. Call it before
 * devices are opened.
 */
void run_job_reserve(struct run_job *job);

/*
 * Runs the program until there is a model. `variable` is one more for it, "NAME=value". `status`
 * is the command's exit status, `out_child` the last program. FLY_EUSAGE for an impossible job;
 * FLY_ELIMIT and FLY_ENOMEM if no process can be made.
 */
int run_job_tries(struct run_job *job, char *const *arguments, const char *variable, struct fly_meter *meter,
                  struct child *out_child, struct fly_error *out_error);

/*
 * With FLYBALL_DISABLE=1: makes the program's words as they would be without a log. FLY_EUSAGE
 * without a default.
 */
int run_job_plain_words(const struct cli_call *call, char *const *words, char ***out_words,
                        struct fly_error *out_error);

void run_job_free(struct run_job *job);

/* Returns the words with the session's values filled in; NULL without memory. Free it as one block. */
char **run_job_words(const struct run_job *job, char *const *words);
/* Returns whether there is anything to fill in. */
bool run_job_has_marks(char *const *words);
/* Takes from the words how many tries there are, unless that is given. FLY_EUSAGE for {learning_rate} without
 * --learning-rate. */
int run_job_take_words(struct run_job *job, char *const *words, struct fly_error *out_error);
/* Makes the try's directory for a program whose words name it. */
void run_job_make_directory(const struct run_job *job, char *const *words);
/* Sets the variables for a program that is about to be forked. */
void run_job_set_variables(const struct run_job *job);

/*
 * run_job_rest.c: processes that a try leaves running. Call them before the first try, when a
 * program was made, and all the time.
 */
void run_job_adopt(void);
void run_job_began(struct run_job *job);
void run_job_reap(const struct run_job *job);
void run_job_signal_all(struct run_job *job, int signal);
/*
 * Ends the processes that the program left running: SIGTERM first, unless job->ends (then they
 * got it already), later SIGKILL.
 */
void run_job_end_rest(struct run_job *job);

/* run_job_try.c: follows the program until it has ended. */
void run_job_follow(struct run_job *job, struct child *child);

/*
 * run_job_end.c: finds how the try ended, with its cause in words, "" for none. Tells the session
 * what it cannot know: a program that failed, or that ended before its session did.
 */
enum run_job_end run_job_find_end(struct run_job *job, const struct child *child,
                                  struct run_job_try *attempt);

/* Writes the state of the try in a line for a terminal. */
void run_job_status(const struct run_job *job, char text[STATUS_TEXT_MAX]);

/* Writes how the last try ended, as the line that the report begins with; `brief`: and a line or two more. */
void run_job_answer(const struct run_job *job, bool brief, struct buffer *out);
/* Write the lines of the report for people, and the member "recurrence" for programs. */
void run_job_text(const struct run_job *job, struct buffer *out);
json_t *run_job_json(const struct run_job *job);

#endif
