/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/job_pareto.h"

#include <math.h>
#include <string.h>

#include "cli/job/job_view.h"
#include "job/past/epoch_points.h"

struct seeing {
    const struct job_history *history;
    const struct job_profiles *profiles;
    size_t machine;
    struct arena *arena;
    struct workload_batch *batches;
    struct pareto_spread *spreads;
    uint32_t *left_out;
};

static int add_batch(const struct seeing *seeing, size_t at, struct workload *workload,
                     struct fly_error *out_error)
{
    uint32_t size = seeing->history->definition.batch_sizes[at];
    struct epoch_points *epoch = arena_alloc(seeing->arena, 1, sizeof *epoch);
    double *epochs = arena_alloc(seeing->arena, 1, sizeof *epochs);
    int code;

    if (epoch == NULL || epochs == NULL)
        return error_no_memory(out_error);
    code = epoch_points_of(seeing->history, seeing->profiles, seeing->machine, size, epoch, out_error);
    if (code < 0)
        return code;
    *epochs = epoch->reached > 0 ? (double)epoch->epochs / (double)epoch->reached : NAN;
    seeing->batches[at] = (struct workload_batch){
        .points = epoch->points, .point_count = epoch->count, .path_epochs = epochs, .path_count = 1};
    seeing->spreads[at] = (struct pareto_spread){epoch->trials, epoch->energy, epoch->time};
    if (epoch->reached > 0 && epoch->count == 0)
        seeing->left_out[workload->left_out_count++] = size;
    return 0;
}

static int add_batches(const struct seeing *seeing, struct batch_choice *choices, struct workload *workload,
                       struct fly_error *out_error)
{
    const struct job_definition *definition = &seeing->history->definition;
    const struct job_machine *hardware = &seeing->history->machines[seeing->machine];
    double *highest_w = arena_alloc(seeing->arena, 1, sizeof *highest_w);
    int code = 0;

    if (highest_w == NULL)
        return error_no_memory(out_error);
    *highest_w = hardware->highest_limit_w > 0.0 ? hardware->highest_limit_w
                                                 : workload->spec.max_power_w / hardware->gpu_count;
    for (size_t i = 0; i < definition->batch_count && code == 0; i++) {
        choices[i] = (struct batch_choice){definition->batch_sizes[i], highest_w, 1};
        if (definition->batch_sizes[i] == definition->default_batch_size)
            workload->spec.default_batch = i;
        code = add_batch(seeing, i, workload, out_error);
        /* Failed tries can make it more than one training may take; nothing is cut off here. */
        if (code == 0 && seeing->batches[i].path_epochs[0] > workload->spec.max_epochs)
            workload->spec.max_epochs = (uint32_t)fmin(ceil(seeing->batches[i].path_epochs[0]), UINT32_MAX);
    }
    return code;
}

int job_pareto_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                  struct arena *arena, struct job_pareto *out_pareto, struct fly_error *out_error)
{
    const struct job_definition *definition = &history->definition;
    const struct job_machine *hardware = &history->machines[machine];
    struct batch_choice *choices = arena_alloc(arena, definition->batch_count, sizeof choices[0]);
    struct seeing seeing = {.history = history, .profiles = profiles, .machine = machine, .arena = arena};
    char *gpu = arena_alloc(arena, 1, JOB_HARDWARE_TEXT_MAX);

    seeing.batches = arena_alloc(arena, definition->batch_count, sizeof seeing.batches[0]);
    seeing.spreads = arena_alloc(arena, definition->batch_count, sizeof seeing.spreads[0]);
    seeing.left_out = arena_alloc(arena, definition->batch_count, sizeof seeing.left_out[0]);
    if (choices == NULL || seeing.batches == NULL || seeing.spreads == NULL || seeing.left_out == NULL ||
        gpu == NULL)
        return error_no_memory(out_error);
    out_pareto->spreads = seeing.spreads;
    out_pareto->workload = (struct workload){
        .gpu = job_view_hardware(hardware, gpu),
        .job = {.name = definition->name},
        .spec = {.name = definition->name,
                 .batches = choices,
                 .batch_count = definition->batch_count,
                 .max_epochs = definition->max_epochs,
                 .max_power_w = hardware->max_power_w > 0.0 ? hardware->max_power_w : 1.0,
                 .gpu_count = hardware->gpu_count},
        .batches = seeing.batches,
        .left_out = seeing.left_out,
    };
    return add_batches(&seeing, choices, &out_pareto->workload, out_error);
}
