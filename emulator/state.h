/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_STATE_H
#define FLYBALL_EMULATOR_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emulator/fault.h"
#include "emulator/history.h"
#include "emulator/settings.h"

/*
 * The emulated machine: one file, mapped by every process that takes part.
 *
 * A robust mutex in it guards everything; who dies with it leaves data that the
 * next one can use, because what is counted is written before its count. A file
 * of another version or of an earlier boot does not count as there.
 */
enum { EMULATOR_SLOTS = 16, EMULATOR_PLANNED_MAX = 1024 };

/* What works on a GPU. A want of 0 W is no work. */
struct emulator_load {
    double wanted_w;    /* drawn without a limit at full clock */
    double utilization; /* 0 .. 1 */
    uint64_t memory_bytes;
};

struct planned_load {
    int64_t at_ns;
    struct emulator_load load;
};

/* A process that works on a GPU; it holds `alive` while it lives, so its death shows without asking. */
struct work_slot {
    pthread_mutex_t alive;
    bool used;
    pid_t pid;
    int64_t heard_ns; /* the last moment at which it was surely at work */
    struct emulator_load load;
};

/* How readings come about, in nanoseconds; a period of 0 answers afresh. */
struct emulator_sensor {
    int64_t counter_period_ns, counter_phase_ns;
    int64_t power_period_ns, power_phase_ns;
    double instant_window_s; /* < 0: there is no such reading */
    double average_window_s; /* < 0: there is no such reading */
    bool usage_is_average;
    bool counter_from_power;
    double gain, noise_w;
    uint32_t seed;
};

struct emulated_gpu {
    unsigned index;
    uint64_t machine; /* 48 bits that tell it from the GPUs of other states */
    unsigned board;   /* in emulated_boards */
    struct inertia inertia;
    struct emulator_sensor sensor;
    unsigned limit_mw, default_limit_mw;
    unsigned locked_lowest_mhz, locked_highest_mhz; /* 0: not locked */
    unsigned memory_lowest_mhz, memory_highest_mhz;
    bool persistent, lost, hot;
    int64_t settled_ns;            /* everything up to here is in the history */
    double counter_offset_j;       /* added to what was drawn */
    int64_t summed_tick;           /* of the power readings, the last in the sum */
    double summed_j;               /* of the power readings, where the counter sums those */
    struct emulator_load scripted; /* what the control interface put on it */
    struct work_slot slots[EMULATOR_SLOTS];
    uint32_t planned_count;
    struct planned_load planned[EMULATOR_PLANNED_MAX]; /* in order of time */
    struct history history;
};

struct emulator_state {
    char magic[32]; /* of the layout */
    char boot[40];
    uint64_t bytes; /* of the file: as many GPUs as there are */
    pthread_mutex_t mutex;
    struct emulator_settings settings;
    int64_t identity; /* differs from that of other states */
    int64_t created_ns;
    int64_t created_date_ns;
    _Atomic int64_t virtual_ns;
    struct fault_list faults;
    uint64_t met[FAULTS_MAX]; /* selected calls, counted over all processes */
    bool struck[FAULTS_MAX];  /* the faults of moments that had their effect */
    unsigned gpu_count;
    struct emulated_gpu gpus[EMULATOR_GPUS_MAX];
};

/* A mapping of it. */
struct emulator {
    struct emulator_state *state;
    char path[EMULATOR_PATH_MAX];
};

/* FLYBALL_EMULATOR_STATE, or /dev/shm/flyball-emulator-UID, or the same in TMPDIR; false when it is too long.
 */
bool emulator_default_path(char out_path[EMULATOR_PATH_MAX]);

/*
 * Makes the machine and opens it; `path` NULL stands for the default one.
 * FLY_ESTATE when there is one already, FLY_EWRITE, FLY_ELIMIT, and what a fault
 * script can bring.
 */
int emulator_create(const char *path, const struct emulator_settings *settings,
                    struct emulator **out_emulator, struct fly_error *out_error);

/* Opens it: FLY_ENOTFOUND when there is none, FLY_EPERM, FLY_EDATA for a file that is none. */
int emulator_open(const char *path, struct emulator **out_emulator, struct fly_error *out_error);

/* Opens it, or makes one as the variable FLYBALL_EMULATOR says. */
int emulator_open_or_create(const char *path, struct emulator **out_emulator, struct fly_error *out_error);

/* Unmaps it; the file stays. Accepts NULL. */
void emulator_close(struct emulator *emulator);

/* Removes the file; whoever has it mapped keeps what is mapped. FLY_ENOTFOUND, FLY_EWRITE. */
int emulator_remove(const char *path, struct fly_error *out_error);

void state_lock(struct emulator_state *state);
void state_unlock(struct emulator_state *state);

/* The state's time. */
int64_t state_now_ns(const struct emulator_state *state);

/* Lets `duration_s` pass: sleeps, spins, or moves virtual time on. Not under the lock. */
void state_spend(struct emulator_state *state, double duration_s, bool busy);

/* Moves virtual time to `ns`, or not at all when it is there already. */
void state_advance_to(struct emulator_state *state, int64_t ns);

#endif
