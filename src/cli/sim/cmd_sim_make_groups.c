/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim make-groups`: makes up groups of overlapping submissions, for tests of scale. */
#include "base/file/atomic_file.h"
#include "cli/frame/call.h"
#include "cli/options/output_path.h"
#include "cli/sim/sim_commands.h"
#include "sim/world/job_description.h"
#include "sim/world/made_groups.h"

enum { DATASETS_MAX = 64 };

static const struct cli_option options[] = {
    {.name = "submissions",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e9,
     .default_text = "10000",
     .help = "Submissions in all."},
    {.name = "groups",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e6,
     .default_text = "100",
     .help = "Groups in all."},
    {.name = "datasets",
     .type = CLI_LIST,
     .placeholder = "NAME",
     .help = "Datasets that the groups take in turn; the six of the Zeus paper if not given."},
    {.name = "seed",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 0,
     .maximum = 4294967295.0,
     .default_text = "1",
     .help = "Seed of what is made up."},
};

static int make_groups_run(const struct cli_call *call, struct fly_error *out_error)
{
    const struct cli_list *asked = cli_list(call, "datasets");
    const char *known[DATASETS_MAX];
    struct made_groups made = {.datasets = asked->count > 0 ? asked->words : known,
                               .dataset_count = asked->count > 0 ? asked->count : known_job_count,
                               .groups = (uint64_t)cli_integer(call, "groups"),
                               .submissions = (uint64_t)cli_integer(call, "submissions"),
                               .seed = (uint32_t)cli_integer(call, "seed")};
    struct atomic_file file;
    char path[OUTPUT_PATH_MAX];
    int code;

    for (size_t i = 0; i < known_job_count && i < DATASETS_MAX; i++)
        known[i] = known_jobs[i].dataset;
    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no file given; name the one that the groups are to be written to");
    code = output_path_expand(cli_operand(call, 0), path, out_error);
    if (code == 0)
        code = atomic_file_open(path, &file, out_error);
    if (code < 0)
        return code;
    made_groups_write(file.stream, &made);
    code = atomic_file_commit(&file, out_error);
    if (code == 0)
        cli_note(call, "made-up groups in %s; nothing in them was measured", path);
    return code;
}

const struct cli_command cmd_sim_make_groups = {
    .words = "sim make-groups",
    .summary = "write made-up groups of overlapping submissions",
    .paragraphs =
        {"Writes FILE in the format that flyball sim group reads, for tests of scale. A group's number of "
         "submissions is geometric; its typical run time is log-normal around an hour, single ones vary by "
         "30 % around that; the time between two starts is exponential with 1.5 typical run times as its "
         "mean. Nothing in the file was measured."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "FILE",
    .operand_maximum = 1,
    .examples = {{"flyball sim make-groups groups.csv --submissions 1000000 --groups 1000",
                  "a million submissions"}},
    .run = make_groups_run,
};
