/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_CONTROL_H
#define FLYBALL_EMULATOR_CONTROL_H

#include "base/clock.h"
#include "emulator/state.h"

/*
 * The other side of the emulated GPUs: with this, tests and programs put load on them, move virtual time, and
 * ask for the truth behind the readings.
 *
 *     struct emulator_settings settings = emulator_default_settings;
 *     struct emulator *emulator;
 *
 *     emulator_settings_parse(&settings, "gpus=4,time=virtual,sensor=part-time", &error);
 *     emulator_create("/tmp/state", &settings, &emulator, &error);
 *     setenv("FLYBALL_EMULATOR_STATE", "/tmp/state", 1);   (for libnvidia-ml.so.1, when it is opened)
 *     clock = emulator_clock(emulator);
 *     emulator_set_load(emulator, 0, 250.0);
 *     clock.sleep_until(clock.state, mono_after_s(start, 1.5));
 *     joules = emulator_truth_energy_j(emulator, 0, end) - emulator_truth_energy_j(emulator, 0, start);
 *     emulator_close(emulator);
 *     emulator_remove("/tmp/state", &error);
 *
 * The real time of an emulator is that of `clock_real`, so its moments can be compared with the time stamps
 * of any program on the machine. Virtual time begins at 1000 s and stands still until it is moved.
 * Thread-safe except for opening and closing. Passing the index of a GPU that does not exist is a bug and
 * aborts.
 */

unsigned emulator_gpu_count(const struct emulator *emulator);
const struct emulator_settings *emulator_settings_of(const struct emulator *emulator);

/*
 * The emulator's time as a clock; borrows the emulator. Sleeping in virtual time jumps ahead, and never
 * backwards.
 */
struct clock emulator_clock(struct emulator *emulator);
struct mono_time emulator_now(const struct emulator *emulator);

/* Moves virtual time ahead; does nothing in real time. */
void emulator_advance_s(struct emulator *emulator, double duration_s);

/*
 * Sets a load that wants `wanted_w` from now on, with full utilisation; 0 ends it. `plan` makes it begin at a
 * later moment; you may call it for many moments ahead, in any order. FLY_ELIMIT when EMULATOR_PLANNED_MAX
 * loads wait already.
 */
void emulator_set_load(struct emulator *emulator, unsigned gpu, double wanted_w);
int emulator_plan_load(struct emulator *emulator, unsigned gpu, struct mono_time at, double wanted_w,
                       struct fly_error *out_error);

/* Sets the limit without checking permissions; FLY_EUSAGE outside the board's range. */
int emulator_set_limit_w(struct emulator *emulator, unsigned gpu, double limit_w,
                         struct fly_error *out_error);
double emulator_limit_w(struct emulator *emulator, unsigned gpu);

/* The highest limit that the board enforces from now on, whatever is asked for; 0: what is asked for. */
void emulator_set_enforced_w(struct emulator *emulator, unsigned gpu, double enforced_w);

/* What the GPU is to the model (model/gpu_model.h), and the work of its recorded profile. */
const struct gpu_shape *emulator_shape(const struct emulator *emulator, unsigned gpu);
const struct emulator_workload *emulator_workload_of(const struct emulator *emulator);

/*
 * Locks the clocks below a ceiling, or unlocks them with 0, without checking permissions; FLY_EUSAGE above
 * the board's.
 */
int emulator_set_ceiling_mhz(struct emulator *emulator, unsigned gpu, unsigned ceiling_mhz,
                             struct fly_error *out_error);
/* 0: the clocks are not locked. */
unsigned emulator_ceiling_mhz(struct emulator *emulator, unsigned gpu);

/* Between which clocks the GPU and its memory are locked; a ceiling of 0: that one is not. */
struct emulator_locks {
    unsigned floor_mhz, ceiling_mhz, memory_floor_mhz, memory_ceiling_mhz;
};
struct emulator_locks emulator_locks(struct emulator *emulator, unsigned gpu);
/* Locks its memory's clock as another program would, or unlocks it with 0. */
void emulator_lock_memory(struct emulator *emulator, unsigned gpu, unsigned floor_mhz, unsigned ceiling_mhz);

