/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/power/power_around.h"

#include <stdlib.h>

#include "base/disabled.h"
#include "base/error.h"
#include "cli/program/child.h"
#include "cli/program/program_words.h"

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

int power_around(const struct cli_call *call, const struct power_request *request,
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
