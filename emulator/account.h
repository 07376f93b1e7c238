/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_ACCOUNT_H
#define FLYBALL_EMULATOR_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emulator/process_view.h"
#include "emulator/settings.h"

/*
 * Who drew what: the truth that an attribution of a GPU's energy is compared with, and the samples of use
 * that a driver gives for it.
 *
 * The truth. What the board draws without work, its idle power, it draws at all times. The rest is dynamic:
 * at each moment it belongs to the works on the GPU in proportion to what each wants above idle. (So loads
 * add up in gpu.h; a limit, or the most that the board can want, takes the same part of each.) While nothing
 * works and the power has not come down to idle yet, the rest belongs to those that worked last. Therefore
 *
 *     energy of the GPU = idle power * time + dynamic energy of all accounts + that of `scripted` loads
 *
 * exactly, but for rounding. The idle energy of a time is also shared out evenly among the processes that are
 * there, except servers of MPS, whatever they do; what is drawn while nobody is there is `vacant`:
 *
 *     idle power * time = idle energy of all accounts + vacant
 *
 * An attribution may count that with the processes, or not.
 *
 * Use. Every USE_PERIOD_NS the driver writes down what each process kept busy since the last time, in whole
 * percent; a process that kept nothing busy has no sample. It keeps the newest EMULATOR_USE_SAMPLES, also of
 * processes that ended. Works on the processors take turns, so that together they keep at most all of it
 * busy; clients of MPS run at the same time.
 *
 * Pure but for what it changes; the caller locks.
 */
enum { EMULATOR_ACCOUNTS = 256, EMULATOR_USE_SAMPLES = 512, EMULATOR_PARTS_MAX = 17 };

#define USE_PERIOD_NS INT64_C(166666667)

enum emulator_work_kind {
    EMULATOR_WORK_COMPUTE,
    EMULATOR_WORK_GRAPHICS,
    EMULATOR_WORK_MPS,        /* a client of MPS */
    EMULATOR_WORK_MPS_SERVER, /* does no work of its own */
    EMULATOR_WORK_KINDS
};

/* Words of the kinds, "compute", "graphics", "mps" and "mps-server", ended by NULL. */
extern const char *const emulator_work_words[EMULATOR_WORK_KINDS + 1];

/* What a work is to the driver. */
struct emulator_role {
    enum emulator_work_kind kind;
    int instance; /* index of its MIG instance; -1: none */
};

/* One work of a process on one GPU. */
struct emulator_account {
    struct emulator_owner owner; /* of pid 0: the place is free */
    struct emulator_role role;
    int64_t began_ns, ended_ns; /* of the state's clock; ended_ns 0: it lives */
    double dynamic_j, idle_j;
    double busy_s; /* in the current period of use */
};

struct emulator_use_sample {
    int64_t at_ns;
    struct emulator_owner owner;
    uint32_t percent;
};

/* A part of the load since the last change. */
struct emulator_part {
    int account;     /* -1: the scripted load */
    double above_w;  /* wanted, above idle */
    double share;    /* of the time that it keeps the processors busy */
    bool is_present; /* takes part of the idle energy */
};

struct emulator_accounts {
    struct emulator_account accounts[EMULATOR_ACCOUNTS];
    double scripted_j, vacant_j; /* dynamic energy of scripted loads; idle energy while nobody is there */
    double forgotten_j, forgotten_idle_j; /* of accounts whose place others took */
    uint32_t part_count;
    struct emulator_part parts[EMULATOR_PARTS_MAX];
    uint32_t last_count; /* of the parts that worked last, with what each wanted */
    struct emulator_part last[EMULATOR_PARTS_MAX];
    int64_t used_up_to_ns; /* `busy_s` contains the use up to here */
    uint64_t sample_count; /* of all so far; the ring holds the newest */
    struct emulator_use_sample samples[EMULATOR_USE_SAMPLES];
};

void accounts_init(struct emulator_accounts *accounts, int64_t now_ns);

/* Opens an account; the place of the one that ended first is taken where none is free. */
int accounts_open(struct emulator_accounts *accounts, const struct emulator_owner *owner,
                  const struct emulator_role *role, int64_t now_ns);
void accounts_close(struct emulator_accounts *accounts, int account, int64_t now_ns);

/* Shares out what was drawn with the parts as they are, in `time_s` at that idle power. */
void accounts_charge(struct emulator_accounts *accounts, double energy_j, double idle_w, double time_s);

/* Writes down the use up to `now_ns`. */
void accounts_use_up_to(struct emulator_accounts *accounts, int64_t now_ns,
                        enum emulator_mps_samples clients);

/* Replaces the parts; their shares become those of works that take turns. */
void accounts_set_parts(struct emulator_accounts *accounts, const struct emulator_part *parts,
                        uint32_t count);

#endif
