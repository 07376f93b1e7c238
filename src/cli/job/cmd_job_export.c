/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a job's log: as it is, or as a trace that the simulator replays. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/atomic_file.h"
#include "base/harmless.h"
#include "base/number.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/output_path.h"
#include "cli/options/store_option.h"
#include "job/core/definition.h"
#include "job/core/policy_choice.h"
#include "job/past/history.h"
#include "job/past/trace_export.h"
#include "model/job_spec.h"
#include "policy/batch_policies.h"

enum { PATH_BYTES = 4096, UNTOLD_MAX = 1024 };

static const char *const formats[] = {"jsonl", "trace", NULL};
enum { FORMAT_JSONL, FORMAT_TRACE };
enum { ESCAPED_BYTES = 6 /* of a byte, at most */ };

static const struct cli_option options[] = {
    {.name = "format",
     .type = CLI_CHOICE,
     .placeholder = "FORMAT",
     .choices = formats,
     .default_text = "jsonl",
     .help = "The log itself, as lines of JSON; or a trace of trainings and power for 'flyball sim job'."},
    {.name = "output",
     .letter = 'o',
     .type = CLI_TEXT,
     .placeholder = "PATH",
     .help = "File for the lines, standard output if not given; directory for the files of a trace."},
};

static int write_bytes(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    FILE *stream = context;

    (void)out_error;
    fwrite(bytes, 1, count, stream);
    return ferror(stream); /* the commit reports the cause; going on is pointless */
}

/* ---- lines ---- */

static int write_lines(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    struct buffer shown;
    int code;

    if (harmless_all(bytes, count, true))
        return write_bytes(context, bytes, count, out_error);
    buffer_init(&shown, (count + 1) * ESCAPED_BYTES);
    harmless_put_json(&shown, bytes, count);
    code = shown.error < 0 ? error_no_memory(out_error)
                           : write_bytes(context, shown.data, shown.length, out_error);
    buffer_deinit(&shown);
    return code;
}

static int export_lines(const struct cli_call *call, const char *name, struct fly_error *out_error)
{
    const char *path = cli_set(call, "output") ? cli_text(call, "output") : "/dev/stdout";
    struct atomic_file file;
    struct jobs jobs;
    int code = store_option_open(call, &jobs, out_error);

    if (code != 0)
        return code;
    code = output_path_open(path, &file, out_error);
    if (code == 0) {
        code = job_export(&jobs, name, write_lines, file.stream, out_error);
        code = job_unknown_explain(&jobs, name, code, out_error);
        if (code >= 0)
            code = atomic_file_commit(&file, out_error);
        else
            atomic_file_discard(&file);
    }
    jobs_close(&jobs);
    return code;
}

/* ---- a trace ---- */

/* The files of a trace. As far as possible, they appear together or not at all. */
enum { FILE_TRAIN, FILE_POWER, FILE_JOB, FILE_LOG, FILE_COUNT };

struct trace_files {
    char gpu[JOB_TEXT_MAX];
    bool made; /* the directory, if this command made it */
    struct atomic_file files[FILE_COUNT];
};

/* "NVIDIA A100-SXM4" is "nvidia-a100-sxm4" in a file's name. */
static void name_gpu(const char *model, char gpu[JOB_TEXT_MAX])
{
    size_t length = 0;

    for (; *model != '\0' && length + 1 < JOB_TEXT_MAX; model++) {
        bool plain = isalnum((unsigned char)*model) != 0;

        if (plain || (length > 0 && gpu[length - 1] != '-'))
            gpu[length++] = (char)(plain ? tolower((unsigned char)*model) : '-');
    }
    while (length > 0 && gpu[length - 1] == '-')
        length--;
    gpu[length] = '\0';
    if (length == 0)
        snprintf(gpu, JOB_TEXT_MAX, "gpu");
}

static int open_files(const char *directory, struct trace_files *files, struct fly_error *out_error)
{
    char power[JOB_TEXT_MAX + 32];
    const char *names[FILE_COUNT] = {"summary_train.csv", power, "jobs.ini", "log.jsonl"};
    int code = 0;

    snprintf(power, sizeof power, "summary_power_%s.csv", files->gpu);
    files->made = mkdir(directory, 0777) == 0;
    if (!files->made && errno != EEXIST)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_EWRITE,
                         "'%s' cannot be made: %s; name another directory", directory, strerror(errno));
    for (int i = 0; i < FILE_COUNT && code == 0; i++) {
        char path[PATH_BYTES];

        if (snprintf(path, sizeof path, "%s/%s", directory, names[i]) >= (int)sizeof path)
            return error_set(out_error, FLY_ELIMIT, "'%.100s...': a path that long is not supported",
                             directory);
        code = atomic_file_open(path, &files->files[i], out_error);
    }
    return code;
}

