/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a job from exported lines. */
#include "base/buffer.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/store_option.h"

enum { TEXT_MAX = 1 << 30 };

static int import(const struct cli_call *call, const char *name, const struct buffer *text,
                  struct fly_error *out_error)
{
    struct jobs jobs;
    int code = jobs_open(cli_text(call, "store"), NULL, &jobs,
                         out_error); /* creates the store if it does not exist */

    if (code != 0)
        return code;
    code = jobs.backend->import(jobs.self, name, text->data, text->length, out_error);
    if (code == 0)
        cli_note(call, "job '%s' is there", name);
    jobs_close(&jobs);
    return code;
}

static int job_import_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct buffer text;
    const char *name;
    int code = job_view_name(call, &name, out_error);

    if (code < 0)
        return code;
    if (cli_operand_count(call) < 2)
        return cli_usage(call, out_error, "no file was named; give one, or '-' for standard input");
    buffer_init(&text, TEXT_MAX);
    code = patient_file_read_all(cli_operand(call, 1), &text, out_error);
    if (code == 0)
        code = import(call, name, &text, out_error);
    buffer_deinit(&text);
    return code;
}

const struct cli_command cmd_job_import = {
    .words = "job import",
    .summary = "make a recurring job from an exported log",
    .paragraphs =
        {"Makes a job of that name from the lines that 'flyball job export' wrote, with their dates: "
         "to move it to another store, or to give it another name. The job must not be there yet. "
         "Nothing of a file with a line that does not fit is kept."},
    .shared = {&store_options},
    .operands = "JOB FILE",
    .operand_maximum = 2,
    .examples = {{"flyball job import digits digits.jsonl --store postgresql://db/jobs",
                  "move a job to a server"},
                 {"flyball job export digits | flyball job import digits-copy -", "copy a job"}},
    .run = job_import_run,
};
