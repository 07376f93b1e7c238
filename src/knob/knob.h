/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_KNOB_H
#define FLYBALL_KNOB_KNOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "device/device.h"
#include "knob/runtime_directory.h" /* KNOB_RUNTIME_VARIABLE */
#include "knob/way/site.h"

/*
 * Sets power limits of GPUs, ceilings on their clocks and workload power profiles, and always puts
 * them back.
 *
 *     struct knob_options options = {.program = "flyball power"};
 *     int64_t limits_mw[] = {250000, 250000};
 *     struct knob *knob;
 *
 *     knob_open(&options, devices, 2, &knob, out_error);
 *     if (knob_may_turn(knob, 0, &why) == 0 && knob_may_turn(knob, 1, &why) == 0)
 *         knob_set(knob, limits_mw, out_error);
 *     ...
 *     knob_close(knob, reports);
 *
 * Opening takes the lock of each GPU, repairs what a session that died left there, and starts the
 * guard: a small process that puts back what was set before when this one ends, however it ends
 * (see guard.h). Each change is in the journal on local disk, and is told to the guard, before it
 * is made. If the guard is killed, the session puts everything back itself at knob_check or at
 * the next call. If both are killed, the next session that opens the GPU does it, or knob_repair.
 *
 * Only the holder of a GPU's lock may turn its knobs, and only while nobody else uses the GPU
 * (see turnable.h); this is checked before each change. Others may only measure. If another
 * program changes a limit that was turned, its value wins: the GPU's knobs are not turned again,
 * and not put back. The same holds for a ceiling on the clock, as far as the GPU shows it
 * (ceiling.h): no driver says where a ceiling is, so putting it back means lifting it.
 *
 * If the driver refuses a user, the site's daemon is asked (see site.h), once for each
 * change. What was turned by one way goes back by the same way, also by the guard and the
 * journal.
 *
 * A kept session is for settings that outlive it. It has no guard, puts nothing back at close and
 * releases the lock. It turns persistence mode on so that the limit holds while nobody uses the
 * driver. The journal keeps what was set before until knob_repair is asked to put back kept
 * settings too.
 *
 * For one thread. After fork the child's handle is inert: calls return FLY_ESTATE, and closing
 * only frees memory. Nothing here prints; SIGCHLD, SIGPIPE and other signals are left as they
 * are. The devices are borrowed until the close.
 */
struct knob;

struct knob_options {
    const char *runtime_directory;  /* of locks and journal; NULL: found by runtime_directory_find */
    const char *readonly_path;      /* the operator's lock; NULL: KNOB_READONLY_PATH */
    const char *proc_root;          /* NULL: "/proc" */
    const char *mps_pipe_directory; /* the value of CUDA_MPS_PIPE_DIRECTORY; NULL: KNOB_MPS_DIRECTORY */
    const pid_t *allowed;           /* processes that may compute on the GPUs besides this one, with their
                                     * children */
    size_t allowed_count;
    const char
        *guard_path; /* of flyball-guard; NULL: FLYBALL_GUARD, beside this program or library, or installed */
    const char *nvml_path; /* as in device_options, for the guard */
    const char *amdsmi_path;
    const char *daemon;  /* as site_init of site.h: who turns knobs for users besides the driver */
    const char *program; /* this program's name for others: "flyball power"; NULL: "flyball" */
    bool kept;           /* what is set outlives the session */
    bool overrules;      /* others' work on a GPU keeps nobody from turning: for an operator */
    double trusted_s;    /* for how long a look at who else uses a GPU holds for later changes; 0: each
                          * change looks anew. knob_check renews it while changes lean on it */
    bool impatient;      /* knob_repair does not wait for a guard that is at work */
    bool resumes;   /* this program has turned the GPUs before, and its work on them goes on: those who cannot
                     * be seen are not looked for again (unseen.h) */
    bool contained; /* they are trusted not to be there; also with FLYBALL_CONTAINED=1 */
};

