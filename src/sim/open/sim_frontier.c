/* SPDX-License-Identifier: Apache-2.0 */
/* The frontier of a recorded job, for a caller of the library. */
#include <flyball/sim.h>

#include "base/buffer.h"
#include "base/error.h"
#include "sim/open/pareto_rows.h"
#include "sim/open/sim_call.h"
#include "sim/open/sim_columns.h"
#include "sim/open/sim_pareto.h"
#include "sim/world/operating_points.h"

enum { MEMORY_MAX = 256 << 20, NOTE_MAX = 4096 };

static void note_left_out(const struct sim_call *call, const struct pareto_result *result)
{
    for (size_t i = 0; i < result->points->left_out_count; i++) {
        const struct left_out *out = &result->points->left_out[i];
        struct buffer text;

        buffer_init(&text, NOTE_MAX);
        buffer_printf(&text, "batch size %u is left out, since %s", out->batch_size,
                      pareto_left_out_why(result, out));
        if (text.error == 0)
            sim_call_note(call, text.data);
        buffer_deinit(&text);
    }
}

static int make_rows(const struct pareto_result *result, struct fly_sim_table **out_rows,
                     struct fly_error *out_error)
{
    const struct pareto_columns columns = pareto_columns_for(result, false);
    struct table *table = pareto_rows_new(result, &columns, true);
    int code = sim_columns_of(table, out_rows, out_error);

    table_free(table);
    return code;
}

static int find_frontier(const struct sim_call *call, struct arena *arena, struct fly_sim_table **out_rows,
                         struct fly_error *out_error)
{
    const struct pareto_source source = sim_pareto_source(call->options.traces);
    struct operating_points points;
    struct pareto_result result = {
        .workload = &call->set.items[0], .points = &points, .objective = call->objective, .source = &source};
    int code;

    if (call->set.count != 1)
        return error_set(out_error, FLY_EUSAGE, "sim: a frontier is of one job, not of %zu; name one",
                         call->set.count);
    code = operating_points_of(result.workload, arena, &points, out_error);
    if (code == 0)
        code = sim_pareto_choose(&result, out_error);
    if (code == 0)
        code = make_rows(&result, out_rows, out_error);
    if (code == 0)
        note_left_out(call, &result);
    return code;
}

int fly_sim_pareto(const struct fly_sim_options *options, struct fly_sim_table **out_rows,
                   struct fly_error *out_error)
{
    struct sim_call *call = NULL;
    struct arena arena;
    int code = sim_call_open(options, &call, out_error);

    arena_init(&arena, MEMORY_MAX);
    if (code == 0)
        code = sim_call_jobs(call, call->options.gpu_model, &call->set, out_error);
    if (code == 0)
        code = find_frontier(call, &arena, out_rows, out_error);
    arena_deinit(&arena);
    sim_call_close(call);
    return code;
}
