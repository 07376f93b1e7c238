/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_LEASE_LEASES_H
#define FLYBALL_NODE_LEASE_LEASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "knob/knob.h"
#include "node/lease/audit.h"
#include "node/lease/lease_table.h"

/*
 * Leases of a machine's knobs, and what stands behind them: a thread for each GPU, its hand, that
 * turns the GPU's knobs as its leases ask (lease_table.h) and puts them back when the last one ends.
 *
 *     leases_open(&options, &leases, out_error);
 *     leases_grant(leases, &request, &lease, out_error);
 *     leases_tick(leases);                               ten times a second
 *     leases_connection_closed(leases, connection);      when a client has gone
 *     leases_end(leases, lease.id, uid, out_error);
 *     leases_close(leases, 5);
 *
 * While a GPU is leased, its hand has a session of its knobs (knob/knob.h): the lock, the journal
 * and a guard. With the last lease the session ends, so that others may turn. A driver call that
 * hangs stops the hand of that GPU alone. Whoever waits for it waits `patience_s`, and is told
 * FLY_EUNSURE; the lease has ended then, and the hand puts the GPU back when the driver answers.
 *
 * Before a knob is turned, the session looks who else uses the GPU (knob/turnable.h), unless the lease
 * overrules that. The changes of a lease lean on one look for ten seconds, since a look asks the driver and
 * goes through all processes; the operator's file is looked at each time.
 *
 * Rights are the caller's to decide first (rights.h); their bounds are part of the request.
 *
 *     daemon killed            its guards put everything back at once
 *     daemon and guard killed  the hands put back, from the journal, when the daemon is up again
 *     guard killed             the session puts back; the hand begins another one, and turns again
 *     another program turned   its value wins: the GPU's leases end, with LEASE_END_FOREIGN
 *
 * A process may hold the lock of a GPU itself, and turn its knobs through this daemon because the
 * driver refuses its user: `flyball run --tune` without privileges. Then the hand leaves the lock where it is
 * and acts for that process. It writes its own journal in "daemon", a directory of root's in the
 * runtime directory, where a guard of its own stands by, so that the GPU goes back however the process
 * and the daemon end. What the process wrote into its own journal is found put back afterwards. The
 * lock of any other process is respected as knob/stranger.h says.
 *
 * Thread-safe except for opening and closing. After fork only the parent may use it.
 */
struct leases;

/* How a lease ended: X(name, word for labels, text). */
#define LEASE_END_MAP(X)                                      \
    X(GIVEN_BACK, "given_back", "given back")                 \
    X(CONNECTION, "connection", "its connection closed")      \
    X(PROCESS, "process", "its process ended")                \
    X(LATE, "late", "it was not renewed in time")             \
    X(FOREIGN, "foreign", "another program turned the knob")  \
    X(FAILED, "failed", "the knob could not be turned")       \
    X(RELEASED, "released", "the operator released the GPUs") \
    X(CLOSED, "closed", "the daemon ends")

#define LEASE_END_ENUM(name, word, text) LEASE_END_##name,
enum lease_end { LEASE_END_MAP(LEASE_END_ENUM) LEASE_END_COUNT };
#undef LEASE_END_ENUM

/* Returns "its process ended", and "process". */
const char *lease_end_text(enum lease_end end);
const char *lease_end_word(enum lease_end end);

/* Why a lease, or a change of one, was refused: X(name, word for labels, error; 0: any other). */
#define LEASE_REFUSAL_MAP(X)               \
    X(CONFLICT, "conflict", FLY_ECONFLICT) \
    X(RIGHTS, "rights", FLY_EPERM)         \
    X(LIMIT, "limit", FLY_ELIMIT)          \
    X(REQUEST, "request", FLY_EUSAGE)      \
    X(BUSY, "busy", FLY_EBUSY)             \
    X(DRIVER, "driver", FLY_EUNSURE)       \
    X(OTHER, "other", 0)

#define LEASE_REFUSAL_ENUM(name, word, code) LEASE_REFUSAL_##name,
enum lease_refusal { LEASE_REFUSAL_MAP(LEASE_REFUSAL_ENUM) LEASE_REFUSAL_COUNT };
#undef LEASE_REFUSAL_ENUM
const char *lease_refusal_word(enum lease_refusal refusal);

/* What happened since leases_open. */
struct leases_counts {
    size_t held; /* leases that are in force now */
    uint64_t granted;
    uint64_t refused[LEASE_REFUSAL_COUNT];
    uint64_t ended[LEASE_END_COUNT];
};

/* What happened to the knobs of a GPU. */
enum leases_event {
    LEASES_TURNED, /* a knob was turned for a lease */
    LEASES_TURN_FAILED,
    LEASES_RESTORED, /* the GPU was put back: at the end of a session, or from the journal */
    LEASES_RESTORE_FAILED,
    LEASES_FOREIGN, /* another program turned a leased knob */
    LEASES_EVENT_COUNT
};

/* Called by any thread, with no lock held; must not block, and must not call leases_*. */
struct leases_listener {
    void (*ended)(void *state, const struct lease *lease, enum lease_end end, const char *why);
    void (*tell)(void *state, const char *line); /* for the daemon's log */
    void *state;
};

