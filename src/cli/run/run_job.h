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

/* Rows of the option table. */
extern const char *const run_job_directions[], *const run_job_scalings[];
/* clang-format off */
#define RUN_JOB_OPTIONS \
    {.name = "job", .often = true, .type = CLI_TEXT, .placeholder = "NAME", \
     .help = "The recurring job that this run is a submission of: start the program with the batch size and power " \
             "limit that its log proposes, and start it again after a try that failed. With --tune: name of the job " \
             "in saved profiles, and no more."}, \
    {.name = "tries", .often = true, .type = CLI_INTEGER, .placeholder = "N", .minimum = 0, .maximum = RUN_JOB_TRIES_MAX, \
     .help = "With --job: how often the program may be started; the last time with the best known choice, and so " \
             "the only time. 0: once, and who started this starts it again after status 75. Default: 3 if the " \
             "command uses {try_directory}, so that it is safe; else 1."}, \
    {.name = "batch-sizes", .often = true, .type = CLI_TEXT, .placeholder = "LIST", \
     .help = "With --job: batch sizes to choose from, of all ranks together, as in 32,64,128. Without this and the " \
             "following the job is the one on record."}, \
    {.name = "default-batch-size", .often = true, .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = UINT32_MAX, \
     .help = "With --job: the one that would be used without Flyball."}, \
    {.name = "target-metric", .often = true, .type = CLI_REAL, .placeholder = "VALUE", .minimum = -INFINITY, .maximum = INFINITY, \
     .help = "With --job: training is done when the metric reaches this. Without it every run has --max-epochs " \
             "epochs, and the power limit alone is tuned."}, \
    {.name = "metric", .type = CLI_CHOICE, .placeholder = "WAY", .choices = run_job_directions, \
     .default_text = "rises", .help = "With --job: which way the metric goes as training gets on."}, \
    {.name = "target-hold", .type = CLI_INTEGER, .placeholder = "K", .minimum = 1, .maximum = 1000000, \
     .default_text = "1", \
     .help = "With --job: the metric has to reach the target in so many reports in a row, since a noisy one may " \
             "reach it by luck."}, \
    {.name = "best-so-far", .type = CLI_FLAG, \
     .help = "With --job: the metric that counts is the best one reported so far, as of a program that keeps its " \
             "best model."}, \
    {.name = "report-every-samples", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = UINT32_MAX, \
     .help = "With --job: an epoch is so many samples, counted from the steps that the program tells, for a program " \
             "that evaluates after so many steps whatever the batch size is. If not given, each report ends an " \
             "epoch."}, \
    {.name = "report-every-steps", .type = CLI_INTEGER, .placeholder = "K", .minimum = 1, .maximum = UINT32_MAX, \
     .help = "With --job: the program evaluates after so many steps whatever the batch size is. Each evaluation then " \
             "counts as so many steps where the program tells none, and an epoch is the samples of so many steps at " \
             "the default batch size, or those of --report-every-samples."}, \
    {.name = "max-metric-loss", .type = CLI_REAL, .placeholder = "LOSS", .minimum = 0, .above_minimum = true, \
     .maximum = INFINITY, \
     .help = "With --job and --train-on: a batch size whose final metric is worse than the default's by more than " \
             "this, told at 95 %, is not run any more. If not given, the final metric decides nothing."}, \
    {.name = "max-epochs", .often = true, .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 1000000, \
     .help = "With --job: epochs that a try may have at most."}, \
    {.name = "train-on", .type = CLI_FLAG, \
     .help = "With --job: do not end the program when it has reached its target."}, \
    {.name = "beta", .type = CLI_REAL, .placeholder = "FACTOR", .minimum = 0, .above_minimum = true, \
     .maximum = INFINITY, .infinite = true, .default_text = "2", \
     .help = "With --job and another policy than bayes: a try is stopped when its score is so many times the lowest so far; " \
             "inf for never. bayes stops a try where going on takes more than it is worth."}, \
    {.name = "policy", .type = CLI_TEXT, .placeholder = "NAME", .default_text = "auto", \
     .help = "With --job: how batch sizes are chosen: bayes, default, grid, zeus or zeus-server, or the path of a plug-in " \
             "(a shared object); with a path later submissions need --job and --policy alone. auto: as on record, and " \
             "for a new job bayes. 'flyball job set' changes it later."}, \
    {.name = "window", .type = CLI_INTEGER, .placeholder = "N", .minimum = 0, .maximum = POLICY_WINDOW_MAX, \
     .default_text = "0", \
     .help = "With --job and --policy zeus: how many results of a batch size count, newest first, for a job whose " \
             "scores change; 0 for all."}, \
    {.name = "no-default", .type = CLI_FLAG, \
     .help = "With --job: --default-batch-size is only where the search begins, and no default worth calling one: " \
             "nothing is compared with it."}, \
    {.name = "recurrences-left", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 1000000000, \
     .help = "With --job: how many submissions there will be, with this one. Only what pays within them is " \
             "explored. It holds for those that come, until another number is given."}, \
    {.name = "control-every", .type = CLI_INTEGER, .placeholder = "K", .minimum = 0, .maximum = 1000000, \
     .default_text = "0", \
     .help = "With --job: each K-th submission runs the default at the highest limit, for comparison; 0 for none."}, \
    {.name = "like", .type = CLI_TEXT, .placeholder = "JOB", \
     .help = "With --job: a job that needs about as many epochs at each batch size, whose past a new job learns from. " \
             "The first run is the default all the same, and the first run of every other batch size is bounded."}, \
    {.name = "revision", .type = CLI_TEXT, .placeholder = "TEXT", \
     .help = "With --job: names the state of script, data and hyper-parameters. With another one than on record " \
             "learning begins anew, and what was observed before is a hint alone."}, \
    {.name = "store", .type = CLI_TEXT, .placeholder = "ADDRESS", .key = "store", .sensitive = true, \
     .help = "Where jobs are kept: a file, postgresql://..., or a service: unix:PATH, http://HOST:PORT or " \
             "https://HOST:PORT. If not given, a file of the user's own."}, \
    {.name = "finish-by", .type = CLI_TEXT, .placeholder = "TIME", \
     .help = "With --job: nothing is explored that could miss this time: 07:30, or 2026-11-22T07:30. With --tune and " \
             "--carbon or --price: the training ends by then, in place of --max-slowdown."}, \
    {.name = "learning-rate", .type = CLI_REAL, .placeholder = "RATE", .minimum = 0, .above_minimum = true, \
     .maximum = INFINITY, \
     .help = "With --job: the learning rate that suits the default batch size, for {learning_rate}."}, \
    {.name = "scaling", .type = CLI_CHOICE, .placeholder = "RULE", .choices = run_job_scalings, \
     .default_text = "linear", \
     .help = "With --job: how the learning rate follows the batch size: linear suits SGD, square-root adaptive " \
             "optimisers."}, \
    {.name = "seed", .type = CLI_INTEGER, .placeholder = "N", .minimum = 0, .maximum = UINT32_MAX, \
     .default_text = "1", .help = "With --job: {seed} is this plus the trial's number."}, \
    {.name = "metric-regex", .type = CLI_TEXT, .placeholder = "REGEX", \
     .help = "With --job: lines of standard output or standard error that tell of an epoch: an extended regular " \
             "expression whose group is the metric, or whose two groups are epoch and metric. Lines of the stream " \
             "where it matches first count."}, \
    {.name = "metric-name", .often = true, .type = CLI_TEXT, .placeholder = "NAME", \
     .help = "With --job: the metric that a Trainer of Hugging Face's or of Lightning's logs under this name, as in " \
             "eval_accuracy or val_acc; the start-up module for Python reports it."}, \
    {.name = "oom-regex", .type = CLI_TEXT, .placeholder = "REGEX", \
     .help = "With --job: one more line of output or errors that says that the batch size does not fit, if the " \
             "program then fails. The words of PyTorch, JAX, TensorFlow, cuDNN and cuBLAS are known without."}, \
    {.name = "oom-status", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = 255, \
     .help = "With --job: the exit status that says so."}, \
    {.name = "grace", .type = CLI_REAL, .placeholder = "SECONDS", .minimum = 0, .maximum = 86400, \
     .default_text = "30", \
     .help = "With --job: a try that has to end gets SIGTERM, and so much later SIGKILL, with all it started."}, \
    {.name = "tries-directory", .type = CLI_TEXT, .placeholder = "PATH", .default_text = "flyball-tries", \
     .help = "With --job: where each try has a directory of its own, {try_directory}, for checkpoints. It is new for " \
             "each try, and the same for another attempt of a try, as after a requeue."}, \
    {.name = "power-limits", .type = CLI_TEXT, .placeholder = "LIST", \
     .help = "With --job: power limits to try, in W, as in 400,300,200; if not given, all that the GPUs take in " \
             "steps of 25."}, \
    {.name = "leave-limits", .type = CLI_FLAG, .help = "With --job: turn no power limit."}
/* clang-format on */

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
