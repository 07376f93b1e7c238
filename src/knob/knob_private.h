/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_KNOB_PRIVATE_H
#define FLYBALL_KNOB_KNOB_PRIVATE_H

#include <stdint.h>

#include "base/clock.h"
#include "knob/guard.h"
#include "knob/journal.h"
#include "knob/knob.h"
#include "knob/runtime_directory.h"
#include "knob/turnable.h"

/* The inside of a session, for the files knob*.c. */
struct knob_gpu {
    const struct device *device;
    int lock;                   /* -1: not held */
    struct journal_entry entry; /* its turns are those that are not yet put back */
    struct knob_report report;
    bool denied; /* the driver has refused to turn it */
    /* The last look at who else uses it, which found nobody; with knob_options.trusted_s. */
    struct mono_time looked;
    bool is_free, leaned; /* it counts; a change counted on it */
};

struct knob {
    char directory[RUNTIME_PATH_MAX];
    struct turnable_options others;
    enum journal_kind kind; /* the first of its two files */
    struct guard guard;
    struct site site;
    double trusted_s;
    bool ended;  /* the guard has ended: nothing is turned any more */
    bool begun;  /* all GPUs are open: from now on this program may be at work on them */
    bool silent; /* the journal's disk did not answer in time: it is not written to any more */
    uint64_t generation;
    size_t count;
    struct knob_gpu gpus[];
};

/* Returns FLY_ESTATE in a forked child. */
int knob_check_fork(const struct knob *knob, struct fly_error *out_error);

/* Returns the turn of a quantity that is not yet put back, or NULL. */
struct turn *knob_turn_of(struct knob_gpu *gpu, enum quantity quantity);

/* Gives the debt of a knob that stands there, where it was left; false if there is none. */
bool knob_owes(const struct knob *knob, const struct knob_gpu *gpu, enum quantity quantity,
               const struct setting *now, struct turn *out_debt);

/* Returns whether there is a turn of another quantity. */
bool knob_has_turn_besides(const struct knob_gpu *gpu, enum quantity quantity);

/*
 * Writes to disk the file of the GPU's entry that has turns of this quantity, or removes it without any.
 * FLY_EBUSY: the disk has not taken it in five seconds, or had not before.
 */
int knob_write_entry(struct knob *knob, const struct knob_gpu *gpu, enum quantity quantity,
                     struct fly_error *out_error);

/* Drops a turn that needs no putting back: first from the journal, then from the guard's memory. */
int knob_drop_turn(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity,
                   struct fly_error *out_error);

/* Looks who else uses the GPU, or trusts the last look. Errors as turnable_check. */
int knob_look(const struct knob *knob, struct knob_gpu *gpu, bool may_trust, struct fly_error *out_error);

/* Puts a GPU back unless others have changed it since, and reports what became of it. */
int knob_put_back(struct knob *knob, struct knob_gpu *gpu, struct fly_error *out_error);

/*
 * Returns whether another program changed a knob that this session turned; then the GPU is
 * FOREIGN from now on.
 */
bool knob_find_foreign(struct knob *knob, struct knob_gpu *gpu);

/* Returns 0, or the error for a guard that ended: everything was put back then. */
int knob_check_guard(struct knob *knob, struct fly_error *out_error);

/*
 * Turns a knob from `now` to `value` by the first way that accepts it. Written down and told to the guard
 * before; the caller settles what became of it.
 */
int knob_make_turn(struct knob *knob, struct knob_gpu *gpu, enum quantity quantity, const struct setting *now,
                   const struct setting *value, struct way_result *out_result, struct fly_error *out_error);

#endif
