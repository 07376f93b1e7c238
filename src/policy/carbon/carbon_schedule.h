/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_SCHEDULE_H
#define FLYBALL_POLICY_CARBON_CARBON_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/carbon/carbon_solver.h"

/*
 * A schedule: a sequence of limits, each with the time for which it is in force, that can be
 * carried out exactly as stated. The exact optimum (carbon_solver.h) is a bound on what is
 * possible; a schedule also counts a cost for its changes:
 *
 *     - each change of the limit costs `change_cost`, in the unit of the weights;
 *     - leaving a limit that was in force for less than `dwell_s` costs `haste_cost` more.
 *
 * So two limits take turns only as often as that pays, a limit stays if another gains too little,
 * and a limit that was set just now is left only if the spans ahead are worth it. The cost of a
 * change is never carbon: it only decides between schedules. Before the job has begun, any limit
 * may be in force.
 *
 * For a given end, dynamic programming over the borders of spans finds the schedule of least cost
 * at a price of work: n spans, k limits, O(n * k). The price is narrowed down until one schedule
 * does less than the work and one at least the work. The two are then joined if that gives
 * exactly the work. Starting from the price of the exact optimum, that takes some 30 passes.
 * Pure; a scheduler belongs to one thread.
 */
struct carbon_leg {
    struct carbon_point point; /* a limit of 0 W: paused */
    double duration_s;
};

struct carbon_legs {
    struct carbon_leg *legs; /* owned by the scheduler */
    size_t count;
};

/* The limit in force now, and what changes cost. */
struct carbon_standing {
    const struct carbon_point *point; /* NULL: none yet */
    double held_s;
    double dwell_s;
    double change_cost, haste_cost; /* from 0 */
};

struct carbon_schedule_request {
    const struct carbon_problem *problem; /* spans up to the deadline; idle_w NaN: no pauses */
    const double *raw_weights;            /* other weights of the same spans, whose cost is also summed;
                                           * NULL: the same weights */
    struct carbon_standing standing;
    double finish_s; /* the end to aim at */
    double price;    /* of work at that end, as a starting value */
};

/* What legs cost and when they finish; the last leg goes on until the work is done. */
struct carbon_legs_sum {
    bool feasible;   /* the work is done within the spans */
    double cost;     /* including the cost of changes */
    double own_cost; /* without the cost of changes */
    double raw_cost; /* without the cost of changes, by the raw weights */
    double finish_s;
};

struct carbon_scheduler {
    size_t capacity;         /* of legs, in each of the lists below */
    struct carbon_legs best; /* the newest answer */
    struct carbon_legs fast, slow, joined;
    double *weighted_s, *end_s; /* owned: sums up to each border */
    double *reached;            /* owned: the least cost of reaching a border, free to change there */
    uint32_t *from;             /* owned: the border at which the leg that ends there began */
    uint8_t *by;                /* owned: and the point of that leg */
    struct carbon_leg *memory;  /* owned: memory of the legs */
};

/* Makes a scheduler for problems of up to `capacity` spans. FLY_ENOMEM. */
int carbon_scheduler_init(struct carbon_scheduler *scheduler, size_t capacity, struct fly_error *out_error);
/* Harmless on a zeroed struct. */
void carbon_scheduler_deinit(struct carbon_scheduler *scheduler);

/* Makes `scheduler->best` and returns its sums; not feasible if nothing does the work in time. */
struct carbon_legs_sum carbon_schedule_make(struct carbon_scheduler *scheduler,
                                            const struct carbon_schedule_request *request);

/* Computes with the legs of a schedule alone (carbon_schedule.h). Pure. */

/* Computes what any legs would cost, and when they would finish; at least one leg. */
struct carbon_legs_sum carbon_schedule_sum(const struct carbon_schedule_request *request,
                                           const struct carbon_legs *legs);

#endif
