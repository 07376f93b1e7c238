/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_HISTORY_H
#define FLYBALL_EMULATOR_HISTORY_H

#include <stdint.h>

/*
 * The truth about one emulated GPU: what it drew, moment by moment.
 *
 * Whenever load, limit or clocks change, a segment begins, with a target that the power approaches
 * exponentially. The board's regulator needs its own time r to bring the target to where the limit wants it:
 * until then the target is off by a, positive after a load began or a limit was lowered. From the start at
 * power P0, with the final target T and settling time s, and with b = a r / (r - s),
 *
 *     P(t) = T + b e^(-t/r) + (P0 - T - b) e^(-t/s)
 *     E(t) = T t + b r (1 - e^(-t/r)) + (P0 - T - b) s (1 - e^(-t/s))
 *
 * and the temperature C follows C' = (ambient + heating P - C) / thermal time, also solved in closed form.
 * Nothing is stepped, so any moment has one exact answer, however rarely it is asked for.
 *
 * The newest EMULATOR_SEGMENTS segments are kept. Before the first one the power was that at its start. Times
 * are nanoseconds of the state's clock. Pure except for the history itself; the caller locks.
 */
enum { EMULATOR_SEGMENTS = 4096 };

struct segment {
    int64_t start_ns;
    double power_w;       /* at the start */
    double temperature_c; /* at the start */
    double energy_j;      /* drawn up to the start, since the state was made */
    double capped_s;      /* time up to the start that the limit held the clock down */
    double hot_s;         /* and that heat did */
    double busy_s;        /* and that it was at work, by utilisation */
    double target_w;
    double off_w;       /* a: what the target is off by at the start, until the regulator has settled */
    double allowance;   /* share of the free dynamic power that the regulator allows at the start */
    double allowed;     /* the same once it has settled; 1 where nothing binds */
    double clock;       /* relative to the highest, once settled; 0 without work */
    double utilization; /* 0 .. 1 */
    uint64_t reasons;   /* enum nvml_event_reason */
};

/* What a board's physics needs. */
struct inertia {
    double settle_s;
    double limit_settle_s; /* r; 0: the regulator is there at once */
    double thermal_s, ambient_c, heating_c_per_w;
};

struct history {
    uint64_t count; /* of all segments so far; the ring holds the newest */
    struct segment ring[EMULATOR_SEGMENTS];
};

/* What changes at the start of a segment. */
struct segment_change {
    double target_w, free_w, allowed; /* free_w: dynamic power with nothing that regulates it */
    double clock, utilization;
    uint64_t reasons;
};

/* Begins the history of a GPU that has always idled at `idle_w`. */
void history_start(struct history *history, const struct inertia *inertia, int64_t at_ns, double idle_w,
                   uint64_t reasons);

/* Begins a segment at `at_ns`, or at the newest one's start if that is later. */
void history_append(struct history *history, const struct inertia *inertia, int64_t at_ns,
                    const struct segment_change *change);

/* The newest segment; the one that contains `at_ns`, or the oldest kept one for earlier moments. */
const struct segment *history_newest(const struct history *history);
const struct segment *history_find(const struct history *history, int64_t at_ns);

/*
 * The start of the oldest kept segment, before which the truth is not known; INT64_MIN while none was
 * dropped.
 */
int64_t history_known_ns(const struct history *history);

double history_power_w(const struct history *history, const struct inertia *inertia, int64_t at_ns);
double history_energy_j(const struct history *history, const struct inertia *inertia, int64_t at_ns);
double history_temperature_c(const struct history *history, const struct inertia *inertia, int64_t at_ns);

/* The share of the free dynamic power that the regulator allows at `at_ns`. */
double history_allowance(const struct history *history, const struct inertia *inertia, int64_t at_ns);

/* Seconds that the limit, or heat, held the clock down. */
double history_capped_s(const struct history *history, int64_t at_ns);
double history_hot_s(const struct history *history, int64_t at_ns);

/* Mean utilisation over `window_s`, above 0, before `at_ns`. */
double history_mean_utilization(const struct history *history, int64_t at_ns, double window_s);

/* Mean power over `window_s` before `at_ns`; for a window of 0 the power at that moment. */
double history_mean_w(const struct history *history, const struct inertia *inertia, int64_t at_ns,
                      double window_s);

#endif
