/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_STATE_H
#define FLYBALL_EMULATOR_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "device/workloads.h"
#include "emulator/account.h"
#include "emulator/counter_clock.h"
#include "emulator/fault.h"
#include "emulator/history.h"
#include "emulator/leftover.h"
#include "emulator/settings.h"
#include "model/gpu_model.h"

/*
 * The emulated machine: one file, mapped by every process that uses it.
 *
 * A robust mutex in it guards everything. A process that dies while it holds the mutex leaves usable data,
 * because what is counted is written before its count. A file of another layout that nobody uses and one of
 * an earlier boot are treated as missing; see leftover.h.
 */
enum { EMULATOR_SLOTS = 16, EMULATOR_PLANNED_MAX = 1024 };

/* A load on a GPU. 0 W wanted means no work. Of several loads, the nature of the heaviest one counts. */
struct emulator_load {
    double wanted_w;    /* drawn without a limit at full clock */
    double utilization; /* 0 .. 1 */
    uint64_t memory_bytes;
    bool has_nature;          /* otherwise all of it waits for the clock */
    struct gpu_nature nature; /* how it answers to the clock */
};

/* The work of a recorded profile. */
struct emulator_workload {
    bool is_known;
    double wanted_w;
    double full_clock_s; /* time of a step at full clock; 0: the profile does not say */
    struct gpu_nature nature;
};

struct planned_load {
    int64_t at_ns;
    struct emulator_load load;
};

/* A process that works on a GPU. It holds `alive` while it lives, so its death shows by itself. */
struct work_slot {
    pthread_mutex_t alive;
    bool used;
    struct emulator_owner owner;
    int64_t heard_ns; /* the last moment at which it was surely at work */
    struct emulator_role role;
    int account; /* in the GPU's accounts */
    struct emulator_load load;
};

/* How readings are made, in nanoseconds; with a period of 0 each answer is fresh. */
struct emulator_sensor {
    struct counter_clock counter;
    bool counter_on_read; /* an update happens when the counter is read, at the earliest a period after the
                           * last */
    uint64_t counter_step_mj; /* 1 or more: the counter shows multiples of it */
    enum emulator_stamps stamps;
    int64_t stamps_late_ns; /* of EMULATOR_STAMPS_LATE */
    int64_t power_period_ns, power_phase_ns;
    double instant_window_s; /* < 0: there is no such reading */
    double average_window_s; /* < 0: there is no such reading */
    bool usage_is_average;
    bool counter_from_power, counter_missing;
    double gain, noise_w;
    uint32_t seed;
};

struct emulated_gpu {
    unsigned index;
    uint64_t machine;       /* 48 bits that distinguish it from the GPUs of other states */
    unsigned board;         /* in emulated_boards */
    struct gpu_shape shape; /* its name is NULL: processes map the state at different places */
    struct inertia inertia;
    struct emulator_sensor sensor;
    unsigned limit_mw, default_limit_mw;
    unsigned range_mw[2]; /* the lowest and the highest limit that are taken; 0: those of the board */
    unsigned step_mw;     /* to which limits are rounded down; 0: they are not */
    unsigned enforced_mw; /* no limit above this holds, whatever is asked for; 0: none */
    unsigned locked_lowest_mhz, locked_highest_mhz; /* 0: not locked */
    unsigned memory_lowest_mhz, memory_highest_mhz;
    struct workload_set requested; /* workload power profiles */
    unsigned application_mhz;      /* graphics clock of applications; 0: the default */
    bool applications_open;        /* every user may set it */
    unsigned compute_mode;         /* enum nvml_compute_mode */
    bool persistent, lost, hot;
    int64_t settled_ns;            /* the history contains everything up to here */
    double counter_offset_j;       /* added to the energy drawn */
    int64_t counter_least_ns;      /* the counter's value was made then, or later */
    double counter_read_j;         /* as last read, if reading updates the counter */
    int64_t summed_tick;           /* the last power reading in the sum */
    double summed_j;               /* of the power readings, if the counter is their sum */
    struct emulator_load scripted; /* set by the control interface */
    struct work_slot slots[EMULATOR_SLOTS];
    uint32_t planned_count;
    struct planned_load planned[EMULATOR_PLANNED_MAX]; /* ordered by time */
    struct emulator_accounts accounts;
    enum emulator_mps_samples mps_samples;
    struct history history;
};
_Static_assert(EMULATOR_PARTS_MAX == EMULATOR_SLOTS + 1, "a part for every work and for the scripted load");

struct emulator_state {
    char magic[sizeof state_magic];
    char boot[STATE_BOOT_BYTES];
    uint64_t bytes; /* of the file, for the GPUs that there are */
    bool owned;     /* goes with the process that holds the file's lock; see owner.h */
    pthread_mutex_t mutex;
    struct emulator_settings settings;
    struct emulator_workload workload;
    int64_t identity; /* differs from other states' */
    int64_t created_ns;
    int64_t created_date_ns;
    struct sleeps sleeps;
    _Atomic int64_t virtual_ns;
    struct fault_list faults;
    uint64_t met[FAULTS_MAX]; /* selected calls, counted over all processes */
    bool struck[FAULTS_MAX];  /* faults of moments that have happened */
    unsigned gpu_count;
    struct emulated_gpu gpus[EMULATOR_GPUS_MAX];
};

/* A mapping of the state. */
struct emulator {
    struct emulator_state *state;
    char path[EMULATOR_PATH_MAX];
    int owner_fd; /* holds the lock of an owned state; -1: somebody else's, or nobody's */
};

/*
 * FLYBALL_EMULATOR_STATE, or /dev/shm/flyball-emulator-UID, or the same in TMPDIR; false when it is too long.
 */
bool emulator_default_path(char out_path[EMULATOR_PATH_MAX]);

/*
 * Makes the machine and opens it; `path` NULL means the default path. Returns FLY_ESTATE when there is one
 * already, FLY_EBUSY when a process uses one of another layout, FLY_EWRITE, FLY_ELIMIT, and the errors of a
 * fault script.
 */
int emulator_create(const char *path, const struct emulator_settings *settings,
                    struct emulator **out_emulator, struct fly_error *out_error);

/* Makes a machine that goes with this process, however it ends; see owner.h. */
int emulator_create_owned(const char *path, const struct emulator_settings *settings,
                          struct emulator **out_emulator, struct fly_error *out_error);

/* Opens it. Returns FLY_ENOTFOUND when there is none, FLY_EPERM, FLY_EDATA for another kind of file. */
int emulator_open(const char *path, struct emulator **out_emulator, struct fly_error *out_error);

/* Opens it, or makes one by the variable FLYBALL_EMULATOR. */
int emulator_open_or_create(const char *path, struct emulator **out_emulator, struct fly_error *out_error);

/* Unmaps it; the file stays. Accepts NULL. */
void emulator_close(struct emulator *emulator);

/* Removes the file; processes that have mapped it keep their mapping. Returns FLY_ENOTFOUND, FLY_EWRITE. */
int emulator_remove(const char *path, struct fly_error *out_error);

void state_lock(struct emulator_state *state);
void state_unlock(struct emulator_state *state);

/* The state's time, and the date of one of its moments. Real time does not show that the machine slept. */
int64_t state_now_ns(const struct emulator_state *state);
int64_t state_date_ns(const struct emulator_state *state, int64_t at_ns);

/* Lets `duration_s` pass: sleeps, spins, or moves virtual time. Do not call it under the lock. */
void state_spend(struct emulator_state *state, double duration_s, bool busy);

/* Moves virtual time to `ns`, unless it is there already. */
void state_advance_to(struct emulator_state *state, int64_t ns);

#endif
