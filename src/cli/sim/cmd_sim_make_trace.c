/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim make-trace`: makes up a trace to try the simulator with. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file/atomic_file.h"
#include "cli/frame/call.h"
#include "cli/sim/sim_commands.h"
#include "sim/world/made_trace.h"

enum { PATH_MAX_BYTES = 4096 };

static const struct cli_option options[] = {
    {.name = "seed",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = 4294967295.0,
     .default_text = "1",
     .help = "Seed of the noise in the epochs to the target."},
};

static void write_train(FILE *stream, const struct cli_call *call)
{
    made_trace_write_train(stream, (uint32_t)cli_integer(call, "seed"));
}

static void write_power(FILE *stream, const struct cli_call *call)
{
    (void)call;
    made_trace_write_power(stream);
}

static void write_jobs(FILE *stream, const struct cli_call *call)
{
    (void)call;
    made_trace_write_jobs(stream);
}

static const struct made_file {
    const char *name;
    void (*write)(FILE *stream, const struct cli_call *call);
} files[] = {
    {"summary_train.csv", write_train},
    {"summary_power_made-up.csv", write_power},
    {"jobs.ini", write_jobs},
};

static int write_file(const struct cli_call *call, const char *directory, const struct made_file *made,
                      struct fly_error *out_error)
{
    char path[PATH_MAX_BYTES];
    struct atomic_file file;
    int code;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, made->name) >= sizeof path)
        return error_set(out_error, FLY_ELIMIT, "%s: the path is too long; choose a shorter one", directory);
    code = atomic_file_open(path, &file, out_error);
    if (code < 0)
        return code;
    made->write(file.stream, call);
    return atomic_file_commit(&file, out_error);
}

static int make_trace_run(const struct cli_call *call, struct fly_error *out_error)
{
    const char *directory = cli_operand_count(call) > 0 ? cli_operand(call, 0) : NULL;
    int code = 0;

    if (directory == NULL)
        return cli_usage(call, out_error,
                         "no directory given; name the one that the trace is to be written to");
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return error_set(out_error, FLY_EWRITE, "%s: making the directory failed: %s; choose another",
                         directory, strerror(errno));
    for (size_t i = 0; i < sizeof files / sizeof files[0] && code == 0; i++)
        code = write_file(call, directory, &files[i], out_error);
    if (code == 0)
        cli_note(call, "made-up trace in %s; nothing in it was measured", directory);
    return code;
}

const struct cli_command cmd_sim_make_trace = {
    .words = "sim make-trace",
    .summary = "write a made-up trace to try the simulator with",
    .paragraphs =
        {"Writes summary_train.csv, summary_power_made-up.csv and jobs.ini to DIR, in the format that "
         "flyball sim job reads. The figures follow simple laws of how batch size and power limit act on "
         "epochs, time and power; nothing in them was measured.",
         "Existing files of these names are replaced."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "DIR",
    .operand_maximum = 1,
    .examples = {{"flyball sim make-trace trace", "write the trace"},
                 {"flyball sim job --traces trace --jobs trace/jobs.ini --gpu made-up", "simulate its job"}},
    .run = make_trace_run,
};
