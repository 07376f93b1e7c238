/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/variation.h"

#include <math.h>
#include <string.h>

/* Time constant with which old samples fade. */
static const double fade_s = 60.0;
/*
 * A device that was watched only for a moment may do anything: it is treated as if it had changed
 * by all its power for this long. Later samples soon outweigh that.
 */
static const double doubt_s = 0.2;
/* A window's own samples weigh as much as this many seconds of the past. */
static const double prior_s = 3.0;
/* The smallest change that is distinguished from none, and how many bins double it. */
static const double least_w = 1e-3;
enum { BINS_PER_OCTAVE = 4 };
/* Samples further apart than this, or than this many horizons, do not count as neighbours. */
static const double gap_s = 5.0, gap_horizons = 4.0;

void variation_init(struct variation *variation, double horizon_s)
{
    memset(variation, 0, sizeof *variation);
    variation->horizon_s = horizon_s;
    variation->growth = 1.0;
    for (int i = 0; i < VARIATION_BINS; i++)
        variation->bin_w[i] = least_w * exp2((double)i / BINS_PER_OCTAVE);
}

static int bin_of(double change_w)
{
    double bin = change_w > least_w ? ceil(log2(change_w / least_w) * BINS_PER_OCTAVE) : 0.0;

    return bin < VARIATION_BINS - 1 ? (int)bin : VARIATION_BINS - 1;
}

static void count_size(struct variation_sizes *sizes, double size_w, double weight_s)
{
    sizes->bins[bin_of(size_w)] += weight_s;
    sizes->weight_s += weight_s;
}

static void scale_sizes(struct variation_sizes *sizes, double scale)
{
    sizes->weight_s *= scale;
    for (int i = 0; i < VARIATION_BINS; i++)
        sizes->bins[i] *= scale;
}

/* Weights grow because the past does not fade; from time to time all of them are scaled down. */
static void keep_finite(struct variation *variation)
{
    const double scale = 1.0 / variation->growth;

    if (variation->growth < 1e100)
        return;
    variation->growth = 1.0;
    scale_sizes(&variation->levels, scale);
    scale_sizes(&variation->changes, scale);
    variation->local_w2s *= scale;
    variation->noise_w2s *= scale;
}

/* Returns the power a horizon ago, or the oldest one that is kept. */
static double power_before_w(const struct variation *variation, struct mono_time at)
{
    uint32_t kept = variation->ring_count < VARIATION_RING ? variation->ring_count : VARIATION_RING;
    double power_w = variation->power_w;

    for (uint32_t i = 1; i <= kept; i++) {
        uint32_t place = (variation->ring_count - i) % VARIATION_RING;

        power_w = variation->ring[place].power_w;
        if (mono_elapsed_s(variation->ring[place].at, at) >= 0.9 * variation->horizon_s)
            break;
    }
    return power_w;
}

static void remember(struct variation *variation, struct mono_time at, double power_w)
{
    uint32_t newest = (variation->ring_count - 1) % VARIATION_RING,
             next = variation->ring_count % VARIATION_RING;

    if (variation->ring_count > 0 &&
        mono_elapsed_s(variation->ring[newest].at, at) < variation->horizon_s / (VARIATION_RING / 2.0))
        return;
    variation->ring[next].at = at;
    variation->ring[next].power_w = power_w;
    variation->ring_count++;
}

/* Returns the variance among a sample and the few before it, from their differences. */
static double local_w2(const struct variation *variation, double power_w)
{
    double sum_w2 = 0.0;

    for (uint32_t i = 0; i < variation->before_count; i++)
        sum_w2 += (power_w - variation->before_w[i]) * (power_w - variation->before_w[i]);
    return variation->before_count > 0 ? 0.5 * sum_w2 / variation->before_count : 0.0;
}

static void push_before(struct variation *variation, double power_w)
{
    memmove(variation->before_w + 1, variation->before_w,
            sizeof variation->before_w - sizeof variation->before_w[0]);
    variation->before_w[0] = power_w;
    if (variation->before_count < VARIATION_NEIGHBOURS)
        variation->before_count++;
}