/* Requests workload power profiles without checking permissions; FLY_EUSAGE for one that the board lacks. */
int emulator_request_workloads(struct emulator *emulator, unsigned gpu, const struct workload_set *wanted,
                               struct fly_error *out_error);
struct workload_set emulator_requested_workloads(struct emulator *emulator, unsigned gpu);

/*
 * The truth. The energy is counted since the emulator was made. It is exact for any moment up to now; a later
 * moment is answered as if nothing changed until then. NAN for a moment before the oldest of the newest
 * EMULATOR_SEGMENTS changes.
 */
double emulator_truth_energy_j(struct emulator *emulator, unsigned gpu, struct mono_time at);
double emulator_truth_power_w(struct emulator *emulator, unsigned gpu, struct mono_time at);
double emulator_truth_temperature_c(struct emulator *emulator, unsigned gpu, struct mono_time at);

/*
 * The truth about who drew what up to now, as account.h defines it: who works on the GPU or did, the newest
 * EMULATOR_ACCOUNTS of them, and the idle power.
 */
void emulator_truth_accounts(struct emulator *emulator, unsigned gpu, struct emulator_accounts *out_accounts);

/*
 * The readings of the board's sensors now, in mJ and mW, without latency and faults. A counter that is
 * updated by reading is not updated by this.
 */
unsigned long long emulator_counter_mj(struct emulator *emulator, unsigned gpu);
unsigned emulator_power_mw(struct emulator *emulator, unsigned gpu);

/* When the counter's value of now was made; long ago for a counter that was not updated yet. */
struct mono_time emulator_counter_made(struct emulator *emulator, unsigned gpu);

/* The sensors of a GPU; setting them takes effect at once. See state.h and counter_clock.h. */
struct emulator_sensor emulator_sensor_of(struct emulator *emulator, unsigned gpu);
void emulator_set_sensor(struct emulator *emulator, unsigned gpu, const struct emulator_sensor *sensor);

/*
 * Suspends the machine now, and wakes it after `duration_s`. No monotonic time passes and no energy is drawn;
 * dates, the driver's among them, and the clocks of counters go on.
 */
void emulator_suspend(struct emulator *emulator, double duration_s);

/* Faults by hand: sets the counter to 0; makes the GPU fall off the bus. */
void emulator_reset_counter(struct emulator *emulator, unsigned gpu);
void emulator_lose(struct emulator *emulator, unsigned gpu);
bool emulator_is_lost(struct emulator *emulator, unsigned gpu);

/* Replaces the faults by those of a script, with all counts at 0. */
void emulator_set_faults(struct emulator *emulator, const struct fault_list *faults);

/*
 * The work of this process, which nvmlDeviceGetComputeRunningProcesses then lists, and which ends when the
 * calling thread does. FLY_EEXHAUSTED when EMULATOR_SLOTS works run there already. Only the thread that began
 * a work may change or end it.
 */
int emulator_work_begin(struct emulator *emulator, unsigned gpu, const struct emulator_load *load,
                        int *out_slot, struct fly_error *out_error);

/*
 * The same for a work of that kind and MIG instance (account.h); the above computes in none. FLY_EUSAGE for
 * an instance that the GPU does not have.
 */
int emulator_work_begin_as(struct emulator *emulator, unsigned gpu, const struct emulator_role *role,
                           const struct emulator_load *load, int *out_slot, struct fly_error *out_error);
void emulator_work_change(struct emulator *emulator, unsigned gpu, int slot,
                          const struct emulator_load *load);
void emulator_work_end(struct emulator *emulator, unsigned gpu, int slot);

/*
 * The clock of the GPU's work now, relative to the highest, above 0; and by how much the work's time is
 * stretched, by the nature of its load: 1 or more.
 */
double emulator_speed(struct emulator *emulator, unsigned gpu);
double emulator_slowdown(struct emulator *emulator, unsigned gpu);

#endif