/* What happened that a trace cannot express. */
struct gaps {
    uint64_t recurrences; /* those that the policy decided */
    uint64_t runs, not_chosen, failed, left, last_tries, overruled, guarded, unprofiled;
    uint64_t earlier; /* trials before the revision that holds */
    uint64_t past;    /* what came along and the policy learns from */
};

/* Counts what came along since the revision that holds began, if the policy learns from it. */
static uint64_t count_past(const struct job_history *history, size_t machine)
{
    const struct batch_policy *policy = batch_policy_find(history->policy);
    uint64_t count = 0;

    for (size_t i = 0; i < history->brought_count && (policy == NULL || policy->heeds_past); i++) {
        const struct job_brought_past *past = &history->brought[i];

        if (past->kind == PAST_REVISION)
            count = 0;
        count +=
            past->batch_count > 0 && (past->kind != PAST_HARDWARE ||
                                      strcmp(past->gpu_model, history->machines[machine].gpu_model) == 0);
    }
    return count;
}

static int count_gaps(const struct job_history *history, size_t machine, struct gaps *out_gaps,
                      struct fly_error *out_error)
{
    bool *begun =
        calloc(history->count + 1, sizeof begun[0]); /* there are at most as many recurrences as trials */
    struct gaps gaps = {0};

    if (begun == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        bool told = !row->running && outcome_observed(row->outcome) && !isnan(row->trial.energy_j) &&
                    row->stop != JOB_STOP_DEADLINE;

        if (row->machine != machine)
            continue;
        if (row->revision != history->revision) {
            gaps.earlier++;
            continue;
        }
        if (!job_reason_chosen(row->reason)) {
            gaps.not_chosen++;
            continue;
        }
        gaps.runs += told;
        gaps.failed += !told && (row->running || row->outcome != TRIAL_REFUSED);
        gaps.left += !row->running && row->outcome == TRIAL_REFUSED && row->trial.profiled;
        gaps.last_tries += row->reason == REASON_LAST_TRY;
        gaps.overruled += row->reason == REASON_DEADLINE || row->reason == REASON_BOUND ||
                          row->reason == REASON_MEMORY || row->reason == REASON_NO_CHOICE ||
                          row->reason == REASON_QUALITY || row->reason == REASON_UNASKED;
        gaps.guarded += row->reason == REASON_GUARD || row->reason == REASON_GUARD_DOUBT;
        gaps.recurrences += !begun[row->trial.recurrence];
        begun[row->trial.recurrence] = true;
    }
    free(begun);
    gaps.past = count_past(history, machine);
    *out_gaps = gaps;
    return 0;
}

/*
 * Lists what the simulator cannot know, "1 bound, 2 last tries", as a line of the job file.
 * Returns whether there is anything.
 */
static bool list_gaps(const struct job_history *history, const struct gaps *gaps, struct buffer *out)
{
    const struct {
        uint64_t count;
        const char *one, *more;
    } unsaid[] = {
        {gaps->failed, "trial without a result (it runs, crashed, expired or did not fit into memory)",
         "trials without a result (they run, crashed, expired or did not fit into memory)"},
        {gaps->left, "trial that its power profile ended", "trials that their power profiles ended"},
        {gaps->last_tries, "last try", "last tries"},
        {gaps->overruled, "overruled choice", "overruled choices"},
        {gaps->not_chosen > 0 ? gaps->guarded : 0, "choice of a guard that knew trials which are left out",
         "choices of a guard that knew trials which are left out"},
        {gaps->unprofiled, "batch size without a whole power profile",
         "batch sizes without a whole power profile"},
        {isfinite(history->objective.max_slowdown), "bound", "bounds"},
        {gaps->past, "past that came along", "pasts that came along"},
    };

    for (size_t i = 0; i < sizeof unsaid / sizeof unsaid[0]; i++) {
        if (unsaid[i].count > 0)
            buffer_printf(out, "%s%llu %s", out->length > 0 ? ", " : "", (unsigned long long)unsaid[i].count,
                          unsaid[i].count == 1 ? unsaid[i].one : unsaid[i].more);
    }
    return out->length > 0;
}

