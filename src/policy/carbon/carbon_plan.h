/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_PLAN_H
#define FLYBALL_POLICY_CARBON_CARBON_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/carbon/carbon_pause.h"
#include "policy/carbon/carbon_schedule.h"
#include "policy/carbon/carbon_solver.h"

/*
 * What to do now: the carbon plan of a job with a deadline.
 *
 * Asked at the start and then whenever an answer's time is over, with what is left of
 * the work (measured, not what the profile would say), the time to the deadline and the
 * newest outlook. Makes a schedule for the rest of the job that can be done just so
 * (carbon_schedule.h, near the exact optimum of carbon_solver.h) and answers with the part of it that comes
 * first:
 *
 *     question.outlook = spans from now to the deadline, with their weights
 *     carbon_plan_decide(&plan, &question, &decision, out_error);
 *     set decision.first for decision.first_s, then decision.second until decision.valid_s
 *
 * - The deadline comes first. What is answered always leaves the rest feasible at the
 *   fastest limit; where the job has fallen behind that is the answer.
 * - The best static limit for what is left is the answer where nothing is known of the
 *   grid, where what is known is stale or scarce, and where the schedule would gain less than `least_gain`
 * against it. Once taken it is held as long as it is in time.
 * - Where all weights are the same within 0.1 % the schedule is two limits, one after the other, that
 *   use the bound up together.
 * - What was decided is kept, and goes on as it was scheduled, unless another schedule costs less by what is
 *   known now. So with everything known a job never does worse than at the best static limit.
 * - Changes are scheduled with what they are worth: `least_gain` of what `dwell_s` takes, and 1 % of
 *   it more for a limit that is left before it has stood for `dwell_s`.
 * - It pauses only where pausing is allowed (carbon_pause.h).
 *
 * Pure: no clock, no file; what it remembers is in the struct. A plan is one thread's.
 */
struct carbon_plan_settings {
    double least_gain; /* a share: 0.002 */
    double dwell_s;    /* 300 */
    /* 0 to 1: by how much the outlook's differences from its mean are drawn in; in a job of half a day or
     * less, by two thirds more. */
    double doubt;
    struct carbon_pause pause;
};

/*
 * Forecasts overstate what can be known: the hour that they call the cleanest is on
 * average less so. With this share taken off their differences, recorded grids that cannot be
 * foretold (wind, reservoirs) cost less, and those that can lose next to nothing. In a short job errors
 * average out over less, so it goes by half of the differences alone.
 */
#define CARBON_USUAL_DOUBT 0.3

enum carbon_reason {
    CARBON_FOLLOWS, /* the plan's own */
    CARBON_KEPT,    /* the limit that stands is as good */
    CARBON_DWELLS,  /* it was changed only now */
    CARBON_PAUSES,
    CARBON_TAKES_TURNS,  /* the grid is flat, and two limits use the bound up */
    CARBON_UNKNOWN_GRID, /* the rest are answers with a static limit */
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
    bool stale;     /* the outlook rests on too little to be trusted: */
    bool scarce;    /* then: what is known is new, and not enough; else it is too old */
    double work_s;  /* what is left, as seconds at the fastest limit */
    double time_s;  /* to the deadline */
    double limit_w; /* that stands now; 0 while paused; NaN before the first decision */
    double held_s;  /* for how long it has stood */
};

struct carbon_decision {
    struct carbon_point first, second; /* a limit of 0 W: pause */
    double first_s;                    /* then the second; valid_s where there is one alone */
    double valid_s;                    /* ask again after that, or when the outlook changes */
    enum carbon_reason reason;
    double restore_s;   /* of first_s, until a paused job runs again */
    double cost;        /* expected weight of the rest, of what was decided; NaN when not known */
    double static_cost; /* of the best static limit */
    double finish_s;    /* expected, from now */
};

struct carbon_plan {
    struct carbon_plan_settings settings;
    struct carbon_workspace workspace;
    struct carbon_span *spans;   /* owned: those up to the deadline */
    double *raw_weights;         /* owned: theirs, without doubt */
    struct carbon_pauser pauser; /* where pausing is allowed */
    struct carbon_scheduler scheduler;
    struct carbon_legs held; /* owned: what was decided; no legs where a static limit was */
    double held_time_s;      /* the time to the deadline when that was so */
    double whole_s;          /* the most time that this job has had */
    double held_static_w;    /* the static limit that was taken, 0 when none is */
};

/* For outlooks of up to `capacity` spans. FLY_EUSAGE for settings out of range, FLY_ENOMEM. */
int carbon_plan_init(struct carbon_plan *plan, const struct carbon_plan_settings *settings, size_t capacity,
                     struct fly_error *out_error);
void carbon_plan_deinit(struct carbon_plan *plan);

/* A next job: forgets what was held. */
void carbon_plan_restart(struct carbon_plan *plan);

int carbon_plan_decide(struct carbon_plan *plan, const struct carbon_question *question,
                       struct carbon_decision *out_decision, struct fly_error *out_error);

/* "follows the grid", ...: a clause for people. */
const char *carbon_reason_text(enum carbon_reason reason);

#endif
