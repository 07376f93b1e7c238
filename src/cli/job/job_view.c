/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/job_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/options/store_option.h"
#include "job/past/history.h"
#include "job/remote/spool.h"
#include "sim/open/pareto_result.h"

/* clang-format off */
static const struct cli_option hardware_row[] = {
    {.name = "hardware", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = JOB_HARDWARE_MAX,
     .help = "Kind of hardware, as 'flyball job show' numbers them; if not given, that of the newest trial."}
};
/* clang-format on */
const struct cli_options job_hardware_option = CLI_OPTIONS(hardware_row);

enum { HISTORY_BYTES = 1 << 30, GIB_SHIFT = 30 };

/* How long to deliver what waits on this machine. */
static const double delivery_most_s = 2.0;

int job_view_name(const struct cli_call *call, const char **out_name, struct fly_error *out_error)
{
    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no job was named; 'flyball job list' shows them");
    *out_name = cli_operand(call, 0);
    return 0;
}

static void deliver(const struct cli_call *call, const struct jobs *jobs, const char *store)
{
    struct spool spool;
    uint64_t waiting;

    spool_init(&spool, NULL, store);
    waiting = spool_count_left(&spool);
    if (waiting > 0) {
        cli_note(call, "%" PRIu64 " report%s wait%s on this machine for this log, and %s delivered now",
                 waiting, waiting == 1 ? "" : "s", waiting == 1 ? "s" : "", waiting == 1 ? "is" : "are");
        (void)spool_deliver_left(&spool, jobs, delivery_most_s);
        waiting = spool_count_left(&spool);
    }
    if (waiting > 0)
        cli_note(call, "%" PRIu64 " of them could not be delivered yet", waiting);
}

void job_view_deliver(const struct cli_call *call, const struct jobs *jobs)
{
    const char *store = cli_text(call, "store"), *usual = getenv("FLYBALL_STORE");

    deliver(call, jobs, store);
    /* A session without an address of its own used that of the environment. */
    if (store != NULL && usual != NULL && strcmp(store, usual) == 0)
        deliver(call, jobs, NULL);
}

int job_view_run(const struct cli_call *call, job_view_act *act, struct fly_error *out_error)
{
    const char *name = NULL;
    struct jobs jobs;
    int code = job_view_name(call, &name, out_error);

    if (code == 0)
        code = store_option_open(call, &jobs, out_error);
    if (code != 0)
        return code;
    code = job_unknown_explain(&jobs, name, act(call, &jobs, name, out_error), out_error);
    jobs_close(&jobs);
    return code;
}

int job_view_read(const struct cli_call *call, uint64_t trials, struct job_view *out_view,
                  struct fly_error *out_error)
{
    int code = job_view_name(call, &out_view->name, out_error);

    if (code == 0)
        code = store_option_open(call, &out_view->jobs, out_error);
    if (code != 0)
        return code;
    job_view_deliver(call, &out_view->jobs);
    arena_init(&out_view->arena, HISTORY_BYTES);
    code = job_history_read_newest(&out_view->jobs, out_view->name, trials, &out_view->arena,
                                   &out_view->history, out_error);
    if (code < 0) {
        arena_deinit(&out_view->arena);
        code = job_unknown_explain(&out_view->jobs, out_view->name, code, out_error);
        jobs_close(&out_view->jobs);
    }
    return code;
}

void job_view_close(struct job_view *view)
{
    arena_deinit(&view->arena);
    jobs_close(&view->jobs);
}

const struct job_row *job_view_now(const struct job_history *history, size_t machine)
{
    static const bool chosen[REASON_COUNT] = {
        [REASON_FIXED] = true,  [REASON_SAMPLED] = true,   [REASON_BEST_SEEN] = true,
        [REASON_PLUGIN] = true, [REASON_NO_TARGET] = true, [REASON_LAST_TRY] = true,
        [REASON_PINNED] = true,
    };

    for (size_t i = history->count; i-- > 0;) {
        const struct job_row *row = &history->rows[i];

        if (row->machine == machine && row->revision == history->revision && !row->trial.profiled &&
            chosen[row->reason] && row->trial.trial >= history->wanted_from)
            return row;
    }
    return NULL;
}

int job_view_machine(const struct cli_call *call, const struct job_history *history, size_t *out_machine,
                     struct fly_error *out_error)
{
    const char *name = history->definition.name;
    int64_t chosen;

    if (history->count == 0)
        return error_set(out_error, FLY_EEXHAUSTED, "job '%s' has not run yet", name);
    if (!cli_set(call, "hardware")) {
        *out_machine = history->rows[history->count - 1].machine;
        return 0;
    }
    chosen = cli_integer(call, "hardware");
    if ((size_t)chosen > history->machine_count)
        return cli_usage(call, out_error,
                         "job '%s' ran on %zu kinds of hardware, and there is no number %" PRId64, name,
                         history->machine_count, chosen);
    *out_machine = (size_t)chosen - 1;
    return 0;
}

char *job_view_hardware(const struct fly_job_hardware *machine, char text[JOB_HARDWARE_TEXT_MAX])
{
    int length = snprintf(text, JOB_HARDWARE_TEXT_MAX, "%u x %.120s", machine->gpu_count, machine->gpu_model);

    if (machine->gpu_memory_bytes > 0)
        length += snprintf(text + length, JOB_HARDWARE_TEXT_MAX - (size_t)length, ", %" PRIu64 " GiB",
                           (machine->gpu_memory_bytes + (UINT64_C(1) << (GIB_SHIFT - 1))) >> GIB_SHIFT);
    if (machine->world_size > 1)
        snprintf(text + length, JOB_HARDWARE_TEXT_MAX - (size_t)length, ", %u ranks", machine->world_size);
    return text;
}

char *job_view_objective(const struct fly_objective *objective, char text[JOB_HARDWARE_TEXT_MAX])
{
    int length = snprintf(text, JOB_HARDWARE_TEXT_MAX, "%s", pareto_best_name(objective->kind));

    if (objective->kind == FLY_OBJECTIVE_COST)
        length +=
            snprintf(text + length, JOB_HARDWARE_TEXT_MAX - (size_t)length, " (eta %g)", objective->eta);
    if (isfinite(objective->max_slowdown))
        snprintf(text + length, JOB_HARDWARE_TEXT_MAX - (size_t)length,
                 " in at most %g times the default's time", objective->max_slowdown);
    return text;
}
