/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/control.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "emulator/gpu.h"
#include "emulator/sensor.h"
#include "emulator/workload_profiles.h"

/* A GPU under the lock, settled at the state's current time. */
struct hold {
    struct emulator_state *state;
    struct emulated_gpu *gpu;
    int64_t now_ns;
};

static struct hold take(const struct emulator *emulator, unsigned gpu)
{
    struct hold hold = {.state = emulator->state};

    if (gpu >= hold.state->gpu_count) {
        fprintf(stderr, "emulator: defect: GPU %u of %u\n", gpu, hold.state->gpu_count);
        abort();
    }
    state_lock(hold.state);
    hold.gpu = &hold.state->gpus[gpu];
    hold.now_ns = gpu_settle(hold.gpu, state_now_ns(hold.state));
    return hold;
}

static void give(const struct hold *hold)
{
    state_unlock(hold->state);
}

unsigned emulator_gpu_count(const struct emulator *emulator)
{
    return emulator->state->gpu_count;
}

const struct emulator_settings *emulator_settings_of(const struct emulator *emulator)
{
    return &emulator->state->settings;
}

static struct mono_time clock_now(void *emulator)
{
    return emulator_now(emulator);
}

static struct wall_time clock_date(void *data)
{
    const struct emulator *emulator = data;
    const struct emulator_state *state = emulator->state;

    if (!state->settings.virtual_time)
        return clock_real.date(NULL);
    return (struct wall_time){state_date_ns(state, state_now_ns(state))};
}

static void clock_sleep_until(void *data, struct mono_time when)
{
    struct emulator *emulator = data;

    if (emulator->state->settings.virtual_time)
        state_advance_to(emulator->state, when.ns);
    else
        clock_real.sleep_until(NULL, when);
}

struct clock emulator_clock(struct emulator *emulator)
{
    return (struct clock){.name = emulator->state->settings.virtual_time ? "emulator's virtual"
                                                                         : "emulator's real",
                          .now = clock_now,
                          .date = clock_date,
                          .sleep_until = clock_sleep_until,
                          .state = emulator};
}

struct mono_time emulator_now(const struct emulator *emulator)
{
    return (struct mono_time){state_now_ns(emulator->state)};
}

void emulator_advance_s(struct emulator *emulator, double duration_s)
{
    if (emulator->state->settings.virtual_time)
        state_spend(emulator->state, duration_s, false);
}

static struct emulator_load full_load(double wanted_w)
{
    return (struct emulator_load){.wanted_w = wanted_w, .utilization = wanted_w > 0.0 ? 1.0 : 0.0};
}

void emulator_set_load(struct emulator *emulator, unsigned gpu, double wanted_w)
{
    struct hold hold = take(emulator, gpu);

    hold.gpu->scripted = full_load(wanted_w);
    gpu_changed(hold.gpu, hold.now_ns);
    give(&hold);
}

int emulator_plan_load(struct emulator *emulator, unsigned gpu, struct mono_time at, double wanted_w,
                       struct fly_error *out_error)
{
    struct hold hold = take(emulator, gpu);
    struct emulator_load load = full_load(wanted_w);
    bool planned = gpu_plan(hold.gpu, at.ns, &load);

    give(&hold);
    if (planned)
        return 0;
    return error_set(out_error, FLY_ELIMIT,
                     "GPU %u of the emulator has %d planned loads; let time pass first", gpu,
                     EMULATOR_PLANNED_MAX);
}

int emulator_set_limit_w(struct emulator *emulator, unsigned gpu, double limit_w, struct fly_error *out_error)
{
    struct hold hold = take(emulator, gpu);
    const struct gpu_shape *shape = gpu_shape_of(hold.gpu);
    bool possible = limit_w >= shape->lowest_limit_w && limit_w <= shape->highest_limit_w;

    if (possible) {
        hold.gpu->limit_mw = (unsigned)(limit_w * 1000.0 + 0.5);
        gpu_changed(hold.gpu, hold.now_ns);
    }
    give(&hold);
    if (possible)
        return 0;
    return error_set(out_error, FLY_EUSAGE, "power limit %g W of GPU %u of the emulator: expected %g to %g W",
                     limit_w, gpu, shape->lowest_limit_w, shape->highest_limit_w);
}

double emulator_limit_w(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    double limit_w = hold.gpu->limit_mw / 1000.0;

    give(&hold);
    return limit_w;
}

