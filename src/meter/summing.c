/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/summing.h"

#include <math.h>

/* Weight that a sample keeps when the next one comes, of some 600 a minute. */
static const double kept = 1.0 - 1.0 / 600.0;
/* A rise is that of a reading if it is as close: to rounding, and to the sensor's own clock. */
static const double close_share = 1e-3, close_j = 2e-3;
/* So many samples, and this share of all, have to be none. */
static const double missed_least = 8.0, missed_share = 0.02;

void summing_init(struct summing *summing)
{
    *summing = (struct summing){.checked = 0.0};
    for (int kind = 0; kind < SUMMING_KINDS; kind++) {
        for (int i = 0; i < SUMMING_READINGS; i++)
            summing->readings_w[kind][i] = NAN;
    }
}

static bool is_close(double rise_j, double energy_j)
{
    return fabs(rise_j - energy_j) <= close_share * energy_j + close_j;
}

static bool is_sum(const double *readings_w, double rise_j, double period_s)
{
    if (is_close(rise_j, 0.0))
        return true;
    for (int i = 0; i < SUMMING_READINGS; i++) {
        if (is_close(rise_j, readings_w[i] * period_s))
            return true;
        if (i > 0 && is_close(rise_j, (readings_w[i] + readings_w[i - 1]) * period_s))
            return true;
    }
    return false;
}

static void push(double *readings_w, double newest_w)
{
    for (int i = SUMMING_READINGS - 1; i > 0; i--)
        readings_w[i] = readings_w[i - 1];
    readings_w[0] = newest_w;
}

void summing_take(struct summing *summing, double rise_j, double instant_w, double average_w, double period_s)
{
    const int oldest = SUMMING_READINGS - 1;
    bool knows = false, is_one = false;

    push(summing->readings_w[0], instant_w);
    push(summing->readings_w[1], average_w);
    for (int kind = 0; kind < SUMMING_KINDS; kind++) {
        const double *readings_w = summing->readings_w[kind];

        knows = knows || isfinite(readings_w[0] + readings_w[1] + readings_w[oldest]);
        is_one = is_one || is_sum(readings_w, rise_j, period_s);
    }
    if (!knows || !isfinite(rise_j))
        return;
    summing->checked = kept * summing->checked + 1.0;
    summing->missed = kept * summing->missed + (is_one ? 0.0 : 1.0);
}

bool summing_is_disproved(const struct summing *summing)
{
    return summing->missed >= missed_least && summing->missed >= missed_share * summing->checked;
}
