/* SPDX-License-Identifier: Apache-2.0 */
#include "node/share/share_split.h"

#include <math.h>
#include <string.h>

/* What the members come to, before anything is rounded. The last place of arrays is the rest's. */
struct weighing {
    double floor_uj, dynamic_uj, lag_uj;
    double uses[SPLIT_MEMBERS_MAX];    /* halfway between cut and rounded; 0 is 0 */
    double weights[SPLIT_MEMBERS_MAX]; /* of the dynamic energy; their sum is 1 */
    double times[SPLIT_MEMBERS_MAX + 1];
    double time_sum, edge_most; /* the widest range of all members' times */
    double use_sum;             /* 0: by times alone */
    double edge_use;            /* part of it that is of those who came or went */
    size_t edges;
    bool floor_unknown; /* any part of the dynamic energy may be of the floor */
};

static double middle(const struct share_member *member)
{
    return (member->least + member->most) / 2.0;
}

static bool is_edge(const struct share_member *member)
{
    return member->least < member->most;
}

/* Processes that follow each other can be told apart by time; those that were there at once only by use. */
static bool can_tell_apart(const struct share_interval *interval)
{
    size_t came = 0, went = 0;
    bool known = true;

    for (size_t i = 0; i < interval->count; i++) {
        const struct share_member *member = &interval->members[i];

        known = known && !member->together && isfinite(member->use);
        came += is_edge(member) && !member->went;
        went += member->went;
    }
    return known || interval->count <= 1 || (interval->count == 2 && came == 1 && went == 1);
}

static void weigh_member(const struct share_member *member, size_t at, struct weighing *out)
{
    bool busy = isfinite(member->use) && member->use > 0.0;

    out->times[at] = middle(member);
    out->time_sum += out->times[at];
    out->edge_most = fmax(out->edge_most, member->most - member->least);
    out->edges += is_edge(member);
    out->uses[at] = busy ? member->use + SPLIT_BIAS : 0.0;
    out->use_sum += out->uses[at];
    out->edge_use += is_edge(member) ? out->uses[at] : 0.0;
}

static void weigh(const struct share_interval *interval, struct weighing *out)
{
    double energy_uj = (double)interval->energy_uj, longest = 0.0;

    *out = (struct weighing){.floor_uj = 0.0};
    if (isfinite(interval->floor_w) && interval->floor_w > 0.0)
        out->floor_uj = fmin(energy_uj, interval->floor_w * interval->duration_s * 1e6);
    else if (interval->open) /* nothing says what it drew while nobody was there: by time */
        out->floor_uj = energy_uj;
    out->floor_unknown = !isfinite(interval->floor_w);
    out->dynamic_uj = energy_uj - out->floor_uj;
    if (interval->duration_s > 0.0)
        out->lag_uj = energy_uj * fmin(1.0, interval->lag_s / interval->duration_s);
    for (size_t i = 0; i < interval->count; i++) {
        weigh_member(&interval->members[i], i, out);
        longest = fmax(longest, out->times[i]);
    }
    if (interval->open)
        out->times[interval->count] = 1.0 - longest;
    for (size_t i = 0; i < interval->count; i++) {
        if (out->use_sum > 0.0)
            out->weights[i] = out->uses[i] / out->use_sum;
        else
            out->weights[i] =
                out->time_sum > 0.0 ? out->times[i] / out->time_sum : 1.0 / (double)interval->count;
    }
}

/* Rounds down, and gives what is left to the largest remainders. `left_uj` is less than `count`. */
static void give_left(const double *exact_uj, struct share_part *parts, struct share_part *rest, size_t count,
                      int64_t left_uj)
{
    double remainders[SPLIT_MEMBERS_MAX + 1];

    for (size_t i = 0; i <= count; i++) {
        const struct share_part *part = i < count ? &parts[i] : rest;

        remainders[i] = exact_uj[i] - (double)part->energy_uj;
    }
    for (; left_uj > 0; left_uj--) {
        size_t largest = 0;

        for (size_t i = 1; i <= count; i++) {
            if (remainders[i] > remainders[largest])
                largest = i;
        }
        (largest < count ? &parts[largest] : rest)->energy_uj++;
        remainders[largest] = -1.0;
    }
}

/*
 * Sums of doubles may miss E by rounding. What is too much is taken back from the largest part, and what
 * is missing beyond the remainders goes there as well.
 */
static void round_parts(const double *exact_uj, int64_t energy_uj, struct share_part *parts,
                        struct share_part *rest, size_t count)
{
    struct share_part *largest = rest;
    int64_t left_uj = energy_uj;

    for (size_t i = 0; i <= count; i++) {
        struct share_part *part = i < count ? &parts[i] : rest;

        part->energy_uj = (int64_t)floor(fmax(0.0, exact_uj[i]));
        left_uj -= part->energy_uj;
        if (part->energy_uj > largest->energy_uj)
            largest = part;
    }
    if (left_uj < 0 || left_uj > (int64_t)count) {
        largest->energy_uj += left_uj;
        return;
    }
    give_left(exact_uj, parts, rest, count, left_uj);
}

