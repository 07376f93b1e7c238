/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a job from exported lines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/patient_file.h"
#include "cli/commands.h"
#include "cli/job_view.h"

enum { TEXT_MAX = 1 << 30, PIECE = 1 << 16 };

static const struct cli_option options[] = {JOB_OPTION_STORE};

static int read_all(const char *path, struct buffer *text, struct fly_error *out_error)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *stream = standard ? stdin : patient_file_read(path);
    char piece[PIECE];
    size_t count;
    int code = 0;

    if (stream == NULL)
        return error_set(out_error,
                         errno == ENOENT   ? FLY_ENOTFOUND
                         : errno == EACCES ? FLY_EPERM
                                           : FLY_EREAD,
                         "'%s' cannot be read: %s", path, patient_file_cause(errno));
    while (text->error == 0 && (count = fread(piece, 1, sizeof piece, stream)) > 0)
        buffer_append(text, piece, count);
    if (ferror(stream))
        code = error_set(out_error, FLY_EREAD, "'%s' cannot be read: %s", path, patient_file_cause(errno));
    else if (text->error == FLY_ELIMIT)
        code = error_set(out_error, FLY_ELIMIT, "'%s': more than %d bytes of events", path, TEXT_MAX);
    else if (text->error < 0)
        code = error_no_memory(out_error);
    if (!standard)
        fclose(stream);
    return code;
}

static int import(const struct cli_call *call, const char *name, const struct buffer *text,
                  struct fly_error *out_error)
{
    struct jobs jobs;
    int code = jobs_open(cli_text(call, "store"), NULL, &jobs, out_error); /* made where it is missing */

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
    code = read_all(cli_operand(call, 1), &text, out_error);
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
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "JOB FILE",
    .operand_maximum = 2,
    .examples = {{"flyball job import digits digits.jsonl --store postgresql://db/jobs",
                  "move a job to a server"},
                 {"flyball job export digits | flyball job import digits-copy -", "copy a job"}},
    .run = job_import_run,
};