struct leases_options {
    size_t gpu_count; /* at first; at most LEASE_GPUS_MAX */
    /*
     * Returns how many GPUs there are now, and gives the bounds of one. Called by leases_tick and by those
     * who ask for a lease; a GPU that has come since gets its hand then. NULL: none comes.
     */
    size_t (*count)(void *devices);
    void (*bounds)(void *rules, size_t gpu, struct lease_bounds *out_bounds);
    void *rules;
    /*
     * Lends the device of a GPU to its hand until it is given back. Called by the hand alone, and may
     * block it. FLY_E... if the GPU is not there now; the hand asks again.
     */
    int (*borrow)(void *devices, size_t gpu, const struct device **out_device, struct fly_error *out_error);
    void (*give_back)(void *devices, size_t gpu);
    void *devices;
    const struct knob_options *knob;  /* directories, guard and driver of the sessions; borrowed. `allowed`,
                                       * `kept` and `program` are not read */
    struct lease_table_options table; /* its gpu_count is not read */
    double patience_s;                /* of callers with a hand; 0: 2 s */
    struct audit *audit;              /* borrowed; NULL: none */
    struct leases_listener listener;
};

struct lease_request {
    struct lease_holder holder; /* start_ticks 0: found here */
    uint64_t born_before_ticks; /* as in holder_open; 0: not known */
    uint64_t gpus;
    struct lease_wish wish;
    struct lease_bounds bounds;
    double expires_s; /* after now; 0: it need not be renewed */
    bool overrules;
};

/* A GPU as its hand sees it. */
struct leases_gpu {
    size_t leases;
    bool ready;                          /* what earlier sessions left is put back */
    bool turned;                         /* a knob stands elsewhere than before the leases */
    bool for_process;                    /* the holder itself has the lock */
    bool stuck;                          /* it could not be put back, which is tried again */
    uint64_t events[LEASES_EVENT_COUNT]; /* since leases_open */
    double busy_s;             /* for how long the hand has been at one call; 0: it waits for work */
    struct lease_wish wish;    /* what its leases come to */
    struct knob_report report; /* of the session; state KNOB_DENIED and code 0 without one */
};

/* Starts the hands, which first put back what earlier sessions left. FLY_ENOMEM, FLY_ELIMIT, FLY_EUSAGE. */
int leases_open(const struct leases_options *options, struct leases **out_leases,
                struct fly_error *out_error);

/*
 * Ends all leases, waits `most_s` at most until everything is put back, and frees. Returns 0, or FLY_EUNSURE
 * if a hand still hangs: its thread is left behind (base/thread/thread_group.h), and its guard puts the GPU
 * back when this process ends. Accepts NULL.
 */
int leases_close(struct leases *leases, double most_s);

/*
 * Grants a lease, and returns when all its GPUs are turned: all, or none. Errors of lease_table_grant
 * and of knob_set; FLY_ENOTFOUND if the holder's process has ended; FLY_EUNSURE after `patience_s`. After
 * an error there is no lease.
 */
int leases_grant(struct leases *leases, const struct lease_request *request, struct lease *out_lease,
                 struct fly_error *out_error);

/*
 * Another wish for a lease of this user's; LEASE_NOBODY: the token that granted it is shown, which the caller
 * has checked. What it no longer asks for goes back. After an error it is as before, except for FLY_EUNSURE,
 * after which it has ended. FLY_ENOTFOUND for an id that is not this holder's.
 */
int leases_change(struct leases *leases, const char *id, const struct lease_holder *by,
                  const struct lease_wish *wish, struct lease *out_lease, struct fly_error *out_error);

/* Gives a lease more time from now on. FLY_ENOTFOUND. */
int leases_renew(struct leases *leases, const char *id, const struct lease_holder *by, double expires_s,
                 struct lease *out_lease, struct fly_error *out_error);

/* Ends a lease; returns when its GPUs are put back. FLY_ENOTFOUND; FLY_EUNSURE after `patience_s`. */
int leases_end(struct leases *leases, const char *id, const struct lease_holder *by,
               struct fly_error *out_error);

/*
 * Turns GPUs for a client that knows no leases, one of the public daemon: it has a lease on each GPU
 * for as long as its process lives, whatever its connections do, or over TCP until the daemon ends,
 * and each call adds to it. `dropped` is what it no longer asks for. A lease whose knobs are all
 * where they stood before ends a second later, so that a client that turns to and fro needs no new
 * guard each time, or as soon as another client asks for the GPU. A value that stands already because
 * of another process of the same user is no change and no lease. Errors as leases_grant, after which
 * the leases are as before; of several GPUs those before the failing one stay.
 */
int leases_turn(struct leases *leases, const struct lease_request *request, quantity_set dropped,
                struct fly_error *out_error);

/* Ends the leases of a connection; does not wait. */
void leases_connection_closed(struct leases *leases, uint64_t connection);

/* Ends the leases whose process has ended or whose time has passed; does not wait. */
void leases_tick(struct leases *leases);

/* Lists leases, the oldest first, at most `maximum`; returns how many there are. */
size_t leases_list(struct leases *leases, struct lease *out_leases, size_t maximum);
int leases_find(struct leases *leases, const char *id, struct lease *out_lease, struct fly_error *out_error);

/* Gives a GPU as its hand sees it, zeroed while it has none; never waits for a driver. */
void leases_look(struct leases *leases, size_t gpu, struct leases_gpu *out_gpu);

/* Returns a number that is another one after each change of what leases_look gives, but for times. */
uint64_t leases_stamp(struct leases *leases);

void leases_count(struct leases *leases, struct leases_counts *out_counts);

/* Counts a request that was refused before it came here. */
void leases_refuse(struct leases *leases, int code);

/* New bounds of a GPU, and a new rule, when the configuration was read again; no lease is lost. */
void leases_bound(struct leases *leases, size_t gpu, const struct lease_bounds *bounds);
void leases_rule(struct leases *leases, enum lease_rule rule);

/*
 * Ends all leases, puts everything back, gives back all devices, and grants none until leases_resume: for an
 * upgrade of the driver. FLY_EUNSURE if a hand still hangs after `most_s`.
 */
int leases_release(struct leases *leases, double most_s, struct fly_error *out_error);
void leases_resume(struct leases *leases);

#endif
