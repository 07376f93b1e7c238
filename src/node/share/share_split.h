/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_SPLIT_H
#define FLYBALL_NODE_SHARE_SHARE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Splits the energy that a GPU drew between two looks among the processes that were on it.
 *
 *     share_split(&interval, parts, &rest);      parts[i] is members[i]'s
 *
 * The model. With E the energy, t the time, P the GPU's idle power as it was seen without any process, and
 * f[i] the part of the time during which process i was there:
 *
 *     floor     F = min(E, P t)     what the GPU would have drawn anyway; split by f[i], for time during
 *                                   which nobody was there to the idle row
 *     dynamic   D = E - F           what work drew; split by u[i], how much of the time the process kept the
 *                                   processors busy, as the driver samples it; by f[i] if nobody kept
 *                                   anything busy
 *
 * So a process that is alone has all of E, and what a job's GPU draws while it holds it is the job's. If P is
 * unknown, F is 0, or E where nobody was there for some of the time. Several processes at once of which one's
 * u is unknown, or which a Multi-Process Service or MIG puts on the GPU together, cannot be told apart: all
 * of E is `shared`.
 *
 * Half widths are bounds, made of
 *
 *     edges     a process that came or went between the looks was there for between f_least and f_most of
 *               the time: half that range times F, or times D where only the order of processes splits it;
 *               of the dynamic energy, its use for as long as samples are apart
 *     lag       where one came or went, lag_s times the mean power, times the process's use among all (and,
 *               of one that stayed, times that of those who came and went): the meter's reading is that old
 *     readings  u is a mean of whole percents. If all are cut off, or none is, shares move by SPLIT_BIAS of
 *               a percent and how far the process's share is from the mean; this adds up over intervals. The
 *               rest is chance, and adds up as variances do
 *     model     at the same u two processes may draw differently: the dynamic energy per u of one process
 *               is taken as within SPLIT_MODEL of that of the others
 *     idle      while P is unknown, any part of E may be of the floor: E, times the difference between the
 *               process's share of the time and of the use
 *     gain      of the sensor, times the part
 *
 * Parts are whole microjoules, none is below 0, and their sum is E exactly; what rounding leaves goes to the
 * largest remainders, of equal ones to the earlier member. Pure; thread-safe.
 */
enum { SPLIT_MEMBERS_MAX = 256 };

/* By how much, as a fraction, the dynamic energy of processes may differ at the same use: assumed. */
#define SPLIT_MODEL 0.15
/* By how much of a percent all uses may be off to one side: they are taken as halfway between cut and
 * rounded. */
#define SPLIT_BIAS 0.25

struct share_member {
    double least, most; /* part of the interval during which it was there, 0 to 1: at least, at most */
    double use;         /* u, in percent, over the whole interval; NAN: unknown */
    bool together;      /* MPS or MIG: it cannot be told apart from others */
    bool went;          /* it was not there any more at the end */
};

struct share_interval {
    int64_t energy_uj; /* >= 0 */
    double duration_s;
    double floor_w;     /* P; NAN: unknown */
    double lag_s, gain; /* of the meter */
    double sample_s;    /* between two samples of use */
    bool open;          /* nobody was there at one of the looks, so some of the time nobody may have been */
    size_t count;       /* 1 to SPLIT_MEMBERS_MAX */
    const struct share_member *members;
};

struct share_part {
    int64_t energy_uj;
    double half_width_uj;
    double variance_uj2; /* of what is left to chance: add 3 of its roots to the half width */
    double time_s;
};

/* Returns false if members cannot be told apart: then the whole energy is `out_rest`, of the shared row, and
 * parts have only times. Otherwise `out_rest` is of the idle row. */
bool share_split(const struct share_interval *interval, struct share_part *out_parts,
                 struct share_part *out_rest);

#endif
