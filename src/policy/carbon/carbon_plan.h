/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_PLAN_H
#define FLYBALL_POLICY_CARBON_CARBON_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/carbon/carbon_pause.h"
#include "policy/carbon/carbon_schedule.h"
#include "policy/carbon/carbon_solver.h"

/*
 * The carbon plan of a job with a deadline: it says what to do now.
 *
 * Ask it at the start, and again whenever an answer's time is over, with the work that is left
 * (as measured, not as the profile predicts), the time to the deadline and the newest outlook. It
 * makes a schedule for the rest of the job that can be carried out exactly as stated
 * (carbon_schedule.h, near the exact optimum of carbon_solver.h), and answers with the first part
 * of that schedule:
 *
 *     question.outlook = spans from now to the deadline, with their weights
 *     carbon_plan_decide(&plan, &question, &decision, out_error);
 *     set decision.first for decision.first_s, then decision.second until decision.valid_s
 *
 * - The deadline comes first. After each answer the rest is still feasible at the fastest limit.
 *   If the job has fallen behind, the answer is the fastest limit.
 * - The answer is the best static limit for what is left if nothing is known of the grid, if what
 *   is known is stale or scarce, and if the schedule would gain less than `least_gain` compared
 *   with it. Once taken, a static limit is kept as long as it is in time.
 * - If all weights are the same within 0.1 %, the schedule is two limits, one after the other,
 *   that together use up the bound.
 * - What was decided is kept and goes on as scheduled, unless another schedule costs less by what
 *   is known now. So if everything is known in advance, a job never does worse than at the best
 *   static limit.
 * - Each change of the limit is charged: `least_gain` of what `dwell_s` takes, and 1 % of it more
 *   for a limit that is left before it was in force for `dwell_s`.
 * - It pauses only where pausing is allowed (carbon_pause.h).
 *
 * Pure: no clock, no file. What it remembers is in the struct. A plan belongs to one thread.
 */
struct carbon_plan_settings {
    double least_gain; /* a share; usually 0.002 */
    double dwell_s;    /* usually 300 */
    /*
     * 0 to 1: by how much the outlook's differences from its mean are reduced; in a job of half a day
     * or less, by two thirds more.
     */
    double doubt;
    struct carbon_pause pause;
};

/*
 * The usual doubt. Forecasts promise more than can be known: the hour that they call the cleanest
 * is less clean on average. With this share taken off the differences, jobs cost less on recorded
 * grids that cannot be predicted (wind, reservoirs), and lose almost nothing on those that can. In
 * a short job errors have less time to average out, so only half of the differences counts there.
 */
#define CARBON_USUAL_DOUBT 0.3

enum carbon_reason {
    CARBON_FOLLOWS, /* the schedule's own limit */
    CARBON_KEPT,    /* the limit in force is as good */
    CARBON_DWELLS,  /* the limit was changed only a short time ago */
    CARBON_PAUSES,
    CARBON_TAKES_TURNS,  /* the grid is flat, and two limits together use up the bound */
    CARBON_UNKNOWN_GRID, /* from here on: answers with a static limit */
    CARBON_STALE_GRID,
    CARBON_SCARCE_GRID,
    CARBON_FLAT_GRID,
    CARBON_NO_GAIN,
    CARBON_BEHIND, /* at the fastest limit, to keep the deadline */
    CARBON_REASON_COUNT
};

struct carbon_question {
    const struct carbon_profile *profile;
    const struct carbon_span *outlook; /* from now on; a weight that is not known is NaN */
    size_t outlook_count;
    bool stale;     /* the outlook rests on too little to be trusted, because: */
    bool scarce;    /* if set, what is known is new but not enough; else it is too old */
    double work_s;  /* work that is left, in seconds at the fastest limit */
    double time_s;  /* to the deadline */
    double limit_w; /* in force now; 0 while paused; NaN before the first decision */
    double held_s;  /* how long it has been in force */
};

struct carbon_decision {
    struct carbon_point first, second; /* a limit of 0 W: pause */
    double first_s;                    /* then the second follows; valid_s if there is only one */
    double valid_s;                    /* ask again after that, or when the outlook changes */
    enum carbon_reason reason;
    double restore_s;   /* part of first_s until a paused job runs again */
    double cost;        /* expected weight of the rest under this decision; NaN: unknown */
    double static_cost; /* of the best static limit */
    double finish_s;    /* expected, from now */
};

struct carbon_plan {
    struct carbon_plan_settings settings;
    struct carbon_workspace workspace;
    struct carbon_span *spans;   /* owned: spans up to the deadline */
    double *raw_weights;         /* owned: their weights before doubt is applied */
    struct carbon_pauser pauser; /* used where pausing is allowed */
    struct carbon_scheduler scheduler;
    struct carbon_legs held; /* owned: the schedule decided on; no legs after a static limit */
    double held_time_s;      /* the time to the deadline when it was decided on */
    double whole_s;          /* the most time that this job has had */
    double held_static_w;    /* the static limit that was taken; 0: none */
    bool varied;             /* the outlook was not flat at one decision of this job, or at more */
};

/* Makes a plan for outlooks of up to `capacity` spans. FLY_EUSAGE for settings out of range, FLY_ENOMEM. */
int carbon_plan_init(struct carbon_plan *plan, const struct carbon_plan_settings *settings, size_t capacity,
                     struct fly_error *out_error);
void carbon_plan_deinit(struct carbon_plan *plan);

/* Forgets what was decided, before the next job. */
void carbon_plan_restart(struct carbon_plan *plan);

int carbon_plan_decide(struct carbon_plan *plan, const struct carbon_question *question,
                       struct carbon_decision *out_decision, struct fly_error *out_error);

/* Returns a clause for people: "follows the grid", ... */
const char *carbon_reason_text(enum carbon_reason reason);

#endif
