/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/job_frontier.h"

#include <math.h>

#include <flyball/pareto.h>

#include "job/core/trial_past.h"

const char *const job_frontier_left_out[LEFT_OUT_REASON_COUNT] = {
    [LEFT_OUT_UNPOWERED] = "its trials ran under several power limits, and its profile is not whole",
    [LEFT_OUT_UNREACHED] = "no trial of it has reached the target yet",
    [LEFT_OUT_UNBOUNDED] = "its time or energy is not a finite number above 0",
};

/* Why a batch size does not run any more; NULL: it may. The default always may: it is what others replace. */
static const char *barred(const struct job_definition *definition, const struct decision_numbers *numbers,
                          uint32_t size)
{
    if (size == definition->default_batch_size)
        return NULL;
    if (numbers->does_not_fit_from > 0 && size >= numbers->does_not_fit_from)
        return "it does not fit into the GPUs' memory";
    for (size_t i = 0; i < numbers->known_count; i++) {
        const struct decision_known *known = &numbers->known[i];

        if (known->batch_size == size && known->worse)
            return "its models are worse than allowed";
        if (known->batch_size == size && known->given_up)
            return "it is given up: its trials crashed again and again";
    }
    return NULL;
}

static struct batch_figures figures_of(const struct job_frontier_batch *batch)
{
    return (struct batch_figures){
        .batch_size = batch->epoch.batch_size,
        .points = batch->epoch.points,
        .point_count = batch->epoch.count,
        .epochs = batch->epochs,
        .unpowered = batch->epoch.reached > 0 && batch->epoch.count == 0,
    };
}

static int choose(struct job_frontier *frontier, struct fly_error *out_error)
{
    const struct operating_points *points = &frontier->points;
    bool known = points->default_point < points->count;

    frontier->chosen = 0;
    if (points->count == 0)
        return 0;
    frontier->lacks_bound = isfinite(frontier->objective.max_slowdown) && !known;
    if (frontier->lacks_bound)
        frontier->objective.max_slowdown = INFINITY;
    return fly_pareto_choose(points->points, points->count, &frontier->objective, frontier->max_power_w,
                             known ? points->points[points->default_point].time_s : NAN, &frontier->chosen,
                             out_error);
}

/* What is known of the job and the hardware before any trial. */
static struct job_frontier begin(const struct job_history *history, size_t machine)
{
    const struct fly_job_hardware *hardware = &history->machines[machine];
    struct job_frontier frontier = {
        .objective = history->objective,
        .max_power_w = hardware->max_power_w > 0.0 ? hardware->max_power_w : 1.0,
    };

    frontier.objective.eta = objective_eta(&history->objective);
    frontier.reference = (struct fly_operating_point){
        .batch_size = history->definition.default_batch_size,
        .power_limit_w = hardware->highest_limit_w > 0.0 ? hardware->highest_limit_w
                                                         : frontier.max_power_w / hardware->gpu_count};
    return frontier;
}

int job_frontier_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                    const struct decision_numbers *numbers, struct arena *arena,
                    struct job_frontier *out_frontier, struct fly_error *out_error)
{
    const struct job_definition *definition = &history->definition;
    struct job_frontier frontier = begin(history, machine);
    struct batch_figures *figures = arena_alloc(arena, definition->batch_count, sizeof figures[0]);
    int code = 0;

    frontier.batches = arena_alloc(arena, definition->batch_count, sizeof frontier.batches[0]);
    if (figures == NULL || frontier.batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < definition->batch_count && code == 0; i++) {
        struct job_frontier_batch *batch = &frontier.batches[i];
        uint32_t size = definition->batch_sizes[i];

        code = epoch_points_of(history, profiles, machine, size, &batch->epoch, out_error);
        batch->barred = barred(definition, numbers, size);
        batch->epochs = batch->epoch.reached > 0 && batch->barred == NULL
                            ? (double)batch->epoch.epochs / (double)batch->epoch.reached
                            : INFINITY;
        figures[i] = figures_of(batch);
    }
    if (code == 0)
        code = batch_points_of(figures, definition->batch_count, frontier.reference, arena, &frontier.points,
                               out_error);
    if (code == 0)
        code = choose(&frontier, out_error);
    if (code == 0)
        *out_frontier = frontier;
    return code;
}

/* Reads what was known when the newest trial on this hardware was chosen. */
static int read_numbers(const struct jobs *jobs, const struct job_history *history, size_t machine,
                        struct decision_numbers *out_numbers, struct fly_error *out_error)
{
    struct trial_past past = trial_past_empty;
    struct store_query query = {0};
    int code;

    for (size_t i = 0; i < history->count; i++)
        query.trial = history->rows[i].machine == machine ? history->rows[i].trial.trial : query.trial;
    code =
        jobs->backend->read(jobs->self, history->definition.name, &query, trial_past_visit, &past, out_error);
    decision_numbers_read(code == 0 ? past.record.numbers : NULL, out_numbers);
    trial_past_deinit(&past);
    return code;
}

int job_frontier_read(const struct jobs *jobs, const struct job_history *history,
                      const struct job_profiles *profiles, size_t machine, struct arena *arena,
                      struct job_frontier *out_frontier, struct fly_error *out_error)
{
    struct decision_numbers numbers;
    int code = read_numbers(jobs, history, machine, &numbers, out_error);

    return code == 0 ? job_frontier_of(history, profiles, machine, &numbers, arena, out_frontier, out_error)
                     : code;
}
