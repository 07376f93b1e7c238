/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/past.h"

#include <math.h>

#include <flyball/cost.h>

#include "base/math/portable_math.h"

const struct past_tally past_tally_none = {.log_epoch_cost = NAN};

const struct bytes_row past_tally_rows[] = {
    BYTES_AT(past_tally, reached),        BYTES_AT(past_tally, mean),           BYTES_AT(past_tally, squares),
    BYTES_AT(past_tally, stopped),        BYTES_AT(past_tally, stopped_epochs), BYTES_AT(past_tally, failed),
    BYTES_AT(past_tally, log_epoch_cost),
};

void past_tally_take(struct past_tally *tally, enum trial_outcome outcome, double epochs, uint32_t max_epochs)
{
    double value, before = tally->mean;

    if (!outcome_observed(outcome) || !(epochs > 0.0) || !isfinite(epochs))
        return;
    if (outcome != TRIAL_REACHED) {
        tally->stopped++;
        tally->failed += epochs >= (double)max_epochs;
        tally->stopped_epochs = fmax(tally->stopped_epochs, epochs);
        return;
    }
    value = portable_log(epochs);
    tally->reached++;
    tally->mean += (value - before) / (double)tally->reached;
    tally->squares += (value - before) * (value - tally->mean);
}

void past_tally_add(struct past_tally *tally, const struct past_tally *more)
{
    double apart = more->mean - tally->mean, runs = (double)tally->reached, others = (double)more->reached;

    if (more->reached > 0) {
        tally->mean += apart * others / (runs + others);
        tally->squares += more->squares + apart * apart * runs * others / (runs + others);
        tally->reached += more->reached;
    }
    tally->stopped += more->stopped;
    tally->failed += more->failed;
    tally->stopped_epochs = fmax(tally->stopped_epochs, more->stopped_epochs);
    if (isnan(tally->log_epoch_cost))
        tally->log_epoch_cost = more->log_epoch_cost;
}

double past_log_epoch_cost(const struct fly_power_point *points, size_t count, double units_per_epoch,
                           double eta, double max_power_w)
{
    double least = INFINITY;

    for (size_t i = 0; i < count; i++)
        least =
            fmin(least, fly_cost(eta, max_power_w, points[i].time_s * points[i].power_w, points[i].time_s));
    least *= units_per_epoch;
    return least > 0.0 && isfinite(least) ? portable_log(least) : NAN;
}

bool past_tally_shows(const struct past_tally *tally)
{
    return tally->reached > 0 || tally->stopped > 0 || !isnan(tally->log_epoch_cost);
}

bool past_tally_possible(const struct past_tally *tally)
{
    return isfinite(tally->mean) && tally->squares >= 0.0 && isfinite(tally->squares) &&
           isfinite(tally->stopped_epochs) && tally->stopped_epochs >= 0.0 &&
           (tally->stopped == 0 || tally->stopped_epochs > 0.0) && tally->failed <= tally->stopped &&
           !isinf(tally->log_epoch_cost);
}
