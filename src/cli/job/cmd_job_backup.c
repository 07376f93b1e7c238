/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a whole store. */
#include <inttypes.h>

#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/output_path.h"
#include "cli/options/store_option.h"
#include "store/store_backup.h"
#include "store/store_copy.h"

static int job_backup_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct store_copied copied;
    char path[OUTPUT_PATH_MAX];
    int code;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no file was named to hold the copy");
    code = output_path_expand(cli_operand(call, 0), path, out_error);
    if (code == 0)
        code = store_back_up(cli_text(call, "store"), path, &copied, out_error);
    if (code == 0)
        cli_note(call, "'%s' holds %" PRIu64 " job%s with %" PRIu64 " event%s", path, copied.jobs,
                 copied.jobs == 1 ? "" : "s", copied.events, copied.events == 1 ? "" : "s");
    return code;
}

const struct cli_command cmd_job_backup = {
    .words = "job backup",
    .summary = "copy a whole store of recurring jobs to a file",
    .paragraphs =
        {"Writes all jobs of a store in a file, as they are at one moment, to a new file. The store may be "
         "in use, and no training waits. The copy is one file with nothing beside it; it is checked and "
         "on disk before it gets its name. A file that is there already is not touched.",
         "Do not copy a store with 'cp': a part of it may stand in the log beside it. For a store on a "
         "server "
         "use the server's own tools, as 'pg_dump'."},
    .shared = {&store_options},
    .operands = "FILE",
    .operand_maximum = 1,
    .examples = {{"flyball job backup /backup/jobs-monday.sqlite", "copy your own store"},
                 {"flyball job restore /backup/jobs-monday.sqlite --replace", "put it back"}},
    .run = job_backup_run,
};
