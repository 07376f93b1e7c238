/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario.h"

#include "sim/world/altered.h"

enum { MEMORY_MAX = 256 << 20 };

static const double crash_share = 0.1;

const char *const scenario_names[] = {
    [SCENARIO_STEADY] = "steady",   [SCENARIO_SHIFT] = "shift",
    [SCENARIO_JUMP] = "jump",       [SCENARIO_SINE] = "sine",
    [SCENARIO_LEVEL] = "level",     [SCENARIO_TRIPLE] = "triple",
    [SCENARIO_GROWTH] = "growth",   [SCENARIO_UP_DOWN] = "up-down",
    [SCENARIO_BURST_2] = "burst-2", [SCENARIO_BURST_4] = "burst-4",
    [SCENARIO_BURST_8] = "burst-8", [SCENARIO_MEMORY] = "memory",
    [SCENARIO_CRASHES] = "crashes", [SCENARIO_LEARNING_RATE] = "learning-rate",
    [SCENARIO_COUNT] = "all",       NULL};

/* What a scenario changes; what is not named stays as it is. */
static const struct {
    enum drift_kind drift;
    unsigned burst;
    bool crashes;
    int (*alter)(struct workload *workload, struct arena *arena, struct fly_error *out_error);
} changes[SCENARIO_COUNT] = {
    [SCENARIO_SHIFT] = {.drift = DRIFT_SHIFT},
    [SCENARIO_JUMP] = {.drift = DRIFT_JUMP},
    [SCENARIO_SINE] = {.drift = DRIFT_SINE},
    [SCENARIO_LEVEL] = {.drift = DRIFT_LEVEL},
    [SCENARIO_TRIPLE] = {.drift = DRIFT_TRIPLE},
    [SCENARIO_GROWTH] = {.drift = DRIFT_GROWTH},
    [SCENARIO_UP_DOWN] = {.drift = DRIFT_UP_DOWN},
    [SCENARIO_BURST_2] = {.burst = 2},
    [SCENARIO_BURST_4] = {.burst = 4},
    [SCENARIO_BURST_8] = {.burst = 8},
    [SCENARIO_MEMORY] = {.alter = altered_memory},
    [SCENARIO_CRASHES] = {.crashes = true},
    [SCENARIO_LEARNING_RATE] = {.alter = altered_learning_rate},
};

int scenario_begin(struct scenario *scenario, enum scenario_kind kind, struct campaign_plan *plan,
                   struct fly_error *out_error)
{
    size_t count = plan->workload_count;
    int code = 0;

    arena_init(&scenario->arena, MEMORY_MAX);
    scenario->workloads = arena_alloc(&scenario->arena, count, sizeof scenario->workloads[0]);
    if (scenario->workloads == NULL)
        code = error_no_memory(out_error);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct workload *workload = &scenario->workloads[i];

        *workload = plan->workloads[i];
        drift_raise_max_epochs(workload, changes[kind].drift, plan->recurrences);
        if (changes[kind].alter != NULL)
            code = changes[kind].alter(workload, &scenario->arena, out_error);
    }
    if (code < 0) {
        scenario_end(scenario);
        return code;
    }
    plan->workloads = scenario->workloads;
    plan->drift = changes[kind].drift;
    plan->burst = changes[kind].burst;
    plan->crash_share = changes[kind].crashes ? crash_share : 0.0;
    return 0;
}

void scenario_end(struct scenario *scenario)
{
    arena_deinit(&scenario->arena);
}
