/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball demo`: trains a real small network again and again on an emulated GPU. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "cli/demo/demo_commands.h"
#include "cli/demo/demo_report.h"
#include "cli/frame/call.h"
#include "cli/kit/chart.h"
#include "cli/options/small_options.h"
#include "sim/crew.h"

enum { PATH_MAX_BYTES = 4096, TRIES_MAX = 64 << 20 };

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
     .maximum = DEMO_RECURRENCES_MAX,
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

/* The command's data while it runs. */
struct demo_command {
    struct demo demo;
    struct findings findings[DEMO_JOBS];
    struct progress progress;
    char tries_path[PATH_MAX_BYTES], picture_path[PATH_MAX_BYTES], store_path[PATH_MAX_BYTES],
        spool_path[PATH_MAX_BYTES];
};

static void advance(void *context)
{
    progress_add(&((struct demo_command *)context)->progress, 1);
}

static void tick(void *context)
{
    progress_tick(&((struct demo_command *)context)->progress);
}

static int write_file(const char *path, const struct buffer *content, struct fly_error *out_error)
{
    struct atomic_file file;
    int code;

    if (content->error < 0)
        return error_no_memory(out_error);
    code = atomic_file_open(path, &file, out_error);
    if (code < 0)
        return code;
    fwrite(content->data, 1, content->length, file.stream);
    return atomic_file_commit(&file, out_error);
}

static int write_files(const struct demo_report *report, struct fly_error *out_error)
{
    struct buffer content;
    int code;

    buffer_init(&content, TRIES_MAX);
    demo_tries_write(&content, report);
    code = write_file(report->tries_path, &content, out_error);
    buffer_deinit(&content);
    if (code < 0)
        return code;
    buffer_init(&content, CHART_BYTES_MAX);
    code = demo_picture_draw(&content, report, out_error);
    if (code == 0)
        code = write_file(report->picture_path, &content, out_error);
    buffer_deinit(&content);
    return code;
}

static int name_path(char path[PATH_MAX_BYTES], const char *directory, const char *name,
                     struct fly_error *out_error)
{
    if ((size_t)snprintf(path, PATH_MAX_BYTES, "%s/%s", directory, name) >= PATH_MAX_BYTES)
        return error_set(out_error, FLY_ELIMIT, "%s: the path is too long; choose a shorter one", directory);
    return 0;
}

static int make_directory(struct demo_command *command, const char *directory, struct fly_error *out_error)
{
    char *const paths[] = {command->tries_path, command->picture_path, command->store_path,
                           command->spool_path};
    static const char *const names[] = {"tries.csv", "pareto.svg", "store.sqlite", "spool"};
    int code = 0;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0] && code == 0; i++)
        code = name_path(paths[i], directory, names[i], out_error);
    if (code == 0 && mkdir(directory, 0777) < 0 && errno != EEXIST)
        return error_set(out_error, FLY_EWRITE, "%s: making the directory failed: %s; choose another",
                         directory, strerror(errno));
    return code;
}

/* Removes the log of an earlier demo, with the files that SQLite keeps beside it. */
static int make_anew(const char *store, struct fly_error *out_error)
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[PATH_MAX_BYTES + 8];

        snprintf(path, sizeof path, "%s%s", store, suffixes[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            return error_set(out_error, FLY_EWRITE, "removing the earlier log '%s' failed: %s", path,
                             strerror(errno));
    }
    return 0;
}

/* Trains, writes the files, and only then reports. */
static int demonstrate(struct demo_command *command, const struct cli_call *call, struct fly_error *out_error)
{
    bool own_store = cli_text(call, "store") == NULL;
    const struct demo_plan plan = {
        .policy = cli_text(call, "policy"),
        .store = own_store ? command->store_path : cli_text(call, "store"),
        .spool_directory = command->spool_path,
        .recurrences = (uint64_t)cli_integer(call, "recurrences"),
        .seed = (uint32_t)cli_integer(call, "seed"),
        .threads = thread_option(call),
        .advance = advance,
        .tick = tick,
        .progress_context = command,
    };
    const struct demo_report report = {.demo = &command->demo,
                                       .findings = command->findings,
                                       .policy = plan.policy,
                                       .store = plan.store,
                                       .tries_path = command->tries_path,
                                       .picture_path = command->picture_path};
    int code = own_store ? make_anew(command->store_path, out_error) : 0;

    if (code < 0)
        return code;
    cli_progress_begin(call, &command->progress, "trainings", demo_advances(&plan));
    code = demo_run(&plan, &command->demo, out_error);
    progress_end(&command->progress);
    if (code < 0)
        return code;
    for (size_t i = 0; i < DEMO_JOBS; i++)
        findings_of(&command->demo.jobs[i], &command->findings[i]);
    code = write_files(&report, out_error);
    return code < 0 ? code : demo_report_emit(call, &report, out_error);
}

static int demo_command_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct demo_command command; /* large; the program runs one command */
    int code;

    memset(&command, 0, sizeof command);
    code = make_directory(&command, cli_text(call, "directory"), out_error);
    if (code < 0)
        return code;
    code = demonstrate(&command, call, out_error);
    demo_free(&command.demo);
    return code;
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
    .outputs = {&demo_quantities},
    .run = demo_command_run,
};
