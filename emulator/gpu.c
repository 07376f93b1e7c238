/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/gpu.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "device/nvidia/nvml_abi.h"
#include "emulator/sensor.h"
#include "emulator/workload_profiles.h"

/* The share of the highest clock that heat leaves. */
static const double hot_clock = 0.6;

/* What a load that leaves its nature out has: all of it waits for the clock. */
static const struct gpu_nature usual_nature = {.clock_share = 1.0};

/* What follows from load, limit and clocks. */
struct demand {
    double wanted_w, utilization;
    double heaviest_w;
    struct gpu_nature nature; /* of the heaviest load */
    bool working;
};

const struct emulated_board *gpu_board(const struct emulated_gpu *gpu)
{
    return &emulated_boards[gpu->board];
}

const struct gpu_shape *gpu_shape_of(const struct emulated_gpu *gpu)
{
    return &gpu->shape;
}

unsigned gpu_enforced_mw(const struct emulated_gpu *gpu)
{
    return gpu->enforced_mw > 0 && gpu->enforced_mw < gpu->limit_mw ? gpu->enforced_mw : gpu->limit_mw;
}

static void add(struct demand *demand, const struct emulator_load *load, double idle_w)
{
    if (load->wanted_w <= 0.0)
        return;
    demand->working = true;
    demand->wanted_w += fmax(load->wanted_w - idle_w, 0.0);
    demand->utilization = fmin(demand->utilization + load->utilization, 1.0);
    if (load->wanted_w > demand->heaviest_w) {
        demand->heaviest_w = load->wanted_w;
        demand->nature = load->has_nature ? load->nature : usual_nature;
    }
}

static struct demand demand_of(const struct emulated_gpu *gpu)
{
    const struct gpu_shape *shape = gpu_shape_of(gpu);
    struct demand demand = {.wanted_w = shape->idle_w, .nature = usual_nature};

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

/* How the load runs once everything has settled, and how it would run without a limit. */
struct running {
    struct demand demand;
    struct gpu_bounds bounds;
    struct gpu_pace pace, free;
};

static struct running running_of(const struct emulated_gpu *gpu)
{
    const struct gpu_shape *shape = gpu_shape_of(gpu);
    struct running running = {.demand = demand_of(gpu)};
    struct gpu_bounds unlimited;

    running.bounds =
        (struct gpu_bounds){running.demand.wanted_w, gpu_enforced_mw(gpu) / 1000.0, allowed_clock(gpu)};
    running.pace = gpu_pace_of(shape, &running.demand.nature, &running.bounds);
    unlimited = running.bounds;
    unlimited.limit_w = INFINITY;
    running.free = gpu_pace_of(shape, &running.demand.nature, &unlimited);
    return running;
}

static struct segment_change change_of(const struct emulated_gpu *gpu)
{
    struct running running = running_of(gpu);
    double static_w = gpu_static_w(gpu_shape_of(gpu), running.demand.wanted_w);
    struct segment_change change = {
        .target_w = running.pace.power_w,
        .free_w = running.free.power_w - static_w,
        .allowed = 1.0,
        .clock = running.pace.clock * workload_effect_of(gpu).speed,
        .utilization = running.demand.utilization,
        .reasons = gpu->hot ? (uint64_t)NVML_REASON_SOFTWARE_THERMAL : 0,
    };

    if (!running.demand.working)
        return (struct segment_change){.target_w = gpu_shape_of(gpu)->idle_w,
                                       .allowed = 1.0,
                                       .reasons = change.reasons | (uint64_t)NVML_REASON_IDLE};
    if (running.pace.capped) {
        change.reasons |= (uint64_t)NVML_REASON_POWER_CAP;
        change.allowed = (running.pace.power_w - static_w) / change.free_w;
    }
    if (is_clock_set(gpu) && !running.pace.capped && !gpu->hot && running.bounds.ceiling < 1.0)
        change.reasons |= (uint64_t)NVML_REASON_APPLICATION_CLOCKS;
    return change;
}

/* Workload power profiles slow all work alike. */
static struct gpu_pace with_workloads(const struct emulated_gpu *gpu, struct gpu_pace pace)
{
    double speed = workload_effect_of(gpu).speed;

