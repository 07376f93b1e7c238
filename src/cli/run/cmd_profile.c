/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `flyball profile`: measures what each power limit does to a step of a program. Here the program
 * only serves the measurement, so its standard output goes to standard error and ours holds only
 * the profile. Otherwise the program runs as usual, and no failure of measuring stops it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/disabled.h"
#include "base/error.h"
#include "cli/measure/run_result.h"
#include "cli/options/knob_options.h"
#include "cli/options/open_devices.h"
#include "cli/options/output_path.h"
#include "cli/program/child.h"
#include "cli/run/profile_result.h"
#include "cli/run/run_commands.h"
#include "cli/run/run_report.h"
#include "train/program/step_file.h"
#include "train/tuner/saved_profile.h"

/*
 * The longest time that the program waits until the devices are open, and that this process waits
 * for a driver after the program's end.
 */
static const double patience_s = 60;

/* From sysexits.h, as in `flyball power`: the same command may work another time. */
enum { STATUS_ANOTHER_TIME = 75, LOWEST_SAVED = 3 };

static const char never_opened[] =
    "flyball: no profile: the devices could not be opened while the program ran; see 'flyball doctor'\n";
static const char never_ended[] =
    "flyball: no profile: a driver did not answer after the program had ended; see 'flyball doctor'\n";

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS(
        "If not given, those that the program will see, by CUDA_VISIBLE_DEVICES and its like."),
    {.name = "profile-steps",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 2,
     .maximum = 100000,
     .default_text = "40",
     .help = "Steps to measure under each limit, at least."},
    {.name = "knob",
     .type = CLI_CHOICE,
     .placeholder = "KNOB",
     .choices = run_tune_profile_knobs,
     .default_text = "auto",
     .help = "What is turned: the power limit, a ceiling on the GPU clock, both, or the limit and the clock "
             "where the limit may not be set."},
    RUN_TUNE_OPTION_TOLERANCE(""),
    {.name = "eta",
     .type = CLI_REAL,
     .placeholder = "WEIGHT",
     .minimum = 0,
     .maximum = 1,
     .default_text = "0.5",
     .help = "Weight of energy against time in the score, from 0 (time) to 1 (energy)."},
    {.name = "max-slowdown",
     .type = CLI_TEXT,
     .placeholder = "BOUND",
     .default_text = "5%",
     .help =
         "Of the choices within a bound: a step takes at most so much more time than at the highest limit, "
         "3%, 1.03x or none."},
    {.name = "output",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Save the valid points to this file, for 'flyball run --tune --profile'."},
    {.name = "profile-directory",
     .type = CLI_TEXT,
     .placeholder = "DIR",
     .help = "Save them in this directory by GPUs, driver, --job and --batch-size, for 'flyball run --tune "
             "--profile-directory'."},
    RUN_TUNE_OPTION_NO_HOOK(""),
    RUN_TUNE_OPTION_JOB(""),
    RUN_TUNE_OPTION_BATCH_SIZE(""),
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw energy over time of a step, and what is best, into this SVG file."},
};

/* The program's standard output becomes this process's standard error. */
static int fork_program(struct child *child, char *const *words, struct fly_error *out_error)
{
    int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, LOWEST_SAVED);
    int result;

    if (saved >= 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    result = child_fork(child, words, patience_s, out_error);
    if (saved < 0)
        return result;
    (void)dup2(saved, STDOUT_FILENO);
    close(saved);
    return result;
}

/* Reports files that could not be written before the steps are spent. */
static int check_files(const struct cli_call *call, struct fly_error *out_error)
{
    static const char *const names[] = {"output", "svg"};
    char path[OUTPUT_PATH_MAX];
    int code = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && code == 0; i++) {
        if (cli_set(call, names[i]))
            code = output_path_expand(cli_text(call, names[i]), path, out_error);
        if (code == 0 && cli_set(call, names[i]))
            code = run_output_check(path, out_error);
    }
    return code;
}

static int save(const struct cli_call *call, const struct profile_result *result, struct fly_error *out_error)
{
    const char *directory = cli_text(call, "profile-directory");
    char path[PROFILE_PATH_MAX], output[OUTPUT_PATH_MAX];
    int code = 0;

    if (result->valid == 0)
        return 0;
    if (cli_set(call, "output")) {
        code = output_path_expand(cli_text(call, "output"), output, out_error);
        if (code == 0)
            code = profile_result_save(result, output, out_error);
    }
    if (code == 0 && directory != NULL)
        code = profile_result_save_in(result, directory, path, out_error);
    if (code == 0 && directory != NULL)
        cli_note(call, "saved in '%s'", path);
    return code;
}

static int draw(const struct cli_call *call, const struct profile_result *result, struct fly_error *out_error)
{
    struct atomic_file file;
    int code;

    if (!cli_set(call, "svg") || result->valid == 0)
        return 0;
    code = output_path_open(cli_text(call, "svg"), &file, out_error);
    return code == 0 ? profile_plot_commit(result, &file, out_error) : code;
}

/*
 * Shows all that was asked for, even if one of them fails, since the steps are spent. Returns the
 * first failure, or 0.
 */
