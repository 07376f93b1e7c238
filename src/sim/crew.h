/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CREW_H
#define FLYBALL_SIM_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/ordered_output.h"

/*
 * Worker threads for numbered units of work, with output in the order of the units. What a unit
 * uses is its own or constant, so the number of threads changes only the time.
 */
enum { CREW_THREADS_MAX = 256 };

/* A unit that is being worked on. */
struct crew_unit {
    uint64_t number;
    struct ordered_part part; /* what the unit writes */
    struct crew *crew;
};

/*
 * Called by the caller's thread, ten times a second; without worker threads at most so often, between units
 * and when a unit asks crew_given_up. What is not 0 gives the work up: FLY_ESTATE.
 */
typedef int crew_progress(void *context, uint64_t done, uint64_t total);

struct crew_plan {
    uint64_t units;
    unsigned threads; /* 1 .. CREW_THREADS_MAX; 0: no worker threads, all is done on the caller's */
    int (*run)(void *context, struct crew_unit *unit, struct fly_error *out_error);
    void *context;
    void (*thread_begun)(void); /* called first by every worker thread, or NULL */
    ordered_sink *sink;         /* takes what the units write, or NULL */
    void *sink_context;
    crew_progress *progress; /* or NULL */
    void *progress_context;
};

/*
 * Works until every unit is done or one has failed. Returns the first error of a unit or the
 * sink, after the running units have ended. Worker threads block all signals except those of
 * their own faults, for which a program may have handlers. FLY_ELIMIT for too many threads.
 */
int crew_run(const struct crew_plan *plan, struct fly_error *out_error);

/*
 * Returns whether the crew has failed, so that a long unit can stop early. `unit` is a struct
 * crew_unit. For any thread that works on a unit.
 */
bool crew_given_up(void *unit);

#endif
