/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/gpu.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "device/nvidia/nvml_abi.h"
#include "emulator/sensor.h"
#include "emulator/workload_profiles.h"

/* The share of the highest clock that heat leaves. */
static const double hot_clock = 0.6;

/* What follows from load, limit and clocks. */
struct demand {
    double wanted_w, utilization;
    bool working;
};

const struct emulated_board *gpu_board(const struct emulated_gpu *gpu)
{
    return &emulated_boards[gpu->board];
}

const struct gpu_shape *gpu_shape_of(const struct emulated_gpu *gpu)
{
    return gpu_shape_find(gpu_board(gpu)->name);
}

static void add(struct demand *demand, const struct emulator_load *load, double idle_w)
{
    if (load->wanted_w <= 0.0)
        return;
    demand->working = true;
    demand->wanted_w += fmax(load->wanted_w - idle_w, 0.0);
    demand->utilization = fmin(demand->utilization + load->utilization, 1.0);
}

static struct demand demand_of(const struct emulated_gpu *gpu)
{
    const struct gpu_shape *shape = gpu_shape_of(gpu);
    struct demand demand = {.wanted_w = shape->idle_w};

    add(&demand, &gpu->scripted, shape->idle_w);
    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        if (gpu->slots[i].used)
            add(&demand, &gpu->slots[i].load, shape->idle_w);
    }
    demand.wanted_w = fmin(demand.wanted_w, shape->busy_w);
    demand.wanted_w = shape->idle_w + (demand.wanted_w - shape->idle_w) * workload_effect_of(gpu).power;
    return demand;
}

/* Whether somebody set the clock. */
static bool is_clock_set(const struct emulated_gpu *gpu)
{
    return gpu->locked_highest_mhz > 0 || gpu->application_mhz > 0;
}

/* The highest clock that locks, the applications' clock and heat allow. */
static double allowed_clock(const struct emulated_gpu *gpu)
{
    double clock = 1.0;

    if (gpu->locked_highest_mhz > 0)
        clock = fmin(clock, (double)gpu->locked_highest_mhz / gpu_board(gpu)->highest_mhz);
    if (gpu->application_mhz > 0)
        clock = fmin(clock, (double)gpu->application_mhz / gpu_board(gpu)->highest_mhz);
    return gpu->hot ? fmin(clock, hot_clock) : clock;
}

static struct segment_change change_of(const struct emulated_gpu *gpu)
{
    const struct gpu_shape *shape = gpu_shape_of(gpu);
    struct demand demand = demand_of(gpu);
    struct workload_effect effect = workload_effect_of(gpu);
    struct gpu_bounds bounds = {demand.wanted_w, gpu->limit_mw / 1000.0, allowed_clock(gpu)};
    struct gpu_pace pace = gpu_pace_of(shape, &(struct gpu_nature){.clock_share = 1.0}, &bounds);
    struct segment_change change = {
        .target_w = pace.power_w,
        .clock = pace.clock * effect.speed,
        .utilization = demand.utilization,
        .reasons = gpu->hot ? (uint64_t)NVML_REASON_SOFTWARE_THERMAL : 0,
    };

    if (!demand.working)
        return (struct segment_change){.target_w = shape->idle_w,
                                       .reasons = change.reasons | (uint64_t)NVML_REASON_IDLE};
    if (pace.capped)
        change.reasons |= (uint64_t)NVML_REASON_POWER_CAP;
    if (is_clock_set(gpu) && !pace.capped && !gpu->hot && bounds.ceiling < 1.0)
        change.reasons |= (uint64_t)NVML_REASON_APPLICATION_CLOCKS;
    return change;
}

void gpu_init(struct emulated_gpu *gpu, unsigned index, const struct emulator_settings *settings,
              int64_t now_ns)
{
    const struct emulated_board *board = &emulated_boards[settings->board];

    gpu->index = index;
    gpu->board = settings->board;
    gpu->inertia = (struct inertia){
        .settle_s = isnan(settings->settle_s) ? board->settle_s : settings->settle_s,
        .thermal_s = board->thermal_s,
        .ambient_c = board->ambient_c,
        .heating_c_per_w = board->heating_c_per_w,
    };
    gpu->default_limit_mw = (unsigned)(gpu_shape_of(gpu)->highest_limit_w * 1000.0);
    gpu->limit_mw = gpu->default_limit_mw;
    gpu->settled_ns = now_ns;
    gpu->counter_offset_j = 1000.0 * (index + 1);
    history_start(&gpu->history, &gpu->inertia, now_ns, gpu_shape_of(gpu)->idle_w, NVML_REASON_IDLE);
    sensor_init(gpu, settings);
}

