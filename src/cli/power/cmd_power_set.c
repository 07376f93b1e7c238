/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets power limits: permanently, for a time, or around a program. Only in the first case the
 * user restores them; otherwise the guard does, whatever happens to this process.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/disabled.h"
#include "base/error.h"
#include "cli/options/open_devices.h"
#include "cli/power/power_commands.h"
#include "cli/power/power_turning.h"
#include "cli/program/child.h"

/* How long the program waits for a driver that does not answer. */
static const double patience_s = 60;

/* Printed if a call into the driver does not return. */
static const char never_set[] =
    "flyball: a driver did not answer while the program ran; see 'flyball doctor', and "
    "'flyball power get' for what the limits are\n";

static const char never_back[] =
    "flyball: a driver did not answer when the limit was to be put back; the guard "
    "process goes on trying, and 'flyball power restore' does so later\n";

static void say_set(const struct cli_call *call, const struct power_turning *turning)
{
    for (size_t i = 0; i < turning->gpus.count; i++) {
        const struct knob_report *report = knob_report(turning->knob, i);
        unsigned index = turning->gpus.devices[i]->info.index;
        char before[POWER_LIMIT_TEXT_MAX], now[POWER_LIMIT_TEXT_MAX];
        char profiles_before[WORKLOAD_TEXT_MAX], profiles[WORKLOAD_TEXT_MAX];

        if (report->set_mw != 0)
            cli_note(call, "GPU %u: %s until the program has ended, %s before", index,
                     power_limit_text(report->set_mw, now), power_limit_text(report->previous_mw, before));
        if (report->workloads_asked)
            cli_note(call, "GPU %u: workload profiles %s until the program has ended, %s before", index,
                     workload_text(&report->workloads, profiles),
                     workload_text(&report->workloads_before, profiles_before));
    }
}

/* Waits until the program has ended, and checks the limits as long as one is in force. */
static void wait_for(const struct cli_call *call, struct child *child, struct power_turning *turning)
{
    bool stands = turning != NULL;

    while (stands && !child_wait_until(child, mono_after_s(mono_now(), power_check_s))) {
        child_guard_begin(child, never_back);
        stands = power_turning_check(call, turning);
        child_guard_end(child);
    }
    child_wait(child);
}

/* Lets the waiting program start; `turning` is NULL if no limit is set. */
static void run(const struct cli_call *call, struct child *child, char *const *words,
                struct power_turning *turning)
{
    struct fly_error error;

    if (child_start(child, "") < 0)
        program_say_not_run(call, words[0], child->exec_errno, child->status);
    else
        cli_exit_with(call, child->status);
    if (!child->ended) {
        wait_for(call, child, turning);
        cli_exit_with(call, child->status);
    }
    child_guard_begin(child, never_back);
    if (turning != NULL)
        power_turning_end(call, turning, &error);
    child_guard_end(child);
    child_follow(child);
}

/* Returns whether the program must not start: the limit makes no sense, or the program requires it. */
static bool keeps_program(const struct cli_call *call, int code)
{
    return code == FLY_EUSAGE || (code < 0 && cli_flag(call, "require"));
}

/* Returns whether the program has stopped waiting and runs. */
static bool has_started(const struct child *child)
{
    return mono_elapsed_s(child->forked, mono_now()) >= patience_s;
}

static int run_words(const struct cli_call *call, const struct power_request *request, char *const *words,
                     struct power_turning *turning, struct fly_error *out_error)
{
    struct child child;
    int result = child_fork(&child, words, patience_s, out_error);

    if (result < 0 && keeps_program(call, result))
        return result;
    if (result < 0) {
        cli_warn(call, "no limit is set: %s", out_error->text);
        return program_replace(call, words);
    }
    /* If the reader of stderr has left, neither this process nor the program ends because of it. */
    signal(SIGPIPE, SIG_IGN);
    child_guard_begin(&child, never_set);
    result = power_turning_begin(call, request, false, turning, out_error);
    child_guard_end(&child);
    if (keeps_program(call, result) && !has_started(&child)) {
        child_abandon(&child);
        return power_refused(call, result, out_error);
    }
    if (result < 0)
        cli_warn(call, "%s; the program runs at the limit that stands", out_error->text);
    else
        say_set(call, turning);
    run(call, &child, words, result < 0 ? NULL : turning);
    return 0;
}

/*
 * Runs the call's program with its limits set, and restores them when it has ended. The exit
 * status is the program's. If the limits cannot be set, it warns and runs the program anyway.
 * With --require, or for a limit outside a GPU's range, it does not run the program and returns
 * the code. `turning` is the caller's storage.
 */
