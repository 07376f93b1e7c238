/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/operating_points.h"

#include "sim/world/oracle.h"

static const char *const reason_texts[] = {
    [LEFT_OUT_UNPOWERED] = "the power file has no row of it",
    [LEFT_OUT_UNREACHED] = "none of its recorded runs reaches the target",
    [LEFT_OUT_UNBOUNDED] = "its time or energy is not a finite number above 0",
};
_Static_assert(sizeof reason_texts / sizeof reason_texts[0] == LEFT_OUT_REASON_COUNT,
               "a text for every reason");

const char *left_out_text(enum left_out_reason reason)
{
    return reason_texts[reason];
}

int operating_points_of(const struct workload *workload, struct arena *arena,
                        struct operating_points *out_points, struct fly_error *out_error)
{
    const struct batch_choice *usual = &workload->spec.batches[workload->spec.default_batch];
    size_t trained = workload->spec.batch_count, count = trained + workload->left_out_count;
    struct batch_figures *figures = arena_alloc(arena, count, sizeof figures[0]);

    if (figures == NULL)
        return error_no_memory(out_error);
    for (size_t b = 0; b < trained; b++)
        figures[b] = (struct batch_figures){.batch_size = workload->spec.batches[b].size,
                                            .points = workload->batches[b].points,
                                            .point_count = workload->batches[b].point_count,
                                            .epochs = oracle_expected_epochs(workload, b)};
    for (size_t i = 0; i < workload->left_out_count; i++)
        figures[trained + i] = (struct batch_figures){.batch_size = workload->left_out[i], .unpowered = true};
    return batch_points_of(figures, count,
                           (struct fly_operating_point){.batch_size = usual->size,
                                                        .power_limit_w = batch_highest_limit_w(usual)},
                           arena, out_points, out_error);
}
