/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_LEASES_PRIVATE_H
#define FLYBALL_NODE_LEASE_LEASES_PRIVATE_H

#include <stdatomic.h>

#include "base/thread/thread_group.h"
#include "knob/repair.h"
#include "node/lease/holder.h"
#include "node/lease/leases.h"

/*
 * The inside of leases, for leases*.c and hand*.c.
 *
 * One lock protects the table and what callers and hands tell each other. It is never held over a call of a
 * driver, of knob/ or of a disk. Each change of the table gives the hands of its GPUs a new version of
 * what they are to do; a hand says which version it has carried out.
 */
enum { HAND_PIDS_MAX = 64, LEASES_AT_ONCE = 8 };

/* What a hand is to do, as of one version. */
struct hand_job {
    uint64_t version;
    bool awaited; /* somebody waits for it who takes it back if it fails */
    bool stops;   /* the hand ends when all is back */
    struct lease_effect effect;
    struct lease newest; /* of the GPU's leases, for the log */
    pid_t pids[HAND_PIDS_MAX];
    size_t pid_count;
    bool overrules;
};

struct hand {
    struct leases *leases;
    size_t gpu;
    int wake; /* eventfd */

    /* Under the lock. */
    uint64_t wanted, done; /* versions */
    uint64_t awaited;      /* the last version that somebody waits for */
    int code;              /* of `done` */
    struct fly_error error;
    bool busy;
    struct mono_time busy_since, done_at;
    struct leases_gpu seen;

    /* The thread's own. */
    const struct device *device; /* NULL: not borrowed */
    char uuid[DEVICE_TEXT_MAX];
    struct knob *knob; /* NULL: nothing is leased */
    bool for_process;
    char directory[RUNTIME_PATH_MAX], own_directory[RUNTIME_PATH_MAX];
    struct lease_wish made;     /* what the knobs were brought to */
    int64_t persistence_before; /* -1: unknown */
    pid_t pids[HAND_PIDS_MAX];  /* lent to the session */
    bool overrules;
    bool repaired;
    struct mono_time repair_after;
    double repair_wait_s; /* until it is tried again */
    unsigned later_looks; /* in a row that found something left, and its lock held */
    char left_text[400];  /* what was told of what is left; "": nothing is */
    struct lease newest;  /* as in the job, for what happens between two */
    bool stuck;

    atomic_uint_fast64_t events[LEASES_EVENT_COUNT];
};

/* A process that is watched because it holds a lease. */
struct tended {
    char id[LEASE_ID_MAX]; /* of the lease; "": free */
    struct holder holder;
};

struct leases {
    struct leases_options options;
    struct knob_options knob;
    double patience_s;
    struct thread_group group; /* of the hands; they wake those that wait for a version */
    struct lease_table *table;
    uint64_t version;
    bool released, stopping;
    size_t maximum;
    struct tended *tended;        /* `maximum` of them */
    atomic_uint_fast64_t changes; /* of what is to be done, and of what hands have seen */
    atomic_uint_fast64_t granted, refused[LEASE_REFUSAL_COUNT], lease_ends[LEASE_END_COUNT];
    size_t hand_count; /* under the lock */
    bool is_short;     /* a hand could not be begun, which was told */
    struct hand hands[LEASE_GPUS_MAX];
};

/* Begins hands for GPUs that have come; with no lock held. */
void leases_grow(struct leases *leases);

/* The main function of a hand's thread. */
void hand_run(void *state);

/* Brings a GPU to what its leases come to. Errors as leases_grant. */
int hand_carry_out(struct hand *hand, const struct hand_job *job, struct fly_error *out_error);

/* Ends the session: everything goes back, and the device too. */
void hand_let_go(struct hand *hand);

/* Borrows the device, unless it is borrowed. */
int hand_borrow(struct hand *hand, struct fly_error *out_error);
void hand_give_back(struct hand *hand);

/* Tells the log of the daemon; nothing for a code of 0. */
void leases_tell(const struct leases *leases, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the leases of a GPU; with no lock held. */
void leases_fail_gpu(struct leases *leases, size_t gpu, enum lease_end end, const char *why);

/* Ends those leases of which `is_over` is true, by `end`; with no lock held. */
void leases_end_if(struct leases *leases, bool (*is_over)(const struct lease *, const void *state),
                   const void *state, enum lease_end end, const char *why);

/*
 * Ends leases of clients that know none, on one of these GPUs, whose knobs have been where they were
 * before for `linger_s`; not those of `spared`, which may be NULL.
 */
void leases_end_back(struct leases *leases, uint64_t gpus, const struct lease_holder *spared,
                     double linger_s);

/* Gives the hands of these GPUs a new version to carry out. Under the lock. */
uint64_t leases_bump(struct leases *leases, uint64_t gpus, bool awaited);

/* Frees everything once no thread works with it: the struct leases. */
void leases_free(void *of);

/* Describes the job of a hand. Under the lock. */
void leases_job(struct leases *leases, struct hand *hand, struct hand_job *out_job);

/* What happens to leases that were ended: under the lock, and after it. */
void leases_forget(struct leases *leases, const struct lease *ended, size_t count);
void leases_announce(struct leases *leases, const struct lease *ended, size_t count, enum lease_end end,
                     const char *why);

/* Writes one value of a wish for the audit log; "" if it is not asked for. */
char *leases_value_text(const struct lease_wish *wish, enum quantity quantity, char text[AUDIT_VALUE_MAX]);

#endif
