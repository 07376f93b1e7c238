/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball demo`: becomes flyball-demo (examples/demo/), a program over the public library. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/options/small_options.h"
#include "cli/program/child.h"
#include "cli/run/run_commands.h"

static const char *const policies[] = {"bayes", "default", "grid", "zeus", NULL};

static const struct cli_option options[] = {
    {.name = "directory",
     .type = CLI_TEXT,
     .placeholder = "DIR",
     .default_text = "flyball-demo",
     .help = "Directory for tries.csv, pareto.svg and store.sqlite; made if it is not there."},
    {.name = "policy",
     .type = CLI_CHOICE,
     .placeholder = "NAME",
     .choices = policies,
     .default_text = "bayes",
     .help = "Policy that chooses; default changes nothing, and nothing is then claimed."},
    {.name = "recurrences",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1000,
     .default_text = "40",
     .help = "How often each job is trained."},
    {.name = "seed",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = 4294967295.0,
     .default_text = "1",
     .help = "Seed of all that is drawn: splits, first weights, orders, choices."},
    {.name = "store",
     .type = CLI_TEXT,
     .placeholder = "ADDRESS",
     .help = "Where the jobs' logs go, which must not have them yet: a path, postgresql://... or the address "
             "of a service; if not given, DIR/store.sqlite, made anew."},
    {.name = "threads",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = CREW_THREADS_MAX,
     .help = "Worker threads, which change nothing but the time; if not given, one for each processor."},
};

enum { PATH_BYTES = 4096, ARGUMENTS_MAX = 16 };
#ifndef FLYBALL_LIBEXECDIR
#define FLYBALL_LIBEXECDIR "/usr/local/libexec/flyball"
#endif

/* Stores where the program lies: in a build, in the prefix of this one, or where it was installed. */
static int find_program(char path[PATH_BYTES], struct fly_error *out_error)
{
    static const char *const beside[] = {"/examples/demo/flyball-demo", "/../libexec/flyball/flyball-demo"};
    char directory[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);

    directory[length > 0 ? length : 0] = '\0';
    *(strrchr(directory, '/') != NULL ? strrchr(directory, '/') : directory) = '\0';
    for (size_t i = 0; i < sizeof beside / sizeof beside[0] && directory[0] != '\0'; i++) {
        if (snprintf(path, PATH_BYTES, "%s%s", directory, beside[i]) < PATH_BYTES && access(path, X_OK) == 0)
            return 0;
    }
    snprintf(path, PATH_BYTES, "%s", FLYBALL_LIBEXECDIR "/flyball-demo");
    if (access(path, X_OK) == 0)
        return 0;
    return error_set(out_error, FLY_ENOTFOUND, "'%.300s' is not there: %s; install Flyball whole", path,
                     strerror(errno));
}

/* Becomes the program, with all options as they hold here. */
static int demo_run(const struct cli_call *call, struct fly_error *out_error)
{
    static const char *const words[] = {"directory", "policy", "store", "format"};
    char texts[ARGUMENTS_MAX][PATH_BYTES] = {"flyball-demo"}, path[PATH_BYTES], *arguments[ARGUMENTS_MAX];
    int count = 1, code = find_program(path, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!cli_set(call, words[i]))
            continue;
        if (snprintf(texts[count], PATH_BYTES, "--%s=%s", words[i], cli_text(call, words[i])) >= PATH_BYTES)
            return error_set(out_error, FLY_ELIMIT, "--%s: the text is too long; choose a shorter one",
                             words[i]);
        count++;
    }
    snprintf(texts[count++], PATH_BYTES, "--recurrences=%lld", (long long)cli_integer(call, "recurrences"));
    snprintf(texts[count++], PATH_BYTES, "--seed=%lld", (long long)cli_integer(call, "seed"));
    snprintf(texts[count++], PATH_BYTES, "--threads=%u", thread_option(call));
    /* So that the commands that it prints work whether Flyball is installed or not. */
    snprintf(texts[count++], PATH_BYTES, "--command=%s",
             strchr(program_invocation_name, '/') != NULL ? program_invocation_name : "flyball");
    if (cli_flag(call, "verbose"))
        snprintf(texts[count++], PATH_BYTES, "--verbose");
    if (cli_flag(call, "quiet"))
        snprintf(texts[count++], PATH_BYTES, "--quiet");
    for (int i = 0; i < count; i++)
        arguments[i] = texts[i];
    arguments[count] = NULL;
    inherited_restore();
    execv(path, arguments);
    return error_set(out_error, FLY_ENOTFOUND, "'%.300s' cannot be started: %s; install Flyball whole", path,
                     strerror(errno));
}

const struct cli_command cmd_demo = {
    .words = "demo",
    .summary = "real trainings on an emulated GPU, and what was saved",
    .paragraphs =
        {"Trains a small neural network on images of handwritten digits that the program carries, forty "
         "times, each time as a session of a recurring job: the batch size and power limit are those that "
         "the "
         "job's log speaks for. Beside it a second job trains with the default and the same luck. Network, "
         "data, "
         "accuracy and the epochs to the target are real; the seconds and watts of an epoch come from a "
         "model "
         "of a GPU. Needs no trace, no GPU and no privileges.",
         "Then every batch size is trained with twenty fresh seeds and every power limit priced, to say "
         "where the "
         "choice stands. A second job, whose default is already the best choice, shows that nothing is "
         "claimed "
         "where nothing is saved: a saving is claimed only where the 95 % interval of the paired change lies "
         "below zero.",
         "DIR/tries.csv has every training, from which each figure can be recomputed: the columns of flyball "
         "sim job, then epochs, accuracy and role (chosen, baseline, check). DIR/pareto.svg shows all "
         "choices. "
         "DIR/store.sqlite is the jobs' log, for flyball job."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .examples = {{"flyball demo", "run the demo, in some seconds"},
                 {"flyball demo --policy default", "change nothing, and see that nothing is claimed"},
                 {"flyball demo --seed 2 --format json", "run it with other luck, for a program to read"}},
    .run = demo_run,
};
