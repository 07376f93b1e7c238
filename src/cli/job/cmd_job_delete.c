/* SPDX-License-Identifier: Apache-2.0 */
/* Removes a job with its log. */
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/store_option.h"

static const struct cli_option options[] = {
    {.name = "yes", .type = CLI_FLAG, .help = "Delete it; without this, only say what would go."},
};

static int delete_from(const struct cli_call *call, const struct jobs *jobs, const char *name,
                       struct fly_error *out_error)
{
    struct job_shown shown;
    struct arena arena;
    int code;

    arena_init(&arena, 1 << 20);
    code = jobs->backend->show(jobs->self, name, &arena, &shown, out_error);
    arena_deinit(&arena);
    if (code < 0)
        return code;
    if (!cli_flag(call, "yes"))
        return cli_usage(
            call, out_error,
            "job '%s' has %llu trial%s on record, %llu of them running, which nothing brings back; "
            "export it first, and delete it with --yes",
            name, (unsigned long long)shown.trials, shown.trials == 1 ? "" : "s",
            (unsigned long long)shown.running);
    code = jobs->backend->remove(jobs->self, name, out_error);
    if (code == 0)
        cli_note(call, "job '%s' with its %llu trial%s is deleted", name, (unsigned long long)shown.trials,
                 shown.trials == 1 ? "" : "s");
    return code;
}

static int job_delete_run(const struct cli_call *call, struct fly_error *out_error)
{
    return job_view_run(call, delete_from, out_error);
}

const struct cli_command cmd_job_delete = {
    .words = "job delete",
    .summary = "delete a recurring job and all that was observed of it",
    .paragraphs = {"Deletes a job with its definition and its log. The next submission under its name begins "
                   "anew. What runs now goes on, and its reports are refused."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .operands = "JOB",
    .operand_maximum = 1,
    .examples = {{"flyball job export digits --output digits.jsonl", "keep what was observed"},
                 {"flyball job delete digits --yes", "delete it"}},
    .run = job_delete_run,
};