static void count_sample(struct variation *variation, struct mono_time at, double power_w, double elapsed_s)
{
    double change_w = power_w - variation->power_w;
    double local_w2s = local_w2(variation, power_w) * elapsed_s;
    double noise_w2s = -change_w * variation->change_w * elapsed_s;

    variation->growth *= exp(elapsed_s / fade_s);
    count_size(&variation->changes, fabs(power_w - power_before_w(variation, at)),
               variation->growth * elapsed_s);
    variation->local_w2s += variation->growth * local_w2s;
    variation->noise_w2s += variation->growth * noise_w2s;
    variation->total_s += elapsed_s;
    variation->total_local_w2s += local_w2s;
    variation->total_noise_w2s += noise_w2s;
    variation->change_w = change_w;
}

static void begin_in_doubt(struct variation *variation, double power_w)
{
    count_size(&variation->changes, power_w, doubt_s);
    variation->local_w2s += 0.25 * power_w * power_w * doubt_s;
}

void variation_take(struct variation *variation, struct mono_time at, double power_w, double level_w)
{
    double elapsed_s = mono_elapsed_s(variation->at, at);

    if (variation->known && elapsed_s <= 0.0)
        return;
    if (variation->known && elapsed_s < fmax(gap_s, gap_horizons * variation->horizon_s)) {
        count_sample(variation, at, power_w, elapsed_s);
    } else {
        elapsed_s = 0.1;
        variation->change_w = 0.0;
        variation->ring_count = 0;
        variation->before_count = 0;
    }
    if (!variation->known)
        begin_in_doubt(variation, power_w);
    count_size(&variation->levels, level_w, variation->growth * elapsed_s);
    keep_finite(variation);
    variation->known = true;
    variation->at = at;
    variation->power_w = power_w;
    push_before(variation, power_w);
    remember(variation, at, power_w);
}

struct variation_edge variation_edge(const struct variation *variation)
{
    return (struct variation_edge){
        .total_s = variation->total_s,
        .local_w2s = variation->total_local_w2s,
        .noise_w2s = variation->total_noise_w2s,
    };
}

struct variation_mean variation_between(const struct variation *variation, const struct variation_edge *begin,
                                        const struct variation_edge *end)
{
    double own_s = end->total_s - begin->total_s, past_s = variation->changes.weight_s;
    double past = past_s > 0.0 ? prior_s / past_s : 0.0;
    double weight_s = own_s + past * past_s;

    if (weight_s <= 0.0)
        return (struct variation_mean){0.0, 0.0};
    return (struct variation_mean){
        .local_w2 = (end->local_w2s - begin->local_w2s + past * variation->local_w2s) / weight_s,
        .noise_w2 = fmax(0.0, (end->noise_w2s - begin->noise_w2s + past * variation->noise_w2s) / weight_s),
    };
}

/*
 * Returns the error that is exceeded in a share `beyond`, if sizes d with weights w are each
 * missed by d min(U scale, most), with U uniform in 0 .. 1. Above x lies
 *
 *     sum over sizes with d min(scale, most) > x of  w (1 - x / (d scale))
 *
 * which falls with x and is linear between the largest errors of the sizes.
 */
static double percentile(const struct variation *variation, const struct variation_sizes *sizes, double scale,
                         double most, double beyond)
{
    const double *bin_w = variation->bin_w;
    double longest = fmin(scale, most), target = beyond * sizes->weight_s;
    double above = 0.0, slope = 0.0;

    for (int i = VARIATION_BINS - 1; i > 0; i--) {
        double next = bin_w[i - 1] * longest;

        if (sizes->bins[i] == 0.0 && above == 0.0)
            continue;
        above += sizes->bins[i];
        slope += sizes->bins[i] / (bin_w[i] * scale);
        if (above - next * slope >= target && slope > 0.0)
            return fmin(fmax((above - target) / slope, next), bin_w[i] * longest);
    }
    return least_w * longest;
}

double variation_held_j(const struct variation *variation, double lag_s, double length_s)
{
    return percentile(variation, &variation->changes, lag_s, length_s, 0.05);
}

/* The difference of two errors exceeds x only if one of them does, however they depend on each other. */
double variation_edges_w(const struct variation *variation)
{
    return percentile(variation, &variation->levels, 1.0, 1.0, 0.025);
}
