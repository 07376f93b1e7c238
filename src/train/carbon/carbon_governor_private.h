/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_GOVERNOR_PRIVATE_H
#define FLYBALL_TRAIN_CARBON_CARBON_GOVERNOR_PRIVATE_H

#include "train/carbon/carbon_ahead.h"
#include "train/carbon/carbon_governor.h"

/*
 * The inside of carbon_governor.h: carbon_governor.c is what a tuner or a session calls,
 * carbon_governor_plan.c makes the plan and keeps it up to date, and carbon_head.c checks the options.
 */

/* The newest decision; times in seconds of the governor's clock. */
struct decided {
    bool made;
    struct carbon_point first, second;
    double first_until_s, until_s;
    double finish_s;
    double pace;        /* the pace factor when it was made */
    double wall_lead_s; /* the wall clock minus the governor's */
    bool behind;
    enum carbon_reason reason;
    const char *text;
};

struct carbon_governor {
    struct ledger_head head; /* the options, with defaults filled in */
    double all_host_w, gpu_share;
    bool leads; /* rank 0 */
    const struct clock *clock;
    struct mono_time opened;
    struct carbon_keeper *keeper;
    bool keeper_owned;
    double steps_told; /* to a keeper of its own */

    struct carbon_ahead ahead;
    bool figures_changed;
    struct carbon_pace pace;
    struct carbon_plan plan;
    size_t plan_capacity; /* 0: there is none */
    struct decided decided;

    bool fresh;        /* no decision since the newest profile */
    double standing_w; /* NAN: none of the profile's, or not known */
    double stands_since_s;
    double asked_w; /* the limit that the newest answer asked for; NAN: none */
    uint32_t decisions, changes;
};

/* Seconds of the governor's clock since it was opened; of the wall clock since 1970. */
double governor_now_s(const struct carbon_governor *governor);
double governor_date_s(const struct carbon_governor *governor);

/* Decides anew when that is due and both progress and a profile are known. */
void governor_keep_plan(struct carbon_governor *governor, double now_s);

/* The limit that was decided for that moment. */
double governor_limit_w(const struct carbon_governor *governor, double now_s);

#endif
