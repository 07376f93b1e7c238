/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario.h"

#include <string.h>

#include "sim/world/altered.h"

enum { MEMORY_MAX = 256 << 20, SOURCE_RECURRENCES = 30, WRONG_OCTAVES = 3 };

static const double crash_share = 0.1;
static const struct fly_objective bound_3 = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = 1.03};
static const struct fly_objective bound_10 = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = 1.1};

const char *const scenario_names[] = {
    [SCENARIO_STEADY] = "steady",       [SCENARIO_SHIFT] = "shift",
    [SCENARIO_JUMP] = "jump",           [SCENARIO_SINE] = "sine",
    [SCENARIO_LEVEL] = "level",         [SCENARIO_TRIPLE] = "triple",
    [SCENARIO_GROWTH] = "growth",       [SCENARIO_UP_DOWN] = "up-down",
    [SCENARIO_BURST_2] = "burst-2",     [SCENARIO_BURST_4] = "burst-4",
    [SCENARIO_BURST_8] = "burst-8",     [SCENARIO_MEMORY] = "memory",
    [SCENARIO_CRASHES] = "crashes",     [SCENARIO_LEARNING_RATE] = "learning-rate",
    [SCENARIO_BOUND_3] = "bound-3",     [SCENARIO_BOUND_10] = "bound-10",
    [SCENARIO_OTHER_GPU] = "other-gpu", [SCENARIO_OTHER_GPU_2] = "other-gpu-2",
    [SCENARIO_OTHER_ETA] = "other-eta", [SCENARIO_WRONG_JOB] = "wrong-job",
    [SCENARIO_WRONG_UP] = "wrong-up",   [SCENARIO_WRONG_DOWN] = "wrong-down",
    [SCENARIO_COUNT] = "all",           NULL};

/* Says what the workload at `at` brings; a source of NULL for nothing. */
typedef struct transfer chooser(const struct scenario *scenario, size_t count, size_t at);

/*
 * Returns the next workload after `from`, round the list, that shares with the one at `at` either its
 * name, on another GPU, or its GPU, under another name. Returns `at` if there is none.
 */
static size_t next_of(const struct scenario *scenario, size_t count, size_t at, size_t from, bool same_name)
{
    const struct workload *workloads = scenario->workloads;

    for (size_t i = 1; i < count; i++) {
        size_t other = (from + i) % count;
        bool named_alike = strcmp(workloads[other].job.name, workloads[at].job.name) == 0;
        bool same_gpu = strcmp(workloads[other].gpu, workloads[at].gpu) == 0;

        if (named_alike == same_name && same_gpu != same_name)
            return other;
    }
    return at;
}

static struct transfer bring(const struct scenario *scenario, size_t source, size_t at, enum past_kind kind)
{
    return (struct transfer){.source = source != at ? &scenario->workloads[source] : NULL, .kind = kind};
}

static struct transfer other_gpu(const struct scenario *scenario, size_t count, size_t at)
{
    return bring(scenario, next_of(scenario, count, at, at, true), at, PAST_HARDWARE);
}

/* Nothing if the job is on two GPUs alone. */
static struct transfer other_gpu_2(const struct scenario *scenario, size_t count, size_t at)
{
    size_t next = next_of(scenario, count, at, at, true), after = next_of(scenario, count, at, next, true);

    return bring(scenario, after != next ? after : at, at, PAST_HARDWARE);
}

static struct transfer other_eta(const struct scenario *scenario, size_t count, size_t at)
{
    (void)count;
    return (struct transfer){.source = &scenario->elsewhere[at], .objective_only = true};
}

static struct transfer wrong_job(const struct scenario *scenario, size_t count, size_t at)
{
    return bring(scenario, next_of(scenario, count, at, at, false), at, PAST_JOB);
}

static struct transfer shifted(const struct scenario *scenario, size_t at, int octaves)
{
    return (struct transfer){.source = &scenario->workloads[at], .kind = PAST_JOB, .octaves = octaves};
}

static struct transfer wrong_up(const struct scenario *scenario, size_t count, size_t at)
{
    (void)count;
    return shifted(scenario, at, WRONG_OCTAVES);
}

static struct transfer wrong_down(const struct scenario *scenario, size_t count, size_t at)
{
    (void)count;
    return shifted(scenario, at, -WRONG_OCTAVES);
}

/* What a scenario changes; what is not named stays as it is. */
static const struct {
    enum drift_kind drift;
    unsigned burst;
    bool crashes;
    int (*alter)(struct workload *workload, struct arena *arena, struct fly_error *out_error);
    const struct fly_objective *objective;
    chooser *brings;
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
    [SCENARIO_BOUND_3] = {.objective = &bound_3},
    [SCENARIO_BOUND_10] = {.objective = &bound_10},
    [SCENARIO_OTHER_GPU] = {.brings = other_gpu},
    [SCENARIO_OTHER_GPU_2] = {.brings = other_gpu_2},
    [SCENARIO_OTHER_ETA] = {.brings = other_eta},
    [SCENARIO_WRONG_JOB] = {.brings = wrong_job},
    [SCENARIO_WRONG_UP] = {.brings = wrong_up},
    [SCENARIO_WRONG_DOWN] = {.brings = wrong_down},
};

/* Says what each workload brings. */
static int bring_past(struct scenario *scenario, enum scenario_kind kind, size_t count,
                      struct fly_error *out_error)
{
    scenario->transfers = arena_alloc(&scenario->arena, count, sizeof scenario->transfers[0]);
    scenario->elsewhere = arena_alloc(&scenario->arena, count, sizeof scenario->elsewhere[0]);
    if (scenario->transfers == NULL || scenario->elsewhere == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++) {
        scenario->elsewhere[i] = scenario->workloads[i];
        scenario->elsewhere[i].spec.eta = scenario->workloads[i].spec.eta > 0.5 ? 0.0 : 1.0;
        scenario->transfers[i] = changes[kind].brings(scenario, count, i);
        scenario->transfers[i].recurrences = SOURCE_RECURRENCES;
    }
    return 0;
}

int scenario_begin(struct scenario *scenario, enum scenario_kind kind, struct campaign_plan *plan,
                   struct fly_error *out_error)
{
    size_t count = plan->workload_count;
    int code = 0;

    *scenario = (struct scenario){.workloads = NULL};
    arena_init(&scenario->arena, MEMORY_MAX);
    scenario->workloads = arena_alloc(&scenario->arena, count, sizeof scenario->workloads[0]);
    if (scenario->workloads == NULL)
        code = error_no_memory(out_error);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct workload *workload = &scenario->workloads[i];

        *workload = plan->workloads[i];
        if (changes[kind].objective != NULL) {
            workload->spec.objective = changes[kind].objective;
            workload->spec.eta = objective_eta(changes[kind].objective);
        }
        drift_raise_max_epochs(workload, changes[kind].drift, plan->recurrences);
        if (changes[kind].alter != NULL)
            code = changes[kind].alter(workload, &scenario->arena, out_error);
    }
    if (code == 0 && changes[kind].brings != NULL)
        code = bring_past(scenario, kind, count, out_error);
    if (code < 0) {
        scenario_end(scenario);
        return code;
    }
    plan->workloads = scenario->workloads;
    plan->drift = changes[kind].drift;
    plan->burst = changes[kind].burst;
    plan->transfers = scenario->transfers;
    plan->crash_share = changes[kind].crashes ? crash_share : 0.0;
    return 0;
}

void scenario_end(struct scenario *scenario)
{
    arena_deinit(&scenario->arena);
}
