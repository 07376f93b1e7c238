/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_LEDGER_H
#define FLYBALL_NODE_SHARE_SHARE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * The account of one GPU: rows whose energies add up, at every moment and to the microjoule, to what the
 * watch has counted of it (node/watch/watch_total.h).
 *
 *     struct ledger_row rows[LEDGER_ROWS_MAX];
 *     struct ledger ledger;
 *
 *     ledger_init(&ledger, rows, LEDGER_ROWS_MAX);
 *     ... ledger_resume_..., if something was on record ...
 *     ledger_take(&ledger, &look);             with each look at who is there, in order of time
 *
 * Rows:
 *
 *     process     of a process on this GPU; the others' row has what has no row of its own: processes beyond
 *                 the maximum, and those that were folded
 *     shared      drawn by several processes that cannot be told apart, one row for each set of them; the
 *                 first set's row has what has no row of its own
 *     idle        drawn while no process was there
 *     unobserved  counted while the daemon was down or did not read the GPU; and drawn while it was clearly
 *                 busy but no process was visible, or the driver did not say who was there
 *
 * share_split.h says how an energy is split. Energies, half widths and times of a row only rise; a row goes
 * only by being folded, and then its energy is in the others' row.
 *
 * A process is a number, which the caller chooses. Plain values, no locks, no clock, no allocation.
 */
enum {
    LEDGER_ROWS_MAX = 1024,   /* processes of one GPU that have rows */
    LEDGER_PRESENT_MAX = 250, /* of them, at once; more are others */
    LEDGER_SETS_MAX = 32,
    LEDGER_SHARERS_MAX = 64,
};

/* Numbers that are no process's. */
#define LEDGER_OTHERS ((uint64_t)0)   /* of processes for which the caller has no number left */
#define LEDGER_INVISIBLE (UINT64_MAX) /* of processes that are listed, but not visible */

struct ledger_row {
    uint64_t process; /* 0 but in rows of processes */
    int64_t energy_uj;
    double half_width_uj;  /* bound of the error of energy_uj, but for */
    double variance_uj2;   /* what is chance; ledger_half_width_uj has both */
    double time_s;         /* for which it was there */
    double shared_s;       /* of a process: part of it whose energy is in a row of shared */
    double power_w;        /* in the last interval; NAN: none, or not known apart from others' */
    uint64_t memory_bytes; /* now; UINT64_MAX: unknown */
    int64_t began_unix_ms; /* first seen there; 0: never */
    int64_t ended_unix_ms; /* seen there no more; 0: it is there */
    int64_t told_uj;       /* part of it that the caller has told somebody of */
    uint32_t group;        /* for the caller */
    bool logged;           /* for the caller */
};

/* Energy of several processes that could not be told apart. */
struct ledger_set {
    size_t count;                           /* 0: the first set, of what has no other */
    uint64_t processes[LEDGER_SHARERS_MAX]; /* rising */
    struct ledger_row row;
};

/* A process that the driver listed. */
struct ledger_seen {
    uint64_t process;
    double use;            /* how busy it kept the GPU since the look before, in percent; NAN: unknown */
    bool together;         /* through MPS, or in a MIG instance */
    bool passive;          /* does no work of its own, as the server of MPS */
    double age_s;          /* since it was started; INFINITY: unknown */
    uint64_t memory_bytes; /* UINT64_MAX: unknown */
};

/* A look at a GPU. */
struct ledger_look {
    struct mono_time at; /* of the total */
    int64_t unix_ms;
    int64_t energy_uj, unobserved_uj; /* the watch's total, and the unobserved part of it */
    double utilization;               /* of the whole GPU, 0 to 1; NAN: unknown */
    double lag_s;                     /* how old the meter's reading may be */
    double gain;                      /* its sensor's error, as a fraction */
    bool listed;                      /* the driver said who is there */
    size_t count;
    const struct ledger_seen *seen; /* in any order; several may have one number, such as LEDGER_OTHERS */
};

struct ledger {
    int64_t energy_uj;     /* the sum of all rows */
    int64_t unobserved_uj; /* the watch's, as it was last taken */
    struct ledger_row idle, unobserved, others;
    struct ledger_row *rows; /* of processes */
    size_t count, maximum;
    struct ledger_set sets[LEDGER_SETS_MAX];
    size_t set_count; /* 1 or more */
    double floor_w;   /* idle power; NAN: never seen idle */
    /* As the last look left it: */
    bool known;          /* it said who was there */
    struct mono_time at; /* 0: there was none */
    size_t present_count;
    struct ledger_seen present[LEDGER_PRESENT_MAX + 2]; /* by process, each once */
    unsigned empty_looks;                               /* in a row, that saw nobody */
};

/* `rows` is borrowed. */
void ledger_init(struct ledger *ledger, struct ledger_row *rows, size_t maximum);

/* Takes a look. Looks at the same total, or at a smaller one, are left out. */
void ledger_take(struct ledger *ledger, const struct ledger_look *look);

/* Begins with what is on record: adds the energy to that row, which is made if need be. */
struct ledger_row *ledger_resume_process(struct ledger *ledger, const struct ledger_row *saved);
struct ledger_row *ledger_resume_set(struct ledger *ledger, const struct ledger_set *saved);
void ledger_resume_row(struct ledger *ledger, struct ledger_row *row, const struct ledger_row *saved);

/* Returns the row of a process, or NULL. */
struct ledger_row *ledger_find(struct ledger *ledger, uint64_t process);

/* Adds a process's row to the others', and sets whose sharers have all been folded to the first set's. */
void ledger_fold(struct ledger *ledger, uint64_t process);

/* Returns the bound of the error of a row's energy. */
double ledger_half_width_uj(const struct ledger_row *row);

#endif
