/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/start_up.h"

#include <math.h>

/* A part of a sum, from what is known: nothing if it is not. */
static double part_of(double whole, double earlier, double newest)
{
    double part = (earlier > 0.0 ? earlier : 0.0) + (newest > 0.0 ? newest : 0.0);

    return fmin(part, whole);
}

struct trial_parts start_up_parts(const struct job_trial *trial, double growth, double epochs,
                                  double energy_j, double time_s)
{
    const struct later_epochs *later = &trial->later;
    double in_epochs_j = energy_j, in_epochs_s = time_s;
    struct trial_parts parts = {.known = !trial->startup_told || later->epochs > 0.0};

    if (trial->startup_told) {
        in_epochs_j -= part_of(energy_j, trial->past_startup_energy_j, trial->startup_energy_j);
        in_epochs_s -= part_of(time_s, trial->past_startup_time_s, trial->startup_time_s);
    }
    if (later->epochs > 0.0) {
        in_epochs_j = fmin(in_epochs_j, epochs * later->energy_j / later->epochs);
        in_epochs_s = fmin(in_epochs_s, epochs * later->time_s / later->epochs);
    }
    parts.epoch_energy_j = in_epochs_j / growth / epochs;
    parts.epoch_time_s = in_epochs_s / growth / epochs;
    parts.apart_energy_j = (energy_j - in_epochs_j) / growth;
    parts.apart_time_s = (time_s - in_epochs_s) / growth;
    return parts;
}

/* Start-up, as far as it is known, lies before the first report of its attempt. */
static void take_longest(struct job_trial *trial, const struct epoch_record *record, int64_t now_us)
{
    double interval_s = fmax(record->time_s - trial->time_s, 1e-6 * (double)(now_us - trial->sign_us));

    if (!trial->reported && record->startup_time_s > 0.0)
        interval_s -= record->startup_time_s;
    trial->longest_epoch_s = fmax(trial->longest_epoch_s, interval_s);
}

void start_up_take(struct job_trial *trial, const struct epoch_record *record, int64_t now_us)
{
    take_longest(trial, record, now_us);
    trial->startup_told |= record->startup_told;
    trial->startup_energy_j = record->startup_energy_j;
    trial->startup_time_s = record->startup_time_s;
    if (!trial->startup_told || !trial->reported || record->epoch <= trial->epochs_done ||
        isnan(record->energy_j - trial->energy_j))
        return;
    trial->later.epochs += record->epoch - trial->epochs_done;
    trial->later.energy_j += record->energy_j - trial->energy_j;
    trial->later.time_s += record->time_s - trial->time_s;
}

void start_up_next_attempt(struct job_trial *trial)
{
    if (trial->attempt > 0) {
        trial->past_startup_energy_j += trial->startup_energy_j;
        trial->past_startup_time_s += trial->startup_time_s;
    }
    trial->startup_energy_j = trial->startup_time_s = NAN;
    trial->longest_epoch_s = 0.0;
}