static int power_around(const struct cli_call *call, const struct power_request *request,
                        struct power_turning *turning, struct fly_error *out_error)
{
    char **words = program_words(call, cli_program_count(call), cli_program_word);
    int result;

    if (words == NULL)
        return error_no_memory(out_error);
    result = disabled_by_user() ? program_replace(call, words)
                                : run_words(call, request, words, turning, out_error);
    free(words);
    return result;
}

static const struct cli_option options[] = {
    DEVICE_OPTION_GPUS("If not given, those that a program started here would see, by CUDA_VISIBLE_DEVICES "
                       "and its like."),
    {.name = "for",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help =
         "Keep running for this time, such as 90s, 15min, 2h or 1h30min, and turn back then; Ctrl-C turns "
         "back at once."},
    {.name = "profile",
     .type = CLI_TEXT,
     .placeholder = "LIST",
     .help = "Request exactly these workload power profiles, with a limit or without one: names as "
             "'flyball power get' shows them, or numbers, such as MAX_Q,LLM_TRAINING; none for none."},
    {.name = "level",
     .type = CLI_TEXT,
     .placeholder = "WORD",
     .help = "Set the performance level of AMD's GPUs, with a limit or without one: auto, low, high, "
             "stable_std, stable_peak, stable_min_mclk or stable_min_sclk."},
    {.name = "require",
     .type = CLI_FLAG,
     .help = "Start the program only when the limit of every GPU could be set."},
};

static struct power_turning turning; /* large */

static int set_to_stay(const struct cli_call *call, const struct power_request *request,
                       struct fly_error *out_error)
{
    char list[POWER_NAMES_MAX], put_back[POWER_NAMES_MAX + 64];
    int result = power_turning_begin(call, request, true, &turning, out_error);
    int ended;

    if (result < 0)
        return result;
    snprintf(put_back, sizeof put_back, "flyball power restore --kept -i %s",
             power_gpus_list(&turning.gpus, NULL, list));
    result = power_turning_emit(call, &turning, "flyball.power.set/2", put_back, out_error);
    ended = power_turning_end(call, &turning, out_error);
    cli_note(call,
             "this stays when the command has ended, until the driver is unloaded; '%s' puts back what stood "
             "before",
             put_back);
    return result < 0 ? result : ended;
}

static int set_for(const struct cli_call *call, const struct power_request *request, double time_s,
                   struct fly_error *out_error)
{
    struct mono_time end = mono_after_s(mono_now(), time_s);
    struct mono_time next = mono_now();
    struct stop_signals stop;
    bool stands = true;
    int result, ended;

    stop_signals_hold(&stop);
    result = power_turning_begin(call, request, false, &turning, out_error);
    if (result == 0) {
        result = power_turning_emit(call, &turning, "flyball.power.set/2", NULL, out_error);
        cli_note(call, "turned back in %s, or at Ctrl-C", cli_text(call, "for"));
        while (result == 0 && stands && next.ns < end.ns && !stop_signals_wait(&stop, next)) {
            stands = power_turning_check(call, &turning);
            next = mono_after_s(mono_now(), power_check_s);
        }
        if (result == 0 && stands)
            stop_signals_wait(&stop, end);
        ended = power_turning_end(call, &turning, out_error);
        result = result < 0 ? result : ended;
        if (!stands)
            cli_exit_with(call, POWER_STATUS_IN_USE);
    }
    stop_signals_release(&stop);
    return result;
}

/* What the user asked for. */
struct wanted {
    struct power_request request; /* of the next two */
    struct power_wish limit;
    struct workload_set workloads;
    double time_s; /* 0: to stay */
};

static int read_request(const struct cli_call *call, struct wanted *out_wanted, struct fly_error *out_error)
{
    const char *profiles = cli_text(call, "profile"), *level = cli_text(call, "level");
    int found = level != NULL ? device_level_find(level) : KNOB_NO_LEVEL;

    if (cli_operand_count(call) == 0 && profiles == NULL && level == NULL)
        return cli_usage(call, out_error,
                         "no limit given; name it in watts, or as a share of the highest, 60%%");
    if (cli_operand_count(call) > 0 && !power_wish_parse(cli_operand(call, 0), &out_wanted->limit))
        return cli_usage(
            call, out_error,
            "bad limit '%s': expected watts, such as 150 or 187.5W, or a share of the highest limit "
            "above 0%% and up to 100%%",
            cli_operand(call, 0));
    if (profiles != NULL && !workload_parse(profiles, &out_wanted->workloads))
        return cli_value_error(call, "profile", profiles,
                               "names or numbers of workload power profiles, such as MAX_Q,LLM_TRAINING or "
                               "13, or none",
                               out_error);
    if (level != NULL && !device_level_is_settable(found))
        return cli_value_error(call, "level", level,
                               "a performance level that can be put back: auto, low, high, stable_std, "
                               "stable_peak, stable_min_mclk or stable_min_sclk",
                               out_error);
    out_wanted->request = (struct power_request){
        .limit = cli_operand_count(call) > 0 ? &out_wanted->limit : NULL,
        .workloads = profiles != NULL ? &out_wanted->workloads : NULL,
        .level = found,
    };
    return 0;
}

