/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_PHASE_H
#define FLYBALL_METER_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Follows the moments at which an energy counter is updated. It is given every reading of the
 * counter, whoever made it, and asks for some more at moments that tell most. Two readings in a
 * row either differ, and an update fell between them, or they do not, and none did.
 *
 *     phase_init(&phase, 0.1);
 *     phase_take(&phase, before, after, value_uj);           at every reading
 *     when = phase_next_read(&phase, now);                   read again at that moment, then
 *     phase_extra_read(&phase, now);                         say that it was done
 *     age = phase_age(&phase, at, least_s, most_s);          of the last update
 *
 * How. A burst of readings over a little more than a period finds the first update. The next two are
 * looked for where the stated period says, and if they are not there, it is believed less. Later bursts,
 * of a few readings around an update that is due, narrow it down, ever further ahead. A straight
 * line through the latest updates found (time over number; each weighs as precisely as it is
 * known, and half as much after 20 s) gives period and phase, with the variance of a prediction:
 *
 *     u(k) = a + b k,   var u(k) = var a + 2 k cov(a, b) + k^2 var b
 *
 * `scatter_s` is how far updates fall from the line. It grows when one is missed and shrinks when
 * one is found, so that about one in ten is missed: it follows the jitter. A reading that
 * contradicts the line (no update where one was due, or one where none was) makes it doubtful
 * until a burst confirms it; three of these or of bursts that miss in a row, and the search begins
 * again. So a counter that drifts, is slewed or has slept is followed or found anew, and one that
 * keeps no time is not tracked.
 *
 * A counter that differs at every reading has no updates to follow, and needs none: c changes among
 * readings that are t apart, first to last, leave updates at most t / (c - 1) apart, and no age is more.
 * Such a burst is repeated twice a minute, and a reading that does not differ from one made longer before
 * than that begins the search again.
 *
 * At most 60 extra readings are asked for in any minute, most of those of the first one at once. Plain
 * values, no clock, no locks, no allocation.
 */
enum phase_state {
    PHASE_SEARCHED, /* not found yet, or lost */
    PHASE_TRACKED,
    PHASE_DOUBTED,  /* a reading contradicted it a moment ago */
    PHASE_UNSTEADY, /* updates keep no time that can be followed */
    PHASE_FRESH,    /* every reading differs: the counter is made when it is read, or nearly so */
    PHASE_NONE,     /* there is nothing to track: updates are stated to be too frequent to matter */
    PHASE_STATE_COUNT
};

/* Returns a clause for a note: why updates are not tracked. */
const char *phase_state_clause(enum phase_state state);

enum { PHASE_UPDATES = 16 };

/* An update that was found: it fell within half_s of at_s, in seconds since the phase's origin. */
struct phase_update {
    int64_t number;
    double at_s, half_s;
};

/* The line through the updates: that of number 0 at a_s, and period_s from one to the next. */
struct phase_line {
    int64_t number; /* that counts as 0 */
    double at_s, period_s;
    double at_var_s2, period_var_s2, both_var_s2;
};

/* A burst of extra readings. */
struct phase_burst {
    bool open, searches, thorough;
    bool dense;        /* its readings follow each other closely, to see whether all of them differ */
    bool looks_later;  /* no update was found, and one more reading shows whether it came at all */
    bool contradicted; /* a change came where the line says that none can */
    double start_s, step_s;
    int count, next, found_at;
    uint32_t found_before;
    int pairs, changes;
    double first_change_s, last_change_s;
    double from_s, until_s; /* what the pairs cover */
};

struct phase {
    enum phase_state state;
    double stated_s;
    struct mono_time origin;
    bool read; /* there was a reading: */
    double read_before_s, read_after_s;
    uint64_t value_uj;
    struct phase_update updates[PHASE_UPDATES];
    uint32_t found; /* since the search began; a ring */
    struct phase_line line;
    double prior_s, prior_error_s; /* the period as believed before any was seen */
    double scatter_s;
    double missed_share, skipped_share; /* of the latest bursts: the update came elsewhere, or not at all */
    int misses;                         /* in a row */
    int failures;                       /* of searches in a row; -1: the period has proved right */
    bool seems_fresh;                   /* two readings in a row came with a change each */
    double fresh_s;                     /* PHASE_FRESH: no age is more */
    double rest_until_s;                /* no burst before */
    struct phase_burst burst;
    bool allowed;        /* the allowance counts: */
    double allowance;    /* extra readings that may be made at */
    double allowed_at_s; /* this moment */
};

/* `stated_s` is the counter's period as far as it is known; below 5 ms nothing is tracked. */
void phase_init(struct phase *phase, double stated_s);

/* Adds a reading that began and ended at these moments; one older than the last changes nothing. */
void phase_take(struct phase *phase, struct mono_time before, struct mono_time after, uint64_t value_uj);

/* Returns when to read next, at `now` or later; INT64_MAX ns: no extra reading is wanted. */
struct mono_time phase_next_read(struct phase *phase, struct mono_time now);

/* Says that the extra reading was made, after phase_take if it succeeded. */
void phase_extra_read(struct phase *phase, struct mono_time now);

/* Says that it failed: no other is wanted for a while. */
void phase_read_failed(struct phase *phase, struct mono_time now);

/* The age of the last update at some moment lies between these. */
struct phase_age {
    bool known;
    double low_s, high_s;
};

/*
 * Returns the age at a moment near the last reading. `least_s` and `most_s` are what readings
 * around it show by themselves: 0 and INFINITY if nothing. Where one more update may or may not
 * have come, both ages are within the limits. Unknown unless tracked or fresh.
 */
struct phase_age phase_age(const struct phase *phase, struct mono_time at, double least_s, double most_s);

/*
 * Returns how far an update due around that moment may be off, in 95 of 100 cases; of a fresh counter, the
 * greatest age.
 */
double phase_spread_s(const struct phase *phase, struct mono_time at);

#endif