static void write_job(const struct fly_job_definition *definition, const char *untold, FILE *stream)
{
    char target[NUMBER_TEXT_MAX];

    fprintf(stream, "[%s]\ndataset = %s\nnetwork = any\noptimizer = any\n", definition->name,
            definition->name);
    fprintf(stream, "target_metric = %s\nmax_epochs = %u\ndefault_batch_size = %u\n",
            number_format(definition->target_metric, target), definition->max_epochs,
            definition->default_batch_size);
    if (untold[0] != '\0')
        fprintf(stream, "untold = %s\n", untold);
}

static void tell_gaps(const struct cli_call *call, const struct gaps *gaps, const char *untold)
{
    if (gaps->not_chosen > 0)
        cli_note(call, "%llu trial%s that the policy had no say in, controls and pinned ones, %s left out",
                 (unsigned long long)gaps->not_chosen, gaps->not_chosen == 1 ? "" : "s",
                 gaps->not_chosen == 1 ? "is" : "are");
    if (gaps->earlier > 0)
        cli_note(call, "%llu trial%s from before the revision %s left out", (unsigned long long)gaps->earlier,
                 gaps->earlier == 1 ? "" : "s", gaps->earlier == 1 ? "is" : "are");
    if (untold[0] != '\0')
        cli_note(call, "a trace has no words for what this job met (%s), so it cannot repeat the job's order",
                 untold);
}

/* In commands, the file of a plug-in of which only the name is known. */
static const char unknown_plugin[] = "PLUGIN.so";

/*
 * Returns the word of --policy for the job's policy: its name, or the path of its plug-in; `path`
 * holds PATH_MAX bytes.
 */
static const char *policy_word(const char *name, char path[PATH_MAX])
{
    struct policy_plugins plugins;
    bool found = false;

    if (batch_policy_find(name) != NULL)
        return name;
    if (policy_plugins_open(&plugins, NULL) < 0)
        return unknown_plugin;
    for (size_t i = 0; i < plugins.count && !found; i++)
        found =
            strcmp(plugins.list[i]->name, name) == 0 && realpath(plugins.opened[i].plugin.path, path) != NULL;
    policy_plugins_close(&plugins);
    return found ? path : unknown_plugin;
}

/*
 * Prints the commands that replay it: exactly, and as a trace for other policies. A guard that chose nothing
 * stays off: without the controls it could choose something now.
 */
static void tell_commands(const struct cli_call *call, const struct job_history *history, const char *gpu,
                          const struct gaps *gaps, bool exact)
{
    const struct fly_job_definition *definition = &history->definition;
    const char *directory = cli_text(call, "output");
    char path[PATH_MAX], window[sizeof " --profile-window 100.0%"];
    const char *policy = policy_word(history->policy, path);

    snprintf(window, sizeof window, " --profile-window %.3g%%", 100.0 * JOB_PROFILE_WINDOW);
    if (policy == unknown_plugin)
        cli_note(
            call,
            "the policy '%s' is a plug-in that is not known here: put the path of its file in the place of "
            "%s, and into FLYBALL_PLUGINS for 'flyball sim replay'",
            history->policy, unknown_plugin);
    cli_note(call, "decide it again from its log: flyball sim replay %s/log.jsonl", directory);
    cli_note(call,
             "%s it: flyball sim job --traces %s --gpu %s --jobs %s/jobs.ini --workload %s --policy %s%s%s "
             "--recurrences %llu --seeds %u --eta %.17g --beta %.17g --window %u --generator %s%s --guard %s",
             exact ? "replay" : "simulate", directory, gpu, directory, definition->name, policy,
             exact ? " --order recorded" : "", definition->one_at_a_time ? "" : " --overlapping",
             (unsigned long long)gaps->recurrences, definition->seed, objective_eta(&history->objective),
             definition->beta, definition->window,
             definition->generator == GENERATOR_NUMPY ? "numpy" : "philox",
             strcmp(policy, batch_policy_bayes.name) == 0 ? window : "", gaps->guarded > 0 ? "on" : "off");
}

/* Fills in `untold` with what the trace cannot express. */
static int write_trace(const struct cli_call *call, const struct job_view *view, size_t machine,
                       struct trace_files *files, struct gaps *gaps, struct buffer *untold,
                       struct fly_error *out_error)
{
    struct atomic_file *all = files->files;
    int code = open_files(cli_text(call, "output"), files, out_error);

