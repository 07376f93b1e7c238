/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_PHASE_PRIVATE_H
#define FLYBALL_METER_PHASE_PRIVATE_H

#include "meter/phase.h"

/* What phase.c and phase_burst.c share. Moments are in seconds since the phase's origin. */

enum { PHASE_FOUND_LEAST = 3 };

/*
 * Forgets all updates; the next burst searches for one, with this belief about the period. How far
 * the period may be off (a standard deviation) follows from how often a search has failed: at first
 * it is taken to be right. After an odd number of failures the updates in the burst are counted.
 */
void phase_search(struct phase *phase, double period_s, int failures);

/* Searches for the updates of a counter that was fresh up to now. */
void phase_is_not_fresh(struct phase *phase);

/* Believes less in the period, unless it has proved right, since an update did not come when it was due. */
void phase_doubt_period(struct phase *phase);

/* Keeps only the newest updates, since the line may have changed. */
void phase_forget(struct phase *phase);

double phase_since_s(const struct phase *phase, struct mono_time at);

/* Returns the number, counted from the line's, of the last update due at or before a moment. */
double phase_last_due(const struct phase *phase, double at_s);
double phase_due_s(const struct phase *phase, double number);

/* Returns how far the line may be off there, and how far an update may be: in 95 of 100 cases. */
double phase_line_error_s(const struct phase *phase, double at_s);
double phase_spread_at_s(const struct phase *phase, double at_s);

/* Returns by how much the updates found miss the line beyond what they are uncertain; some at least. */
double phase_seen_scatter_s(const struct phase *phase);

/* Settles the state after an update was found or missed. */
void phase_settle(struct phase *phase, double at_s, bool doubted);

#endif