void emulator_set_enforced_w(struct emulator *emulator, unsigned gpu, double enforced_w)
{
    struct hold hold = take(emulator, gpu);

    hold.gpu->enforced_mw = (unsigned)(fmax(enforced_w, 0.0) * 1000.0 + 0.5);
    gpu_changed(hold.gpu, hold.now_ns);
    give(&hold);
}

const struct gpu_shape *emulator_shape(const struct emulator *emulator, unsigned gpu)
{
    return &emulator->state->gpus[gpu].shape;
}

const struct emulator_workload *emulator_workload_of(const struct emulator *emulator)
{
    return &emulator->state->workload;
}

int emulator_set_ceiling_mhz(struct emulator *emulator, unsigned gpu, unsigned ceiling_mhz,
                             struct fly_error *out_error)
{
    struct hold hold = take(emulator, gpu);
    const struct emulated_board *board = gpu_board(hold.gpu);
    bool possible = ceiling_mhz == 0 || (ceiling_mhz >= board->idle_mhz && ceiling_mhz <= board->highest_mhz);

    if (possible) {
        hold.gpu->locked_lowest_mhz = 0;
        hold.gpu->locked_highest_mhz = ceiling_mhz;
        gpu_changed(hold.gpu, hold.now_ns);
    }
    give(&hold);
    if (possible)
        return 0;
    return error_set(out_error, FLY_EUSAGE,
                     "ceiling of %u MHz on GPU %u of the emulator: expected %u to %u MHz, or 0", ceiling_mhz,
                     gpu, board->idle_mhz, board->highest_mhz);
}

struct emulator_locks emulator_locks(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    struct emulator_locks locks = {hold.gpu->locked_lowest_mhz, hold.gpu->locked_highest_mhz,
                                   hold.gpu->memory_lowest_mhz, hold.gpu->memory_highest_mhz};

    give(&hold);
    return locks;
}

void emulator_lock_memory(struct emulator *emulator, unsigned gpu, unsigned floor_mhz, unsigned ceiling_mhz)
{
    struct hold hold = take(emulator, gpu);

    hold.gpu->memory_lowest_mhz = floor_mhz;
    hold.gpu->memory_highest_mhz = ceiling_mhz;
    give(&hold);
}

unsigned emulator_ceiling_mhz(struct emulator *emulator, unsigned gpu)
{
    return emulator_locks(emulator, gpu).ceiling_mhz;
}

int emulator_request_workloads(struct emulator *emulator, unsigned gpu, const struct workload_set *wanted,
                               struct fly_error *out_error)
{
    struct hold hold = take(emulator, gpu);
    struct workload_set supported = workloads_supported(hold.gpu);
    bool possible = workload_is_within(wanted, &supported);
    char text[WORKLOAD_TEXT_MAX];

    if (possible) {
        hold.gpu->requested = *wanted;
        gpu_changed(hold.gpu, hold.now_ns);
    }
    give(&hold);
    if (possible)
        return 0;
    return error_set(out_error, FLY_EUSAGE,
                     "workload power profiles on GPU %u of the emulator: expected of %s", gpu,
                     workload_text(&supported, text));
}

struct workload_set emulator_requested_workloads(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    struct workload_set requested = hold.gpu->requested;

    give(&hold);
    return requested;
}

static double truth(struct emulator *emulator, unsigned gpu, struct mono_time at,
                    double (*ask)(const struct history *, const struct inertia *, int64_t))
{
    struct hold hold = take(emulator, gpu);
    double value = NAN;

    if (at.ns >= history_known_ns(&hold.gpu->history))
        value = ask(&hold.gpu->history, &hold.gpu->inertia, at.ns);
    give(&hold);
    return value;
}

double emulator_truth_energy_j(struct emulator *emulator, unsigned gpu, struct mono_time at)
{
    return truth(emulator, gpu, at, history_energy_j);
}

double emulator_truth_power_w(struct emulator *emulator, unsigned gpu, struct mono_time at)
{
    return truth(emulator, gpu, at, history_power_w);
}

double emulator_truth_temperature_c(struct emulator *emulator, unsigned gpu, struct mono_time at)
{
    return truth(emulator, gpu, at, history_temperature_c);
}

void emulator_truth_accounts(struct emulator *emulator, unsigned gpu, struct emulator_accounts *out_accounts)
{
    struct hold hold = take(emulator, gpu);

    gpu_accounts_at(hold.gpu, hold.now_ns, out_accounts);
    give(&hold);
}

