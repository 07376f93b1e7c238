/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball sim replay`: decides a live job's log again. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file/patient_file.h"
#include "cli/frame/call.h"
#include "cli/sim/sim_commands.h"
#include "job/core/policy_choice.h"
#include "job/decide/decided_again.h"
#include "shapes/shape_told.h"

enum { LOG_MAX = 1 << 30 };

static const struct cli_option options[] = {
    {.name = "all", .type = CLI_FLAG, .help = "List every decision, not only those that differ."},
};

static const struct meaning columns[] = {
    {"decision", "decision", MEANING_TEXT, 0, NULL, MEANING_FACT, "What was decided."},
    {"trial", "trial", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Trial that it was decided for."},
    {"epoch", "epoch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Epoch after which it was decided."},
    {"batch_size", "batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Global batch size."},
    {"power_limit_w", "limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit of each GPU."},
    {"reason", "reason", MEANING_TEXT, 0, NULL, MEANING_FACT, "Why, by the log."},
    {"same", "same", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Whether the decision comes out the same again: 'yes' or 'no'."},
    {"difference", "difference", MEANING_TEXT, 0, NULL, MEANING_FACT, "What came out instead."},
};
static const struct quantities quantities = {"a decision", QUANTITIES(columns)};

struct listing {
    struct table *table;
    bool all;
};

static const char *word_of(enum record_kind kind)
{
    return kind == RECORD_PROPOSED ? "trial" : kind == RECORD_PROFILED ? "limit" : "report";
}

/* Writes the recorded proposal; the other rows are decisions about the trial above them. */
static void put_recorded(struct table *table, const struct proposed_record *recorded)
{
    static const char of_proposals[] = "a trial's proposal says it";

    if (recorded == NULL) {
        table_add_unavailable(table, "-", of_proposals);
        table_add_unavailable(table, "-", of_proposals);
        table_add_unavailable(table, "-", of_proposals);
        return;
    }
    table_add_integer(table, recorded->batch_size);
    if (isnan(recorded->limit_w))
        table_add_unavailable(table, "-", "it was not known yet, or not set");
    else
        table_add_real(table, recorded->limit_w);
    table_add_text(table, job_reason_name(recorded->reason));
}

static int list(void *context, const struct job_replayed *replayed, struct fly_error *out_error)
{
    const struct listing *listing = context;
    struct table *table = listing->table;

    (void)out_error;
    if (!listing->all && replayed->difference[0] == '\0')
        return 0;
    table_add_text(table, word_of(replayed->kind));
    table_add_integer(table, (int64_t)replayed->trial);
    if (replayed->epoch > 0)
        table_add_integer(table, replayed->epoch);
    else
        table_add_unavailable(table, "-", "it is no report");
    put_recorded(table, replayed->recorded);
    table_add_text(table, replayed->difference[0] == '\0' ? "yes" : "no");
    if (replayed->difference[0] == '\0')
        table_add_unavailable(table, "-", "there is none");
    else
        table_add_text(table, replayed->difference);
    return 0;
}

static const struct shape_field count_rows[] = {
    {SHAPE_AT(job_replay_count, compared), TOLD_U64},
    {SHAPE_AT(job_replay_count, different), TOLD_U64},
};
static const struct shape count_shape = {SHAPE_OF(job_replay_count, count_rows)};

static const struct shape_field sums_rows[] = {
    {SHAPE_AT(job_replay_sums, job), TOLD_ANY_CHARS(job_replay_sums, job)},
    {SHAPE_AT_AS("trials", job_replay_sums, proposals), SHAPE_IS_STRUCT(&count_shape)},
    {SHAPE_AT_AS("limits", job_replay_sums, profiles), SHAPE_IS_STRUCT(&count_shape)},
    {SHAPE_AT(job_replay_sums, reports), SHAPE_IS_STRUCT(&count_shape)},
};
static const struct shape sums_shape = {SHAPE_OF(job_replay_sums, sums_rows)};

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static int emit(const struct cli_call *call, struct table *table, const struct job_replay_sums *sums,
                struct fly_error *out_error)
{
    const struct job_replay_count *kinds[] = {&sums->proposals, &sums->profiles, &sums->reports};
    uint64_t compared = 0, different = 0;
    int code = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        compared += kinds[i]->compared;
        different += kinds[i]->different;
    }
    table_members(table, &sums_shape, sums);
    if (cli_format(call) != TABLE_FORMAT_TABLE || table_row_count(table) > 0)
        code = cli_emit_table(call, table, out_error);
    if (code == 0)
        cli_note(call,
                 "job '%s': %" PRIu64 " trial%s, %" PRIu64 " limit%s and %" PRIu64
                 " answer%s to reports decided again; %" PRIu64 " of %" PRIu64 " as on record",
                 sums->job, sums->proposals.compared, plural(sums->proposals.compared),
                 sums->profiles.compared, plural(sums->profiles.compared), sums->reports.compared,
                 plural(sums->reports.compared), compared - different, compared);
    if (code == 0 && different > 0)
        code = error_set(
            out_error, FLY_ECONFLICT,
            "%" PRIu64
            " decision%s from the record, which another version may have made; see the rows that say 'no'",
            different, different == 1 ? " differs" : "s differ");
    return code;
}

static int sim_replay_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct listing listing = {.all = cli_flag(call, "all")};
    struct policy_plugins plugins;
    struct job_replay_sums sums;
    struct buffer log;
    int code;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no log was named; give a file of 'flyball job export', or '-'");
    code = policy_plugins_open(&plugins, out_error);
    if (code < 0)
        return code;
    buffer_init(&log, LOG_MAX);
    listing.table = table_new("flyball.sim.replay/1", columns, quantities.count);
    code = patient_file_read_all(cli_operand(call, 0), &log, out_error);
    if (code == 0)
        code = job_replay(log.data, log.length, plugins.list, list, &listing, &sums, out_error);
    if (code == 0)
        code = emit(call, listing.table, &sums, out_error);
    table_free(listing.table);
    buffer_deinit(&log);
    policy_plugins_close(&plugins);
    return code;
}

const struct cli_command cmd_sim_replay = {
    .words = "sim replay",
    .summary = "take the decisions of a live job again, from its log",
    .paragraphs =
        {"Reads a log that 'flyball job export' wrote, as jsonl or beside a trace, and decides everything "
         "once more: each trial, each limit from a profile, each answer to a report, by the code that "
         "decides "
         "live, "
         "from what the log held at that moment. What the machines answered stands in the log, so crashes, "
         "bounds, controls, tries that overlap and profiles that are not whole are all there.",
         "Lists the decisions that differ from those on record, as a newer version's may; the one on record "
         "stays the fact that the next rests on. To see what another policy would have done, export a trace "
         "and "
         "give it to 'flyball sim job'. A policy that is a plug-in is looked for in FLYBALL_PLUGINS."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "FILE",
    .operand_maximum = 1,
    .exit_status =
        "0 when every decision is as on record; 65 when one differs, or the file is no log; else as in "
        "flyball(1).",
    .examples = {{"flyball job export digits | flyball sim replay -", "decide a job's history again"},
                 {"flyball sim replay traces/log.jsonl --all --format json",
                  "list every decision for a program"}},
    .outputs = {&quantities},
    .run = sim_replay_run,
};