    pace.clock *= speed;
    pace.slowdown /= speed;
    return pace;
}

/* The pace at a moment, with what the regulator then allows. */
static struct gpu_pace pace_at(const struct emulated_gpu *gpu, int64_t at_ns)
{
    struct running running = running_of(gpu);
    double off =
        history_allowance(&gpu->history, &gpu->inertia, at_ns) - history_newest(&gpu->history)->allowed;
    double static_w = gpu_static_w(gpu_shape_of(gpu), running.demand.wanted_w);
    double settled_w = running.pace.capped ? running.bounds.limit_w : running.demand.wanted_w;

    if (!running.demand.working)
        return (struct gpu_pace){.clock = 1.0, .slowdown = 1.0};
    if (off == 0.0)
        return with_workloads(gpu, running.pace);
    running.bounds.limit_w = settled_w + off * (running.free.power_w - static_w);
    return with_workloads(gpu, gpu_pace_of(gpu_shape_of(gpu), &running.demand.nature, &running.bounds));
}

/* The closed form of the history has no solution for two equal times. */
static double apart(double time_s, double other_s)
{
    return fabs(time_s - other_s) < 0.01 * other_s ? 1.02 * other_s : time_s;
}

static struct emulator_part part_of(const struct emulated_gpu *gpu, const struct emulator_load *load)
{
    return (struct emulator_part){.account = -1,
                                  .above_w = fmax(load->wanted_w - gpu_shape_of(gpu)->idle_w, 0.0),
                                  .share = fmin(fmax(load->utilization, 0.0), 1.0)};
}

/* From now on, the loads as they are draw what is drawn. */
static void share_out(struct emulated_gpu *gpu)
{
    struct emulator_part parts[EMULATOR_PARTS_MAX];
    uint32_t count = 0;

    parts[count++] = part_of(gpu, &gpu->scripted);
    for (int i = 0; i < EMULATOR_SLOTS; i++) {
        const struct work_slot *slot = &gpu->slots[i];

        if (!slot->used)
            continue;
        parts[count] = part_of(gpu, &slot->load);
        parts[count].account = slot->account;
        parts[count].is_present = slot->role.kind != EMULATOR_WORK_MPS_SERVER;
        count++;
    }
    accounts_set_parts(&gpu->accounts, parts, count);
}

void gpu_init(struct emulated_gpu *gpu, unsigned index, const struct emulator_settings *settings,
              const struct gpu_shape *shape, int64_t now_ns)
{
    const struct emulated_board *board = &emulated_boards[settings->board];
    double settle_s = isnan(settings->settle_s) ? board->settle_s : settings->settle_s;

    gpu->index = index;
    gpu->board = settings->board;
    gpu->shape = *shape;
    gpu->shape.name = NULL;
    gpu->enforced_mw = (unsigned)(settings->enforced_w * 1000.0 + 0.5);
    gpu->inertia = (struct inertia){
        .settle_s = settle_s,
        .limit_settle_s =
            apart(emulator_setting_or(settings, settings->limit_settle_s, board->limit_settle_s), settle_s),
        .thermal_s = board->thermal_s,
        .ambient_c = board->ambient_c,
        .heating_c_per_w = board->heating_c_per_w,
    };
    gpu->default_limit_mw = (unsigned)(gpu_shape_of(gpu)->highest_limit_w * 1000.0);
    gpu->limit_mw = gpu->default_limit_mw;
    gpu->settled_ns = now_ns;
    gpu->counter_offset_j = 1000.0 * (index + 1);
    history_start(&gpu->history, &gpu->inertia, now_ns, gpu_shape_of(gpu)->idle_w, NVML_REASON_IDLE);
    accounts_init(&gpu->accounts, now_ns);
    gpu->mps_samples = settings->mps_samples;
    share_out(gpu);
    sensor_init(gpu, settings);
}

unsigned gpu_lowest_mw(const struct emulated_gpu *gpu)
{
    return gpu->range_mw[0] != 0 ? gpu->range_mw[0] : (unsigned)(gpu->shape.lowest_limit_w * 1000.0);
}

unsigned gpu_highest_mw(const struct emulated_gpu *gpu)
{
    return gpu->range_mw[1] != 0 ? gpu->range_mw[1] : (unsigned)(gpu->shape.highest_limit_w * 1000.0);
}

void gpu_reload(struct emulated_gpu *gpu, int64_t now_ns)
{
    gpu->lost = false;
    gpu->persistent = false;
    gpu->limit_mw = gpu->default_limit_mw;
    gpu->locked_lowest_mhz = gpu->locked_highest_mhz = 0;
    gpu->memory_lowest_mhz = gpu->memory_highest_mhz = 0;
    gpu->requested = (struct workload_set){0};
    gpu_changed(gpu, now_ns);
}

/* Charges what was drawn since the last change, up to `at_ns`. */
static void charge(const struct emulated_gpu *gpu, int64_t at_ns, struct emulator_accounts *accounts)
{
    const struct segment *segment = history_newest(&gpu->history);

    if (at_ns > segment->start_ns)
        accounts_charge(accounts, history_energy_j(&gpu->history, &gpu->inertia, at_ns) - segment->energy_j,
                        gpu_shape_of(gpu)->idle_w, (double)(at_ns - segment->start_ns) / 1e9);
}

void gpu_use_up_to(struct emulated_gpu *gpu, int64_t now_ns)
{
    accounts_use_up_to(&gpu->accounts, now_ns, gpu->mps_samples);
}

void gpu_accounts_at(const struct emulated_gpu *gpu, int64_t now_ns, struct emulator_accounts *out_accounts)
{
    *out_accounts = gpu->accounts;
    charge(gpu, now_ns, out_accounts);
}

void gpu_changed(struct emulated_gpu *gpu, int64_t at_ns)
{
    struct segment_change change = change_of(gpu);

    gpu_use_up_to(gpu, at_ns);
    charge(gpu, at_ns, &gpu->accounts);
    share_out(gpu);
    /* The ring forgets old segments: the counter must sum them before. */
    sensor_sum_up_to(gpu, at_ns);
    history_append(&gpu->history, &gpu->inertia, at_ns, &change);
}

static void end_slot(struct emulated_gpu *gpu, struct work_slot *slot, int64_t at_ns)
{
    slot->used = false;
    accounts_close(&gpu->accounts, slot->account, at_ns);
    gpu_changed(gpu, at_ns);
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
        if (code == 0 || code == EOWNERDEAD)
            pthread_mutex_unlock(&slot->alive);
        end_slot(gpu, slot, slot->heard_ns > gpu->settled_ns ? slot->heard_ns : gpu->settled_ns);
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

int gpu_work_begin(struct emulated_gpu *gpu, int64_t now_ns, const struct emulator_role *role,
                   const struct emulator_load *load)
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
        slot->owner = process_self();
        slot->role = *role;
        slot->account = accounts_open(&gpu->accounts, &slot->owner, role, now_ns);
        slot->load = *load;
        slot->heard_ns = now_ns;
        slot->used = true;
        gpu_changed(gpu, now_ns);
        return i;
    }
    return -1;
}