static int read_values(const struct cli_call *call, struct wanted *out_wanted, struct fly_error *out_error)
{
    const char *time = cli_text(call, "for");
    int code = read_request(call, out_wanted, out_error);

    if (code < 0)
        return code;
    if (time != NULL && !span_parse(time, &out_wanted->time_s))
        return cli_value_error(call, "for", time, "a time such as 90s, 15min, 2h or 1h30min, at most a year",
                               out_error);
    if (time != NULL && cli_program_count(call) > 0)
        return cli_usage(
            call, out_error,
            "--for and a program are two ends for one limit; keep one of them, or run the program "
            "under timeout(1)");
    if (cli_flag(call, "require") && cli_program_count(call) == 0)
        return cli_usage(call, out_error,
                         "--require is about a program, and there is none; name one behind --");
    return 0;
}

static int power_set_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct wanted wanted = {.time_s = 0};
    int result = read_values(call, &wanted, out_error);

    if (result < 0)
        return result;
    if (cli_program_count(call) > 0)
        return power_around(call, &wanted.request, &turning, out_error);
    if (disabled_by_user()) {
        cli_warn(call, "FLYBALL_DISABLE=1 is set, so no limit is");
        return 0;
    }
    result = wanted.time_s > 0 ? set_for(call, &wanted.request, wanted.time_s, out_error)
                               : set_to_stay(call, &wanted.request, out_error);
    return power_refused(call, result, out_error);
}

const struct cli_command cmd_power_set = {
    .words = "power set",
    .summary = "set power limits, to stay, for a time or around a program",
    .paragraphs =
        {"Sets the power limit of every chosen GPU, or of none when one of them refuses. The limit is in "
         "watts, "
         "or a share of each GPU's highest limit; it has to lie in the GPU's range, which 'flyball power "
         "get' "
         "shows.",
         "With --profile it requests workload power profiles, which boards have since NVIDIA's Blackwell: "
         "settings that a driver makes for a kind of work. A board enforces no profile that conflicts with "
         "another of higher priority; a warning says so.",
         "With --level it sets the performance level of AMD's GPUs, which says how a GPU chooses its clocks. "
         "A GPU whose level comes with clocks that somebody set is left as it is.",
         "Alone the command ends, and what it set stays until it is changed or the driver is unloaded; that "
         "is "
         "said, with the command that puts back what stood before. Persistence mode is turned on where it is "
         "off, since a driver without a user forgets limits.",
         "With --for, or with a program behind --, a small guard process puts back what stood before at the "
         "end: of the time, of the program, or of this process however it ends, kill -9 included, within a "
         "second. Where the guard dies too, the next command of "
         "Flyball's that opens GPUs does, and 'flyball run' around it at once. A limit that another program "
         "changed in between is left as "
         "it is.",
         "The program runs as under 'flyball run': its streams, signals and exit status are its own. Where "
         "the "
         "limit cannot be set it runs all the same, at the limit that stands, and a warning says so; with "
         "--require it does not start. With FLYBALL_DISABLE=1 nothing is set, and the program takes this "
         "one's "
         "place.",
         "Nothing is turned on a GPU that a process other than this one's family computes on, that is "
         "divided "
         "by MIG or shared by MPS, whose knobs another program of Flyball's holds, or while "
         "/etc/flyball/readonly exists."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&device_options},
    .operands = "[WATTS] [-- PROGRAM [ARGUMENT...]]",
    .operand_maximum = 1,
    .runs_program = true,
    .exit_status = "With a program, that of the program, as of 'flyball run'. " POWER_EXIT_STATUS
                   " With --for 75 also when a limit of ours was taken away before the time was over.",
    .examples = {{"flyball power set 250 -i 0,1", "set two GPUs to 250 W, to stay"},
                 {"flyball power set --profile MAX_Q --for 2h", "save power on all GPUs for two hours"},
                 {"flyball power set 60% --for 2h", "set all GPUs to 60 % of their highest for two hours"},
                 {"flyball power set 250W -- python train.py", "train at 250 W, and turn back"}},
    .outputs = {&power_turning_quantities},
    .run = power_set_run,
};