static double range_of(const struct share_member *member)
{
    return member->most - member->least;
}

/* Bound of the error of a part of the dynamic energy, as a share of all of it; without what is chance. */
static double share_error(const struct share_interval *interval, const struct weighing *weighing, size_t at)
{
    const struct share_member *member = &interval->members[at];
    double share = weighing->weights[at], error;

    if (weighing->use_sum <= 0.0)
        return fmax(range_of(member) / 2.0, SPLIT_MODEL * share);
    error = SPLIT_MODEL * share * (1.0 - share) +
            SPLIT_BIAS * fabs((double)interval->count * share - 1.0) / weighing->use_sum;
    if (is_edge(member) && interval->duration_s > 0.0)
        error += share * fmin(1.0, interval->sample_s / interval->duration_s);
    return fmin(fmax(share, 1.0 - share), error);
}

/* Each use is off by up to half a percent, in any direction: a third of that squared, for each sample. */
static double variance(const struct share_interval *interval, const struct weighing *weighing, size_t at)
{
    double share = weighing->weights[at], others = (double)interval->count - 1.0;
    double samples = interval->sample_s > 0.0 ? fmax(1.0, interval->duration_s / interval->sample_s) : 1.0;
    double scale;

    if (weighing->use_sum <= 0.0 || interval->count <= 1)
        return 0.0;
    scale = weighing->dynamic_uj / weighing->use_sum;
    return scale * scale * ((1.0 - share) * (1.0 - share) + others * share * share) / (12.0 * samples);
}

static double member_error(const struct share_interval *interval, const struct weighing *weighing, size_t at)
{
    const struct share_member *member = &interval->members[at];
    double used = weighing->use_sum > 0.0 ? weighing->weights[at] : 1.0, error_uj;
    double edges = weighing->use_sum > 0.0 ? weighing->edge_use / weighing->use_sum : 1.0;

    if (is_edge(member))
        error_uj = weighing->floor_uj * range_of(member) / 2.0 + weighing->lag_uj * used;
    else
        error_uj = weighing->floor_uj * weighing->edge_most / 2.0 * weighing->times[at] / weighing->time_sum +
                   weighing->lag_uj * used * (weighing->edges > 0 ? edges : 0.0);
    if (interval->count > 1)
        error_uj += weighing->dynamic_uj * share_error(interval, weighing, at);
    /* As much of it as is drawn anyway would be split by time, not by use. */
    if (weighing->floor_unknown && interval->count > 1 && weighing->time_sum > 0.0)
        error_uj +=
            weighing->dynamic_uj * fabs(weighing->times[at] / weighing->time_sum - weighing->weights[at]);
    return error_uj;
}

static double rest_error(const struct weighing *weighing)
{
    return weighing->floor_uj * weighing->edge_most / 2.0 + (weighing->edges > 0 ? weighing->lag_uj : 0.0);
}

static void bound_parts(const struct share_interval *interval, const struct weighing *weighing,
                        struct share_part *parts, struct share_part *rest)
{
    for (size_t i = 0; i < interval->count; i++) {
        parts[i].half_width_uj =
            member_error(interval, weighing, i) + interval->gain * (double)parts[i].energy_uj;
        parts[i].variance_uj2 = variance(interval, weighing, i);
    }
    rest->half_width_uj = rest_error(weighing) + interval->gain * (double)rest->energy_uj;
}

bool share_split(const struct share_interval *interval, struct share_part *out_parts,
                 struct share_part *out_rest)
{
    double exact_uj[SPLIT_MEMBERS_MAX + 1];
    struct weighing weighing;
    size_t count = interval->count;
    double time_sum = 0.0;

    weigh(interval, &weighing);
    *out_rest = (struct share_part){.time_s = weighing.times[count] * interval->duration_s};
    for (size_t i = 0; i < count; i++)
        out_parts[i] = (struct share_part){.time_s = weighing.times[i] * interval->duration_s};
    if (!can_tell_apart(interval)) {
        *out_rest = (struct share_part){.energy_uj = interval->energy_uj,
                                        .half_width_uj = interval->gain * (double)interval->energy_uj,
                                        .time_s = interval->duration_s};
        return false;
    }
    time_sum = weighing.time_sum + weighing.times[count];
    for (size_t i = 0; i <= count; i++) {
        double share = i < count ? weighing.weights[i] : 0.0;
        double of_time = time_sum > 0.0 ? weighing.times[i] / time_sum : share;

        exact_uj[i] = weighing.floor_uj * of_time + weighing.dynamic_uj * share;
    }
    round_parts(exact_uj, interval->energy_uj, out_parts, out_rest, count);
    bound_parts(interval, &weighing, out_parts, out_rest);
    return true;
}