static int show(const struct cli_call *call, const struct profile_result *result, struct fly_error *out_error)
{
    struct fly_error errors[3];
    int codes[3];

    codes[0] = profile_report_emit(call, result, &errors[0]);
    if (fflush(cli_out(call)) != 0 && codes[0] == 0)
        codes[0] = error_set(&errors[0], FLY_EWRITE, "standard output cannot be written");
    codes[1] = save(call, result, &errors[1]);
    codes[2] = draw(call, result, &errors[2]);
    for (int i = 0; i < 3; i++) {
        if (codes[i] < 0)
            return error_set(out_error, codes[i], "%s", errors[i].text);
    }
    return 0;
}

/* Returns the program's status if it failed; else whether there is a profile. */
static int status_of(const struct child *child, const struct profile_result *result)
{
    int code = result->tune->off_code;

    if (child->status != 0 || result->complete)
        return child->status;
    return code == FLY_EPERM || code == FLY_EUNSUPPORTED ? fly_error_exit_status(code) : STATUS_ANOTHER_TIME;
}

/* Lets the waiting program start, and measures its steps. */
static int measure(const struct cli_call *call, struct child *child, char *const *words,
                   struct metered_devices *devices, struct run_tune *tune, struct fly_error *out_error)
{
    struct profile_result result = {.tune = tune};
    int code = 0;

    if (child_start(child, "") < 0) {
        program_say_not_run(call, words[0], child->exec_errno, child->status);
        return 0;
    }
    run_tune_wait(tune, child, &devices->list, devices->meter);
    if (tune->over) {
        profile_result_of(tune, &result);
        code = show(call, &result, out_error);
        if (!child->ended)
            cli_note(call, "the program goes on, at the limit that stood before");
        run_tune_wait(tune, child, &devices->list, devices->meter);
    }
    child_guard_begin(child, never_ended);
    run_tune_end(tune);
    leftovers_repair(call, &devices->list, LEFTOVERS_AFTER_GUARD);
    child_guard_end(child);
    if (!tune->over) {
        profile_result_of(tune, &result);
        code = show(call, &result, out_error);
    }
    cli_exit_with(call, status_of(child, &result));
    return code;
}

static int profile_program(const struct cli_call *call, char *const *words, struct fly_error *out_error)
{
    static struct metered_devices devices; /* both are large; the program runs one command */
    static struct run_tune tune;
    struct child child;
    int result = run_tune_profile(call, &tune, out_error);

    step_file_keep_low();
    if (result == 0)
        result = check_files(call, out_error);
    if (result < 0)
        return result;
    run_tune_prepare(&tune);
    result = fork_program(&child, words, out_error);
    run_tune_forked(&tune);
    if (result < 0)
        return result;
    child_guard_begin(&child, never_opened);
    result = metered_devices_open(call, &devices, out_error);
    child_guard_end(&child);
    if (result == 0 && devices.meter == NULL)
        result = error_set(out_error, devices.fault.code, "%s", devices.fault.text);
    if (result == 0)
        result = measure(call, &child, words, &devices, &tune, out_error);
    else
        child_abandon(&child);
    child_guard_begin(&child, "");
    metered_devices_close(&devices);
    child_guard_end(&child);
    if (result == 0)
        child_follow(&child);
    return result;
}

static int profile_run(const struct cli_call *call, struct fly_error *out_error)
{
    char **words;
    int result;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no program to run; name one behind --");
    words = program_words(call, cli_operand_count(call), cli_operand);
    if (words == NULL)
        return error_no_memory(out_error);
    result = disabled_by_user() ? program_replace(call, words) : profile_program(call, words, out_error);
    free(words);
    return result;
}

const struct cli_command cmd_profile = {
    .words = "profile",
    .summary = "measure what each limit or clock does to a program's steps",
    .paragraphs =
        {"Runs a program that reports its steps, tries every power limit of its GPUs on them, from the "
         "highest "
         "to the lowest, and prints power, time and energy of a step under each, and which limit is best: "
         "for "
         "energy, time and score, and within --max-slowdown. Of two that are equally good the higher counts. "
         "With --knob clock it tries ceilings on the clock, and with --knob both limits and then, under the "
         "highest limit, ceilings.",
         "The program appends a line for each step to the file that FLYBALL_STEPS names, as "
         "under 'flyball run --tune'. When the last limit is measured the profile is printed, what stood "
         "before stands again, and the program goes on; a guard process puts it back also after kill -9. "
         "Should the program end before, the points that were measured are printed and saved.",
         "The program's standard output goes to standard error: standard output holds the profile alone, in "
         "the form that --format says. A limit at which the driver did not hold to what was set, or during "
         "which a GPU was too hot or braked from outside, is marked and never the best; one that never bound "
         "is as good as none, which a mark says too.",
         "With FLYBALL_DISABLE=1 the program takes the place of this one at once."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .operands = "-- PROGRAM [ARGUMENT...]",
    .runs_program = true,
    .exit_status =
        "That of the program where it is not 0, and where the profile is complete. Otherwise, after a "
        "program "
        "that ended well: 75 when it ended before every limit was measured, reported no steps, or the GPUs "
        "are "
        "in use or held; 77 without permission; 69 where no GPU has a limit. 126, 127 and 128 and more are "
        "as "
        "under flyball-run(1). When the devices cannot be measured or a file not be written the program does "
        "not start, and the status is as in flyball(1).",
    .examples =
        {{"flyball profile -- python train.py", "list what each limit does to a step"},
         {"flyball profile --max-slowdown 5% --svg profile.svg --output profile.json -- python train.py",
          "draw it, and save it for 'flyball run --tune --profile profile.json'"}},
    .outputs = {&profile_ends_quantities, &profile_quantities},
    .run = profile_run,
};
