/* SPDX-License-Identifier: Apache-2.0 */
/* Restores a store from its copy. */
#include <inttypes.h>

#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/store_option.h"
#include "store/store_backup.h"
#include "store/store_copy.h"

static const struct cli_option options[] = {
    {.name = "replace",
     .type = CLI_FLAG,
     .help = "Put the copy in the place of a store that is there, with all its jobs."},
};

static int job_restore_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct store_copied copied;
    const char *path;
    int code;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no file was named; give one that 'flyball job backup' wrote");
    path = cli_operand(call, 0);
    code = store_restore(path, cli_text(call, "store"), cli_flag(call, "replace"), &copied, out_error);
    if (code == 0)
        cli_note(call, "the store holds %" PRIu64 " job%s with %" PRIu64 " event%s, as '%s' does",
                 copied.jobs, copied.jobs == 1 ? "" : "s", copied.events, copied.events == 1 ? "" : "s",
                 path);
    return code;
}

const struct cli_command cmd_job_restore = {
    .words = "job restore",
    .summary = "make a store of recurring jobs from its copy",
    .paragraphs = {"Makes a store what a copy is that 'flyball job backup' wrote. The copy is checked first. "
                   "A store that is "
                   "there already is replaced with --replace alone, and only while no training and no "
                   "service has it open. "
                   "It happens in one transaction: after a failure or a crash the store is what it was.",
                   "Logs that an earlier file of the store's name has left beside it are never taken in. A "
                   "store that is too "
                   "damaged to be written is moved to STORE.damaged first, with its logs. What was observed "
                   "after the copy "
                   "was taken is not in it."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .operands = "FILE",
    .operand_maximum = 1,
    .examples = {{"flyball job restore jobs-monday.sqlite --store /srv/jobs.sqlite", "make a new store"},
                 {"flyball job restore jobs-monday.sqlite --replace", "go back to Monday"}},
    .run = job_restore_run,
};