static bool is_same_load(const struct emulator_load *one, const struct emulator_load *other)
{
    const struct gpu_nature *first = &one->nature, *second = &other->nature;

    return one->wanted_w == other->wanted_w && one->utilization == other->utilization &&
           one->has_nature == other->has_nature && first->clock_share == second->clock_share &&
           first->memory_clock == second->memory_clock && first->power_spread == second->power_spread &&
           first->wait_share == second->wait_share && first->wait_hidden == second->wait_hidden;
}

void gpu_work_change(struct emulated_gpu *gpu, int slot, int64_t now_ns, const struct emulator_load *load)
{
    struct emulator_load before = gpu->slots[slot].load;

    gpu->slots[slot].heard_ns = now_ns;
    gpu->slots[slot].load = *load;
    if (!is_same_load(&before, load))
        gpu_changed(gpu, now_ns);
}

void gpu_work_end(struct emulated_gpu *gpu, int slot, int64_t now_ns)
{
    pthread_mutex_unlock(&gpu->slots[slot].alive);
    end_slot(gpu, &gpu->slots[slot], now_ns);
}

uint64_t gpu_memory_used(const struct emulated_gpu *gpu)
{
    uint64_t total = gpu_board(gpu)->memory_bytes;
    uint64_t used = gpu->scripted.memory_bytes;

    for (int i = 0; i < EMULATOR_SLOTS; i++)
        used += gpu->slots[i].used ? gpu->slots[i].load.memory_bytes : 0;
    return used < total ? used : total;
}

double gpu_speed(const struct emulated_gpu *gpu, int64_t now_ns)
{
    return pace_at(gpu, now_ns).clock;
}

double gpu_slowdown(const struct emulated_gpu *gpu, int64_t now_ns)
{
    return pace_at(gpu, now_ns).slowdown;
}