    if (code == 0)
        code = job_export_trace(&view->jobs, view->name, machine,
                                &(struct job_trace_sinks){.train = write_bytes,
                                                          .train_context = all[FILE_TRAIN].stream,
                                                          .power = write_bytes,
                                                          .power_context = all[FILE_POWER].stream,
                                                          .out_unprofiled = &gaps->unprofiled,
                                                          .chosen_only = true},
                                out_error);
    if (code >= 0) {
        list_gaps(&view->history, gaps, untold);
        write_job(&view->history.definition, untold->data, all[FILE_JOB].stream);
        code = job_export(&view->jobs, view->name, write_bytes, all[FILE_LOG].stream, out_error);
        code = code > 0 ? 0 : code; /* the commit reports stream errors */
    }
    for (int i = 0; i < FILE_COUNT; i++) {
        if (code == 0)
            code = atomic_file_commit(&all[i], out_error);
        else
            atomic_file_discard(&all[i]);
    }
    if (code != 0 && files->made)
        (void)rmdir(cli_text(call, "output"));
    return code;
}

static int export_trace(const struct cli_call *call, const struct job_view *view, struct fly_error *out_error)
{
    const struct job_history *history = &view->history;
    struct trace_files files = {.gpu = ""};
    struct gaps gaps = {0};
    struct buffer untold;
    size_t machine = 0;
    int code = 0;

    if (history->definition.target == FLY_TARGET_NONE)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "job '%s' has no target, and a trace tells when targets are reached; export it as "
                         "jsonl",
                         view->name);
    code = job_view_machine(call, history, &machine, out_error);
    if (code == 0)
        code = count_gaps(history, machine, &gaps, out_error);
    if (code == 0 && gaps.runs == 0)
        code = error_set(out_error, FLY_EEXHAUSTED,
                         "job '%s' has no finished trial yet that its policy chose", view->name);
    if (code != 0)
        return code;
    name_gpu(history->machines[machine].gpu_model, files.gpu);
    buffer_init(&untold, UNTOLD_MAX);
    code = write_trace(call, view, machine, &files, &gaps, &untold, out_error);
    if (code == 0) {
        cli_note(call, "%llu run%s in '%s'", (unsigned long long)gaps.runs, gaps.runs == 1 ? "" : "s",
                 cli_text(call, "output"));
        tell_gaps(call, &gaps, untold.data);
        tell_commands(call, history, files.gpu, &gaps, untold.length == 0);
    }
    buffer_deinit(&untold);
    return code;
}

static int job_export_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct job_view view;
    const char *name;
    int code = job_view_name(call, &name, out_error);

    if (code < 0)
        return code;
    if (cli_choice(call, "format") == FORMAT_JSONL)
        return export_lines(call, name, out_error);
    if (!cli_set(call, "output"))
        return cli_usage(call, out_error, "a trace is several files; name a directory with --output");
    code = job_view_read(call, 0, &view, out_error);
    if (code < 0)
        return code;
    code = export_trace(call, &view, out_error);
    job_view_close(&view);
    return code;
}

const struct cli_command cmd_job_export = {
    .words = "job export",
    .summary = "take the log of a recurring job along",
    .paragraphs =
        {"With jsonl, the log as it is: one JSON object for each event, which 'flyball job import' takes "
         "again.",
         "With trace, a directory with summary_train.csv and summary_power_GPU.csv in the public trace "
         "format, jobs.ini for --jobs of 'flyball sim job', and log.jsonl, the log. From the log 'flyball "
         "sim "
         "replay' takes every decision again, exactly. On the trace the simulator tries other policies, etas "
         "and "
         "seeds on the own history; with --order recorded it takes the decisions of the live job too, unless "
         "there was something that a trace has no words for: then a note names that, and --order recorded is "
         "refused.",
         "Time and power of an epoch are the profile's, or where a batch size has none, the means of its "
         "trials under one limit: where nothing set one, the highest. Without any of these for the "
         "default batch size there is no trace."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&job_hardware_option, &store_options},
    .operands = "JOB",
    .operand_maximum = 1,
    .examples = {{"flyball job export digits --output digits.jsonl", "keep what was observed"},
                 {"flyball job export digits --format trace --output traces",
                  "make a trace for the simulator"}},
    .run = job_export_run,
};
