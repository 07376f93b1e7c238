/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_GOVERNOR_H
#define FLYBALL_TRAIN_CARBON_CARBON_GOVERNOR_H

#include <flyball/carbon.h>
#include <flyball/power_profile.h>

#include "base/clock.h"
#include "policy/carbon/carbon_plan.h"
#include "train/carbon/carbon_keeper.h"
#include "train/carbon/carbon_pace.h"

/*
 * Says which power limit a running training should have now, of those that were measured:
 * the carbon plan (policy/carbon/carbon_plan.h) over the grid's figures as they come
 * (carbon_keeper.h), with what is left of the work as it was measured. It turns nothing
 * itself; a tuner or a session does, and tells it what stands.
 *
 *     carbon_governor_open(&options, &governor, out_error);
 *     carbon_governor_profile(governor, points, count, out_error);    once it is measured, and again
 *     in each step, once every carbon_governor_every(...) steps:
 *         limit_w = carbon_governor_decide(governor, &progress)
 *         if (isfinite(limit_w))
 *             set it between two steps
 *     carbon_governor_stands(governor, limit_w);                      after each change, whoever made it
 *     carbon_governor_close(governor);
 *
 * Time up to the deadline is the clock's on the wall, with what evaluation took so far for each step
 * left over for the rest of it. Of a bound as a slowdown only time in steps counts
 * (carbon_pace.h). Both hold from the first step on: searching is part of it. A little is kept
 * in reserve, since it is asked only every few seconds.
 *
 * What a change of the limit has to gain is part of the plan, and so is how long one stands; nothing here
 * holds back what the plan says.
 *
 * Each rank has one; that of rank 0 decides, and the others, which keep their rank's account,
 * follow what it says. After fork the child's copy is inert. One thread.
 */
struct carbon_governor;

struct carbon_governor_options {
    struct fly_carbon_options carbon; /* texts are copied */
    const struct clock *clock;        /* NULL: clock_real */
    struct fly_meter *meter;          /* borrowed */
    /* Borrowed: somebody keeps the account already, and counts its steps; NULL: one of its own. */
    struct carbon_keeper *keeper;
    double max_slowdown;             /* the objective's; INFINITY: none, so 3 % */
    const char *job, *run, *program; /* for the account; NULL: "" */
    uint32_t gpus, rank;             /* of this rank */
    uint32_t all_gpus;               /* of all ranks, whose power the profile has; 0: gpus */
    double all_host_w;               /* likewise, what their machines draw; 0: carbon.host_w */
    bool cached_only;
};

/* FLY_EUSAGE for options out of range, FLY_ENOMEM. */
int carbon_governor_open(const struct carbon_governor_options *options, struct carbon_governor **out_governor,
                         struct fly_error *out_error);

/* Times of points are of one step. FLY_EUSAGE, FLY_ELIMIT. */
int carbon_governor_profile(struct carbon_governor *governor, const struct fly_power_point *points,
                            size_t count, struct fly_error *out_error);

/*
 * Another bound holds from now on, for all of the work: a job's log accepts the slowdown of the limit that it
 * chose. For a session; nothing where `finish_by_unix_s` is the bound, or for a factor below 1.
 */
void carbon_governor_bound(struct carbon_governor *governor, double max_slowdown);

/* After so many steps of that length it is to be asked again: some seconds, at least one step. */
uint64_t carbon_governor_every(double step_time_s);

/* The limit that should stand now; NAN: what stands is to stay. Sets nothing; waits for nothing. */
double carbon_governor_decide(struct carbon_governor *governor, const struct carbon_progress *progress);

/* Why the newest decision was so; CARBON_UNKNOWN_GRID before the first. */
enum carbon_reason carbon_governor_reason(const struct carbon_governor *governor);
/* So many steps are done by now: for the account, where it is not asked. */
void carbon_governor_count(struct carbon_governor *governor, double steps_done);

/* That limit stands now; NAN: not known, or not ours. */
void carbon_governor_stands(struct carbon_governor *governor, double limit_w);

/*
 * By how much time the bound exceeds what the rest takes at the fastest limit, where a step takes `step_s`
 * there from now on; below 0: it falls short; INFINITY where the work is not known. With or
 * without a profile: so much may be spent on measuring one.
 */
double carbon_governor_spare_s(const struct carbon_governor *governor, const struct carbon_progress *progress,
                               double step_s);

/* The mean intensity (objective carbon) or price of the last week, to be frozen with a trial; NAN. */
double carbon_governor_reference(struct carbon_governor *governor, int signal);

void carbon_governor_report(const struct carbon_governor *governor, struct fly_carbon_report *out_report);

/* Accepts NULL. */
void carbon_governor_close(struct carbon_governor *governor);

#endif
