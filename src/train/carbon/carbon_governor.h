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
 * Decides which of the measured power limits a running training should have now. It uses the carbon plan
 * (policy/carbon/carbon_plan.h), the grid's figures as they come (carbon_keeper.h), and the measured amount
 * of work left. It sets no limit itself; a tuner or a session does, and tells it which limit stands.
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
 * The time up to a deadline is wall-clock time; for each step left, the time that evaluation took per step so
 * far is set aside. A bound given as a slowdown counts only time in steps (carbon_pace.h). Both hold from the
 * first step on, so searching is included. A little time is kept in reserve, since the governor is asked only
 * every few seconds.
 *
 * The plan itself decides what a change of the limit must gain and how long a limit stands; the governor
 * holds back nothing that the plan says.
 *
 * Each rank has a governor. That of rank 0 decides; the others keep their rank's account and follow. After a
 * fork the child's copy does nothing. One thread.
 */
struct carbon_governor;

struct carbon_governor_options {
    struct fly_carbon_options carbon; /* texts are copied */
    const struct clock *clock;        /* NULL: clock_real */
    struct fly_meter *meter;          /* borrowed */
    /* Borrowed: somebody else keeps the account and counts its steps; NULL: the governor keeps its own. */
    struct carbon_keeper *keeper;
    double max_slowdown;             /* the objective's; INFINITY: none, and 3 % are used */
    const char *job, *run, *program; /* for the account; NULL: "" */
    uint32_t gpus, rank;             /* of this rank */
    uint32_t all_gpus;               /* of all ranks: the profile has their power; 0: gpus */
    double all_host_w;               /* what the machines of all ranks draw; 0: carbon.host_w */
    bool cached_only;
};

/* Opens a governor. Returns FLY_EUSAGE for options out of range, FLY_ENOMEM. */
int carbon_governor_open(const struct carbon_governor_options *options, struct carbon_governor **out_governor,
                         struct fly_error *out_error);

/* Takes a measured profile; times of points are of one step. Returns FLY_EUSAGE, FLY_ELIMIT. */
int carbon_governor_profile(struct carbon_governor *governor, const struct fly_power_point *points,
                            size_t count, struct fly_error *out_error);

/*
 * Sets another bound for all of the work from now on: a job's log accepts the slowdown of the limit that it
 * chose. For a session. Does nothing when `finish_by_unix_s` is the bound, or for a factor below 1.
 */
void carbon_governor_bound(struct carbon_governor *governor, double max_slowdown);

/* After how many steps of that length to ask again: some seconds, at least one step. */
uint64_t carbon_governor_every(double step_time_s);

/* The limit that should stand now; NAN: keep the one that stands. Sets nothing, never waits. */
double carbon_governor_decide(struct carbon_governor *governor, const struct carbon_progress *progress);

/* The reason of the newest decision; CARBON_UNKNOWN_GRID before the first. */
enum carbon_reason carbon_governor_reason(const struct carbon_governor *governor);
/* Tells how many steps are done, for the account, when the governor is not asked. */
void carbon_governor_count(struct carbon_governor *governor, double steps_done);

/* Tells which limit stands now; NAN: not known, or not ours. */
void carbon_governor_stands(struct carbon_governor *governor, double limit_w);

/*
 * By how many seconds the bound exceeds the time for the rest at the fastest limit, if each step takes
 * `step_s` there from now on. Below 0: the bound cannot be kept; INFINITY when the amount of work is not
 * known. With or without a profile: this much time may be spent on measuring one.
 */
double carbon_governor_spare_s(const struct carbon_governor *governor, const struct carbon_progress *progress,
                               double step_s);

/*
 * The last week's mean intensity (objective carbon) or price, which a trial keeps as its reference; NAN: not
 * known.
 */
double carbon_governor_reference(struct carbon_governor *governor, int signal);

void carbon_governor_report(const struct carbon_governor *governor, struct fly_carbon_report *out_report);

/* Accepts NULL. */
void carbon_governor_close(struct carbon_governor *governor);

#endif
