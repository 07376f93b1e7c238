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
 * Power limits of GPUs and ceilings on their clocks, turned and always turned back.
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
 * Opening takes the lock of each GPU, repairs what a session that died left there,
 * and starts the guard: a small process that puts back what stood before when this
 * one ends, however it ends (see guard.h). Each change stands in the journal on
 * local disk, and is told to the guard, before it is made. If the guard is killed,
 * the session turns back itself at knob_check or at the next call; if both are, the
 * next one that opens the GPU does, or knob_repair.
 *
 * A GPU may be turned only by the holder of its lock, and only while nobody else
 * uses it (see turnable.h); that is looked at before each change. Others measure.
 * Where another program changes a limit that was turned, its value wins: the GPU
 * is not turned again, and not put back. The same holds for a ceiling on the clock, as
 * far as what the GPU shows gives that away (ceiling.h): no driver tells where one
 * stands, so what goes back is that there is none.
 *
 * Where the driver refuses a user, the site's other ways are tried (see site.h), once for
 * each change; what was turned by one goes back by it, also from the guard and the journal.
 *
 * A kept session is for settings that outlive it: no guard, nothing is put back at
 * close, the lock is let go, persistence mode is put on so that the limit holds
 * without a user of the driver, and the journal keeps what stood before until
 * knob_repair is asked to put back kept ones too.
 *
 * For one thread. After fork the child's handle is inert: calls return FLY_ESTATE,
 * and closing only frees memory. Nothing here prints; SIGCHLD, SIGPIPE and other
 * signals are left as they are. The devices are borrowed until the close.
 */
struct knob;

struct knob_options {
    const char *runtime_directory;  /* of locks and journal; NULL: found by runtime_directory_find */
    const char *readonly_path;      /* the operator's lock; NULL: KNOB_READONLY_PATH */
    const char *proc_root;          /* NULL: "/proc" */
    const char *mps_pipe_directory; /* the value of CUDA_MPS_PIPE_DIRECTORY; NULL: KNOB_MPS_DIRECTORY */
    const pid_t *allowed;           /* who may compute on the GPUs beside this process, with their children */
    size_t allowed_count;
    const char *guard_path; /* of flyball-guard; NULL: FLYBALL_GUARD, beside this program, or as installed */
    const char *nvml_path;  /* as in device_options, for the guard */
    const char *commands;   /* as in struct site_options of site.h: other ways than the driver, */
    const char *daemon;     /* by which site's users turn knobs */
    const char *program;    /* how others call this one: "flyball power"; NULL: "flyball" */
    bool kept;              /* what is set outlives the session */
    bool impatient;         /* knob_repair waits for no guard that is at work */
};

enum { KNOB_NO_CEILING = -1 };

#define KNOB_READONLY_PATH "/etc/flyball/readonly"
#define KNOB_MPS_DIRECTORY "/tmp/nvidia-mps"

/* Where a GPU's knob stands with regard to us. */
enum knob_state {
    KNOB_DENIED,   /* not ours to turn */
    KNOB_UNTURNED, /* as we found it, or put back */
    KNOB_TURNED,   /* where we put it, as far as is known */
    KNOB_FOREIGN,  /* another program changed it since: no longer ours to turn */
    KNOB_STUCK,    /* putting it back failed; the journal keeps the entry for the next start */
    KNOB_STATE_COUNT
};

/* What is known of a GPU, and what became of it. */
struct knob_report {
    enum knob_state state;
    int64_t previous_mw;     /* what stood when it was opened; 0: not known */
    int64_t set_mw;          /* what the driver said after our last change; 0: none */
    int64_t found_mw;        /* FOREIGN: what another program set; 0: not the limit */
    int64_t ceiling_mhz;     /* of our last change of the clock; 0: no ceiling of ours */
    int64_t found_clock_mhz; /* FOREIGN: the clock that speaks against that; 0: none does */
    enum way way;            /* by which it was turned last */
    bool persistence_turned; /* it was put on for the limit to hold */
    char repaired[192];      /* what an earlier session had left, a clause; "" nothing */
    struct fly_error error;  /* DENIED, FOREIGN, STUCK: why, and what to do; code 0 else */
};

/*
 * Opens `count` GPUs, at most DEVICES_MAX. A GPU that may not be turned is no
 * failure: knob_may_turn says why. FLY_ESTATE, FLY_EPERM and others where there is no
 * place for locks and journal, FLY_ENOTFOUND or FLY_EUNSUPPORTED where the guard does
 * not start, FLY_ENOMEM; nothing has been turned then. No guard is started when no
 * GPU may be turned.
 */
int knob_open(const struct knob_options *options, const struct device *const *devices, size_t count,
              struct knob **out_knob, struct fly_error *out_error);

/* 0, or why the GPU at that place is only measured: FLY_EPERM, FLY_ESTATE (in use, locked), FLY_EUNSUPPORTED.
 */
int knob_may_turn(const struct knob *knob, size_t place, struct fly_error *out_error);

/*
 * Sets a limit for each GPU, in mW; 0 leaves one alone. All or none: when one fails,
 * those already set by this call go back to where they stood before it. FLY_EUSAGE
 * outside a GPU's range, which is checked for all first; FLY_EPERM; FLY_ESTATE for a GPU
 * that may not be turned (any more) or a guard that has ended, in which case all is
 * back as it was before the session; FLY_EWRITE for the journal.
 */
int knob_set(struct knob *knob, const int64_t *limits_mw, struct fly_error *out_error);

/*
 * Sets a ceiling on the clock of each GPU, in MHz; 0 leaves one alone, and
 * KNOB_NO_CEILING lifts ours where there is one. All or none, and errors, as knob_set; the
 * ceiling of a GPU whose clocks somebody else has set is FLY_ESTATE, as far as the GPU
 * shows it. FLY_EUSAGE in a kept session: no ceiling outlives its session.
 */
int knob_set_ceilings(struct knob *knob, const int64_t *ceilings_mhz, struct fly_error *out_error);

/*
 * Sets every GPU that may be turned to its driver's default limit; in a kept session
 * the journal's entry goes too, with the persistence mode it put on: there is nothing
 * left to put back. Errors as knob_set.
 */
int knob_reset(struct knob *knob, struct fly_error *out_error);

/*
 * Whether all is as it should be; to be called when knob_watch_fd is readable, or
 * twice a second. FLY_ESTATE when the guard has ended: everything was put back, and
 * nothing can be set any more. FLY_ESTATE also when another program changed a limit:
 * that GPU is FOREIGN from now on, the others stay.
 */
int knob_check(struct knob *knob, struct fly_error *out_error);

/* Readable when the guard ends; -1 without a guard. */
int knob_watch_fd(const struct knob *knob);

/* The guard's process; 0 without one. */
pid_t knob_guard_pid(const struct knob *knob);

/* Puts everything back now; the session may go on setting. The first failure, or 0. */
int knob_restore(struct knob *knob, struct fly_error *out_error);

/* The ways of this session; borrowed. */
const struct site *knob_site(const struct knob *knob);

/* Valid until the close. */
const struct knob_report *knob_report(const struct knob *knob, size_t place);

/*
 * Puts everything back (a kept session: leaves it), ends the guard, lets go of the locks,
 * frees. `out_reports`, one for each GPU, may be NULL. Accepts NULL.
 */
void knob_close(struct knob *knob, struct knob_report *out_reports);

#endif
