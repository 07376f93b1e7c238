/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/version.h>

#include "cli/frame/call.h"
#include "cli/frame/frame_commands.h"

static const struct meaning columns[] = {
    {"name", "name", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "What has the version: the program, or a library that it uses."},
    {"version", "version", MEANING_TEXT, 0, NULL, MEANING_FACT, "Its version."},
};
static const struct quantities quantities = {"a program or library", QUANTITIES(columns)};

static int version_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct table *table;
    int result;

    if (cli_format(call) == TABLE_FORMAT_TABLE)
        return cli_emit_text(call, "flyball " FLY_VERSION "\n", out_error);
    table = table_new("flyball.version/1", columns, quantities.count);
    table_add_text(table, "flyball");
    table_add_text(table, FLY_VERSION);
    result = cli_emit_table(call, table, out_error);
    table_free(table);
    return result;
}

const struct cli_command cmd_version = {
    .words = "version",
    .summary = "print the version",
    .paragraphs =
        {"Prints the name and the version of this program. 'flyball --version' does the same. Reads no "
         "configuration, so that it works when that is broken."},
    .examples = {{"flyball version", "print the version"},
                 {"flyball version --format json", "print it for a program"}},
    .ignores_settings = true,
    .outputs = {&quantities},
    .run = version_run,
};
