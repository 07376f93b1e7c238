/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_SCHEDULE_H
#define FLYBALL_POLICY_CARBON_CARBON_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/carbon/carbon_solver.h"

/*
 * A schedule: which limit stands for how long, one after the other, so that it can be done just as it is
 * stated. The exact optimum (carbon_solver.h) says what can be had at most; a schedule also counts
 * what its changes are worth:
 *
 *     - each change of the limit costs `change_cost`, in the unit of the weights;
 *     - leaving a limit that has stood for less than `dwell_s` costs `haste_cost` more.
 *
 * So two limits take turns no oftener than pays, what stands stays where another gains too little, and a
 * limit that was set only now is left where the spans ahead are worth it. What such a change costs is
 * never carbon: it only decides between schedules. The limit that stands when the job has not begun yet may
 * be any.
 *
 * For a given end the schedule of least cost at a price of work is found by dynamic programming over the
 * borders of spans: n spans, k limits, O(n * k). The price is closed in on until two schedules lie around the
 * work; they are joined where that gives the work exactly. With the price of the exact optimum to begin with
 * that takes some 30 passes. Pure; a scheduler is one thread's.
 */
struct carbon_leg {
    struct carbon_point point; /* a limit of 0 W: paused */
    double duration_s;
};

struct carbon_legs {
    struct carbon_leg *legs; /* owned by the scheduler */
    size_t count;
};

/* What stands now, and what changes are worth. */
struct carbon_standing {
    const struct carbon_point *point; /* NULL: none yet */
    double held_s;
    double dwell_s;
    double change_cost, haste_cost; /* from 0 */
};

struct carbon_schedule_request {
    const struct carbon_problem *problem; /* spans up to the deadline; idle_w NaN: no pauses */
    const double *raw_weights;            /* of the same spans, counted beside theirs; NULL: theirs */
    struct carbon_standing standing;
    double finish_s; /* the end that is aimed at */
    double price;    /* of work there, to begin with */
};

/* What comes of legs; the last one goes on until the work is done. */
struct carbon_legs_sum {
    bool feasible;   /* within the spans */
    double cost;     /* with what changes cost */
    double own_cost; /* without */
    double raw_cost; /* without, by the raw weights */
    double finish_s;
};

struct carbon_scheduler {
    size_t capacity;         /* of legs, in each of these */
    struct carbon_legs best; /* the newest answer */
    struct carbon_legs fast, slow, joined;
    double *weighted_s, *end_s; /* owned: sums up to each border */
    double *reached;            /* owned: least cost of having come to a border, free to change */
    uint32_t *from;             /* owned: the border at which the leg that ends there began */
    uint8_t *by;                /* owned: and its point */
    struct carbon_leg *memory;  /* owned: the legs */
};

/* For problems of up to `capacity` spans. FLY_ENOMEM. */
int carbon_scheduler_init(struct carbon_scheduler *scheduler, size_t capacity, struct fly_error *out_error);
/* Harmless on one that is all zero. */
void carbon_scheduler_deinit(struct carbon_scheduler *scheduler);

/* Makes `scheduler->best`, and says what comes of it; not feasible where nothing does the work in time. */
struct carbon_legs_sum carbon_schedule_make(struct carbon_scheduler *scheduler,
                                            const struct carbon_schedule_request *request);

#endif