unsigned long long emulator_counter_mj(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    unsigned long long energy_mj = sensor_counter_mj(hold.gpu, hold.now_ns);

    give(&hold);
    return energy_mj;
}

unsigned emulator_power_mw(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    unsigned power_mw = sensor_usage_mw(hold.gpu, hold.now_ns);

    give(&hold);
    return power_mw;
}

struct emulator_sensor emulator_sensor_of(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    struct emulator_sensor sensor = hold.gpu->sensor;

    give(&hold);
    return sensor;
}

void emulator_set_sensor(struct emulator *emulator, unsigned gpu, const struct emulator_sensor *sensor)
{
    struct hold hold = take(emulator, gpu);

    sensor_change(hold.gpu, sensor, hold.now_ns);
    give(&hold);
}

void emulator_reset_counter(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);

    sensor_reset_counter(hold.gpu, hold.now_ns);
    give(&hold);
}

struct mono_time emulator_counter_made(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    struct mono_time made = {sensor_counter_made_ns(hold.gpu, hold.now_ns)};

    give(&hold);
    return made;
}

void emulator_suspend(struct emulator *emulator, double duration_s)
{
    int64_t duration_ns = (int64_t)(duration_s * 1e9 + 0.5);

    for (unsigned gpu = 0; gpu < emulator->state->gpu_count; gpu++) {
        struct hold hold = take(emulator, gpu);

        sensor_sleep(hold.gpu, hold.now_ns, duration_ns);
        give(&hold);
    }
    state_lock(emulator->state);
    emulator->state->sleeps.more_ns += duration_ns;
    state_unlock(emulator->state);
}

void emulator_lose(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);

    hold.gpu->lost = true;
    give(&hold);
}

bool emulator_is_lost(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    bool lost = hold.gpu->lost;

    give(&hold);
    return lost;
}

void emulator_set_faults(struct emulator *emulator, const struct fault_list *faults)
{
    struct emulator_state *state = emulator->state;

    state_lock(state);
    state->faults = *faults;
    for (int i = 0; i < FAULTS_MAX; i++) {
        state->met[i] = 0;
        state->struck[i] = false;
    }
    state_unlock(state);
}

int emulator_work_begin(struct emulator *emulator, unsigned gpu, const struct emulator_load *load,
                        int *out_slot, struct fly_error *out_error)
{
    static const struct emulator_role plain = {EMULATOR_WORK_COMPUTE, -1};

    return emulator_work_begin_as(emulator, gpu, &plain, load, out_slot, out_error);
}

int emulator_work_begin_as(struct emulator *emulator, unsigned gpu, const struct emulator_role *role,
                           const struct emulator_load *load, int *out_slot, struct fly_error *out_error)
{
    struct hold hold;
    int slot;

    if (role->instance >= (int)emulator_instances(&emulator->state->settings, gpu))
        return error_set(out_error, FLY_EUSAGE,
                         "GPU %u of the emulator has %u MIG instances, and none of number %d; count from 0",
                         gpu, emulator_instances(&emulator->state->settings, gpu), role->instance);
    hold = take(emulator, gpu);
    slot = gpu_work_begin(hold.gpu, hold.now_ns, role, load);
    give(&hold);
    if (slot < 0)
        return error_set(out_error, FLY_EEXHAUSTED,
                         "%d programs work on GPU %u of the emulator; end one first", EMULATOR_SLOTS, gpu);
    *out_slot = slot;
    return 0;
}

void emulator_work_change(struct emulator *emulator, unsigned gpu, int slot, const struct emulator_load *load)
{
    struct hold hold = take(emulator, gpu);

    gpu_work_change(hold.gpu, slot, hold.now_ns, load);
    give(&hold);
}

void emulator_work_end(struct emulator *emulator, unsigned gpu, int slot)
{
    struct hold hold = take(emulator, gpu);

    gpu_work_end(hold.gpu, slot, hold.now_ns);
    give(&hold);
}

double emulator_speed(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    double speed = gpu_speed(hold.gpu, hold.now_ns);

    give(&hold);
    return speed;
}

double emulator_slowdown(struct emulator *emulator, unsigned gpu)
{
    struct hold hold = take(emulator, gpu);
    double slowdown = gpu_slowdown(hold.gpu, hold.now_ns);

    give(&hold);
    return slowdown;
}
