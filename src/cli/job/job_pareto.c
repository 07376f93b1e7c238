/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/job_pareto.h"

#include "cli/job/job_view.h"

int job_pareto_of(const struct job_history *history, size_t machine, const struct job_frontier *frontier,
                  struct arena *arena, struct job_pareto *out_pareto, struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &history->definition;
    const struct fly_job_hardware *hardware = &history->machines[machine];
    struct batch_choice *choices = arena_alloc(arena, definition->batch_count, sizeof choices[0]);
    struct pareto_spread *spreads = arena_alloc(arena, definition->batch_count, sizeof spreads[0]);
    char *gpu = arena_alloc(arena, 1, JOB_HARDWARE_TEXT_MAX);

    if (choices == NULL || spreads == NULL || gpu == NULL)
        return error_no_memory(out_error);
    out_pareto->spreads = spreads;
    out_pareto->workload = (struct workload){
        .gpu = job_view_hardware(hardware, gpu),
        .job = {.name = definition->name},
        .spec = {.name = definition->name,
                 .batches = choices,
                 .batch_count = definition->batch_count,
                 .max_epochs = definition->max_epochs,
                 .max_power_w = frontier->max_power_w,
                 .gpu_count = hardware->gpu_count},
    };
    for (size_t i = 0; i < definition->batch_count; i++) {
        const struct job_frontier_batch *batch = &frontier->batches[i];

        choices[i] = (struct batch_choice){definition->batch_sizes[i], &frontier->reference.power_limit_w, 1};
        spreads[i] = (struct pareto_spread){batch->epoch.trials, batch->epoch.energy, batch->epoch.time,
                                            batch->barred};
        if (definition->batch_sizes[i] == definition->default_batch_size)
            out_pareto->workload.spec.default_batch = i;
    }
    return 0;
}