enum { KNOB_NO_CEILING = -1, KNOB_NO_LEVEL = -1 };

#define KNOB_READONLY_PATH "/etc/flyball/readonly"
#define KNOB_MPS_DIRECTORY "/tmp/nvidia-mps"

/* The state of a GPU's knob as this session sees it. */
enum knob_state {
    KNOB_DENIED,   /* this session may not turn it */
    KNOB_UNTURNED, /* as this session found it, or put back */
    KNOB_TURNED,   /* where this session put it, as far as is known */
    KNOB_FOREIGN,  /* another program changed it since: this session may not turn it any more */
    KNOB_OWED,     /* put back as near as could be set; the rest is owed (debt.h), and the error says what */
    KNOB_STUCK,    /* it could not be put back; the journal keeps the entry for the next start */
    KNOB_STATE_COUNT
};

/* What is known of a GPU, and what was done to it. */
struct knob_report {
    enum knob_state state;
    int64_t previous_mw;        /* in force when it was opened; 0: unknown */
    int64_t set_mw;             /* what the driver reported after the session's last change; 0: none */
    int64_t enforced_mw;        /* what the board enforced then, which may be less; 0: unknown */
    int64_t found_mw;           /* FOREIGN: what another program set; 0: it did not change the limit */
    int64_t ceiling_mhz;        /* of the session's last change of the clock; 0: it has set no ceiling */
    int64_t memory_ceiling_mhz; /* the same of its memory's clock */
    int64_t found_clock_mhz;    /* FOREIGN: the clock that contradicts that ceiling; 0: none does */
    /* Workload profiles: requested when it was opened, and by the session's last change; if another
     * program changed them, `workloads_foreign` and what was found. */
    struct workload_set workloads_before, workloads, workloads_found;
    bool workloads_asked; /* the session has changed what is requested */
    bool workloads_foreign;
    /* Performance levels, enum device_level: when it was opened, of the session's last change, and FOREIGN:
     * what another program set. KNOB_NO_LEVEL: unknown, or none. */
    int64_t level_before, level, level_found;
    enum way way;            /* by which it was turned last */
    bool persistence_turned; /* turned on, so that the limit holds */
    char repaired[400];      /* a clause: what an earlier session had left; "" for nothing */
    struct fly_error error;  /* DENIED, FOREIGN, OWED, STUCK: why, and what to do; else code 0 */
};

/*
 * Opens `count` GPUs, at most DEVICES_MAX. A GPU whose knobs may not be turned is not a failure:
 * knob_may_turn says why. FLY_ESTATE, FLY_EPERM and others if there is no place for locks and
 * journal, FLY_ENOTFOUND or FLY_EUNSUPPORTED if the guard does not start, FLY_ENOMEM; nothing has
 * been turned then. No guard is started if no GPU may be turned.
 */
int knob_open(const struct knob_options *options, const struct device *const *devices, size_t count,
              struct knob **out_knob, struct fly_error *out_error);

/*
 * Returns 0, or why the GPU at that place is only measured: FLY_EPERM, FLY_ESTATE (in use,
 * locked), FLY_EUNSUPPORTED.
 */
int knob_may_turn(const struct knob *knob, size_t place, struct fly_error *out_error);

/*
 * From now on these processes may compute on the GPUs besides this one, with their children; they are
 * borrowed until the next call or the close. `overrules` as in the options. The next change looks anew.
 */
void knob_allow(struct knob *knob, const pid_t *allowed, size_t count, bool overrules);

/*
 * Sets a limit for each GPU, in mW; 0 leaves a GPU as it is. All or none: if one fails, those
 * already set by this call go back to their values before it. FLY_EUSAGE outside a GPU's range,
 * which is checked for all first; FLY_EPERM; FLY_ESTATE for a GPU that may not be turned (any
 * more) or a guard that has ended, in which case everything is back as it was before the session;
 * FLY_EWRITE for the journal.
 */