void gpu_changed(struct emulated_gpu *gpu, int64_t at_ns)
{
    struct segment_change change = change_of(gpu);

    /* The ring forgets old segments: the counter must sum them before. */
    sensor_sum_up_to(gpu, at_ns);
    history_append(&gpu->history, &gpu->inertia, at_ns, &change);
}

/* A dead process no longer holds its lock; its work ended when it was last heard of, at the earliest. */
static void bury(struct emulated_gpu *gpu)
{
    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        struct work_slot *slot = &gpu->slots[i];
        int code;

        if (!slot->used)
            continue;
        code = pthread_mutex_trylock(&slot->alive);
        if (code == EBUSY)
            continue;
        if (code == EOWNERDEAD)
            pthread_mutex_consistent(&slot->alive);
        slot->used = false;
        if (code == 0 || code == EOWNERDEAD)
            pthread_mutex_unlock(&slot->alive);
        gpu_changed(gpu, slot->heard_ns > gpu->settled_ns ? slot->heard_ns : gpu->settled_ns);
    }
}

int64_t gpu_settle(struct emulated_gpu *gpu, int64_t now_ns)
{
    uint32_t begun = 0;

    if (now_ns < gpu->settled_ns)
        now_ns = gpu->settled_ns;
    bury(gpu);
    while (begun < gpu->planned_count && gpu->planned[begun].at_ns <= now_ns) {
        gpu->scripted = gpu->planned[begun].load;
        gpu_changed(gpu, gpu->planned[begun].at_ns);
        begun++;
    }
    if (begun > 0) {
        gpu->planned_count -= begun;
        memmove(gpu->planned, gpu->planned + begun, gpu->planned_count * sizeof gpu->planned[0]);
    }
    sensor_sum_up_to(gpu, now_ns);
    gpu->settled_ns = now_ns;
    return now_ns;
}

bool gpu_plan(struct emulated_gpu *gpu, int64_t at_ns, const struct emulator_load *load)
{
    uint32_t place = gpu->planned_count;

    if (gpu->planned_count == EMULATOR_PLANNED_MAX)
        return false;
    while (place > 0 && gpu->planned[place - 1].at_ns > at_ns) {
        gpu->planned[place] = gpu->planned[place - 1];
        place--;
    }
    gpu->planned[place] = (struct planned_load){at_ns, *load};
    gpu->planned_count++;
    return true;
}

int gpu_work_begin(struct emulated_gpu *gpu, int64_t now_ns, const struct emulator_load *load)
{
    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        struct work_slot *slot = &gpu->slots[i];
        int code;

        if (slot->used)
            continue;
        code = pthread_mutex_trylock(&slot->alive);
        if (code == EOWNERDEAD)
            pthread_mutex_consistent(&slot->alive);
        else if (code != 0)
            continue;
        slot->pid = getpid();
        slot->used = true;
        slot->load = (struct emulator_load){.wanted_w = 0.0};
        gpu_work_change(gpu, i, now_ns, load);
        return i;
    }
    return -1;
}

void gpu_work_change(struct emulated_gpu *gpu, int slot, int64_t now_ns, const struct emulator_load *load)
{
    struct emulator_load before = gpu->slots[slot].load;

    gpu->slots[slot].heard_ns = now_ns;
    gpu->slots[slot].load = *load;
    if (before.wanted_w != load->wanted_w || before.utilization != load->utilization)
        gpu_changed(gpu, now_ns);
}

void gpu_work_end(struct emulated_gpu *gpu, int slot, int64_t now_ns)
{
    gpu->slots[slot].used = false;
    pthread_mutex_unlock(&gpu->slots[slot].alive);
    gpu_changed(gpu, now_ns);
}

uint64_t gpu_memory_used(const struct emulated_gpu *gpu)
{
    uint64_t total = gpu_board(gpu)->memory_bytes;
    uint64_t used = gpu->scripted.memory_bytes;

    for (int i = 0; i < EMULATOR_SLOTS; i++)
        used += gpu->slots[i].used ? gpu->slots[i].load.memory_bytes : 0;
    return used < total ? used : total;
}

double gpu_speed(const struct emulated_gpu *gpu)
{
    double clock = history_newest(&gpu->history)->clock;

    return clock > 0.0 ? clock : 1.0;
}
