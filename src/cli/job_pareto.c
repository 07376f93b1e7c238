/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job_pareto.h"

#include <math.h>
#include <string.h>

#include "cli/job_view.h"
#include "job/epoch_points.h"

struct seeing {
    const struct job_history *history;
    const struct job_profiles *profiles;
    size_t machine;
    struct arena *arena;
};

static int add_batch(const struct seeing *seeing, uint32_t size, struct workload_batch *batch,
                     struct fly_error *out_error)
{
    struct epoch_points *epoch = arena_alloc(seeing->arena, 1, sizeof *epoch);
    double *epochs = arena_alloc(seeing->arena, 1, sizeof *epochs);

    if (epoch == NULL || epochs == NULL)
        return error_no_memory(out_error);
    epoch_points_of(seeing->history, seeing->profiles, seeing->machine, size, epoch);
    *epochs = epoch->reached > 0 && epoch->count > 0 ? (double)epoch->epochs / (double)epoch->reached : NAN;
    *batch = (struct workload_batch){
        .points = epoch->points, .point_count = epoch->count, .path_epochs = epochs, .path_count = 1};
    return 0;
}

static int add_batches(const struct seeing *seeing, struct batch_choice *choices,
                       struct workload_batch *batches, struct workload *workload, struct fly_error *out_error)
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
        code = add_batch(seeing, definition->batch_sizes[i], &batches[i], out_error);
        /* Failed tries can make it more than one may take; nothing is cut off here. */
        if (code == 0 && batches[i].path_epochs[0] > workload->spec.max_epochs)
            workload->spec.max_epochs = (uint32_t)ceil(batches[i].path_epochs[0]);
    }
    return code;
}

int job_pareto_workload(const struct job_history *history, const struct job_profiles *profiles,
                        size_t machine, struct arena *arena, struct workload *out_workload,
                        struct fly_error *out_error)
{
    const struct job_definition *definition = &history->definition;
    const struct job_machine *hardware = &history->machines[machine];
    const struct seeing seeing = {history, profiles, machine, arena};
    struct batch_choice *choices = arena_alloc(arena, definition->batch_count, sizeof choices[0]);
    struct workload_batch *batches = arena_alloc(arena, definition->batch_count, sizeof batches[0]);
    char *gpu = arena_alloc(arena, 1, JOB_HARDWARE_TEXT_MAX);

    if (choices == NULL || batches == NULL || gpu == NULL)
        return error_no_memory(out_error);
    *out_workload = (struct workload){
        .gpu = job_view_hardware(hardware, gpu),
        .job = {.name = definition->name},
        .spec = {.name = definition->name,
                 .batches = choices,
                 .batch_count = definition->batch_count,
                 .max_epochs = definition->max_epochs,
                 .max_power_w = hardware->max_power_w > 0.0 ? hardware->max_power_w : 1.0,
                 .gpu_count = hardware->gpu_count},
        .batches = batches,
    };
    return add_batches(&seeing, choices, batches, out_workload, out_error);
}