int knob_set(struct knob *knob, const int64_t *limits_mw, struct fly_error *out_error);

/*
 * Sets a ceiling on the clock of each GPU, in MHz; 0 leaves a GPU as it is, and KNOB_NO_CEILING
 * lifts the session's ceiling if there is one. All or none, and errors, as knob_set. FLY_ESTATE
 * for a GPU whose clocks somebody else has set, as far as the GPU shows it. FLY_EUSAGE in a kept
 * session: no ceiling outlives its session.
 */
int knob_set_ceilings(struct knob *knob, const int64_t *ceilings_mhz, struct fly_error *out_error);

/*
 * Holds a clock of each GPU (QUANTITY_CLOCK_CEILING or QUANTITY_MEMORY_CLOCK_CEILING) between two; NULL
 * leaves a GPU as it is, and a range without floor and ceiling lifts the session's if there is one. All or
 * none, and errors, as knob_set_ceilings; FLY_EUNSUPPORTED for a GPU whose driver has no floors, or does
 * not hold the memory's clock.
 */
struct clock_range {
    int64_t floor_mhz, ceiling_mhz; /* 0: none */
};
int knob_set_clocks(struct knob *knob, enum quantity quantity, const struct clock_range *const *ranges,
                    struct fly_error *out_error);

/*
 * Requests workload profiles for each GPU, exactly those of its set; NULL leaves a GPU as it is, and an
 * empty set requests none. All or none, and errors, as knob_set; FLY_EUNSUPPORTED for a GPU without
 * profiles, FLY_EUSAGE for a profile that it does not offer.
 */
int knob_set_workloads(struct knob *knob, const struct workload_set *const *sets,
                       struct fly_error *out_error);

/*
 * Turns the persistence mode of each GPU on (1) or off (0); -1 leaves a GPU as it is. All or none, and
 * errors, as knob_set.
 */
int knob_set_persistence(struct knob *knob, const int64_t *modes, struct fly_error *out_error);

/*
 * Sets limits, requests profiles and sets levels (NULL: they stay): all of them on all GPUs, or nothing.
 * Errors as those of each.
 */
int knob_set_several(struct knob *knob, const int64_t *limits_mw, const struct workload_set *const *sets,
                     const int64_t *levels, struct fly_error *out_error);

/*
 * Sets every GPU that may be turned to its driver's default limit, and requests no workload profiles
 * where some are requested. In a kept session this also removes the journal's entries and the
 * persistence mode that the session turned on, since there is nothing left to put back. Errors as
 * knob_set.
 */
int knob_reset(struct knob *knob, struct fly_error *out_error);

/*
 * Checks that all is as it should be; call it when knob_watch_fd is readable, or twice a second.
 * FLY_ESTATE if the guard has ended: everything was put back, and nothing can be set any more.
 * FLY_ESTATE also if another program changed a limit: that GPU is FOREIGN from now on, the others
 * are not affected.
 */
int knob_check(struct knob *knob, struct fly_error *out_error);

/* Returns a descriptor that is readable when the guard ends; -1 without a guard. */
int knob_watch_fd(const struct knob *knob);

/* Returns the guard's process; 0 without one. */
pid_t knob_guard_pid(const struct knob *knob);

/* Puts everything back now; the session may set again afterwards. Returns the first failure, or 0. */
int knob_restore(struct knob *knob, struct fly_error *out_error);

/* Returns the ways of this session; borrowed. */
const struct site *knob_site(const struct knob *knob);

/* Returns the report of a GPU, valid until the close. */
const struct knob_report *knob_report(const struct knob *knob, size_t place);

/*
 * Puts everything back (a kept session leaves it), ends the guard, releases the locks, and frees.
 * `out_reports`, one for each GPU, may be NULL. Accepts NULL.
 */
void knob_close(struct knob *knob, struct knob_report *out_reports);

#endif
