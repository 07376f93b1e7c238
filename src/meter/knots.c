/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/knots.h"

#include <math.h>

/* What was seen fades with this time constant, the comparison of both powers with this one. */
static const double fade_s = 60.0, compared_fade_s = 30.0;
/* Two knots further apart than this tell nothing about the power from one update to the next. */
static const double apart_most_s = 0.5;
/* At first the power may do anything: as if it had been off by all of itself for so long. */
static const double doubt_s = 0.15;
static const double beyond = 0.025;
static const double least_w = 0.05;
enum { BINS_PER_OCTAVE = 4 };
/* Differences that have more in common than this are those of a constant power. */
static const double step_most_j = 1.0;
/* How far both powers may part in the long run, and how long that run is. */
static const double agreed_share = 0.1, agreed_after_s = 15.0;

void knots_init(struct knots *knots)
{
    *knots = (struct knots){.mean_w = NAN, .before_w = NAN, .reading_w = NAN};
}

static void note_surprise(struct knots *knots, double off_w, double weight_s)
{
    double bin = off_w > least_w ? ceil(log2(off_w / least_w) * BINS_PER_OCTAVE) : 0.0;

    knots->bins[bin < KNOTS_BINS - 1 ? (int)bin : KNOTS_BINS - 1] += weight_s;
    knots->weight_s += weight_s;
}

static void fade(struct knots *knots, double elapsed_s)
{
    double kept = exp(-elapsed_s / fade_s), compared = exp(-elapsed_s / compared_fade_s);

    knots->weight_s *= kept;
    for (int i = 0; i < KNOTS_BINS; i++)
        knots->bins[i] *= kept;
    knots->mean_off_w2 *= kept;
    knots->reading_off_w2 *= kept;
    knots->off_weight *= kept;
    knots->counted_ws *= compared;
    knots->sensed_ws *= compared;
    knots->compared_s *= compared;
}

static double divisor(double a, double b)
{
    while (b >= 1.0) {
        double rest = fmod(a, b);

        a = b;
        b = rest;
    }
    return a;
}

static double square(double value)
{
    return value * value;
}

/* Learns from the power of one more stretch what earlier figures were worth. */
static void learn(struct knots *knots, double mean_w, double reading_w, double elapsed_s)
{
    double expected_w = knots_power_w(knots, knots->reading_w), off_w = 0.0;

    if (isfinite(knots->mean_w) && isfinite(knots->reading_w)) {
        knots->mean_off_w2 += elapsed_s * square(knots->mean_w - mean_w);
        knots->reading_off_w2 += elapsed_s * square(knots->reading_w - mean_w);
        knots->off_weight += elapsed_s;
    }
    if (isfinite(expected_w))
        off_w = fabs(expected_w - mean_w);
    /* What a reading shows and the counter does not may have happened between two updates. */
    if (isfinite(knots->reading_w))
        off_w = fmax(off_w, fabs(knots->reading_w - mean_w));
    if (knots->weight_s == 0.0)
        note_surprise(knots, mean_w, doubt_s);
    note_surprise(knots, off_w, elapsed_s);
    if (isfinite(reading_w)) {
        knots->counted_ws += mean_w * elapsed_s;
        knots->sensed_ws += reading_w * elapsed_s;
        knots->compared_s += elapsed_s;
    }
}

bool knots_take(struct knots *knots, struct mono_time update, uint64_t total_uj, double reading_w,
                bool counts)
{
    struct knot last = knots->last;
    double elapsed_s = mono_elapsed_s(last.at, update),
           energy_uj = (double)(int64_t)(total_uj - last.total_uj);

    if (last.known && counts && (energy_uj <= 0.0 || elapsed_s <= 0.0))
        return false;
    if (last.known && counts && elapsed_s < apart_most_s) {
        double mean_w = energy_uj * 1e-6 / elapsed_s;

        fade(knots, elapsed_s);
        learn(knots, mean_w, reading_w, elapsed_s);
        knots->before_w = knots->mean_w;
        knots->mean_w = mean_w;
        knots->step_uj = divisor(energy_uj, knots->step_uj);
    } else {
        knots->mean_w = knots->before_w = NAN;
    }
    knots->last = (struct knot){.known = true, .at = update, .total_uj = total_uj};
    knots->reading_w = reading_w;
    return true;
}

/* Each of the two powers weighs as the other one was off. */
double knots_power_w(const struct knots *knots, double reading_w)
{
    double both_w2 = knots->mean_off_w2 + knots->reading_off_w2, share = 0.5;

    if (!isfinite(reading_w))
        return knots->mean_w;
    if (!isfinite(knots->mean_w))
        return reading_w;
    if (both_w2 > 0.0)
        share = knots->mean_off_w2 / both_w2;
    return share * reading_w + (1.0 - share) * knots->mean_w;
}

double knots_change_w(const struct knots *knots, double reading_w)
{
    /* fmax leaves out what is unknown. */
    return fmax(fmax(fabs(reading_w - knots->mean_w), fabs(knots->mean_w - knots->before_w)), 0.0);
}

double knots_step_j(const struct knots *knots)
{
    double step_j = knots->step_uj * 1e-6;

    return step_j <= step_most_j ? step_j : 0.0;
}

double knots_surprise_w(const struct knots *knots)
{
    double above = 0.0;

    for (int i = KNOTS_BINS - 1; i >= 0; i--) {
        above += knots->bins[i];
        if (above >= beyond * knots->weight_s && above > 0.0)
            return least_w * exp2((double)i / BINS_PER_OCTAVE);
    }
    return INFINITY;
}

bool knots_disagree(const struct knots *knots)
{
    return knots->compared_s > agreed_after_s &&
           fabs(knots->sensed_ws - knots->counted_ws) > agreed_share * knots->counted_ws;
}
