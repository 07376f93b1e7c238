/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/usage_trial.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>

static const double us_per_s = 1e6;

void usage_trial_deinit(struct usage_trial *trial)
{
    free(trial->parts);
    free(trial->touched);
    free(trial->held);
    *trial = (struct usage_trial){.number = 0};
}

/*
 * Raises the totals to these figures, and makes a piece of what was added. Figures of the whole run may also
 * be lower than the earlier sums; then the sums stay. An unknown energy leaves the total where it is.
 */
static bool rise(struct usage_trial *trial, double energy_j, double time_s, int64_t time_us, bool whole,
                 struct usage_piece *out_piece)
{
    double told_us = (double)trial->attempt_us + (time_s - trial->past_time_s) * us_per_s;
    int64_t moment_us = told_us < (double)time_us ? (int64_t)told_us : time_us;

    trial->unknown = isnan(energy_j);
    if (trial->unknown)
        energy_j = trial->total_energy_j;
    if (!whole) {
        energy_j = fmax(energy_j, trial->total_energy_j);
        time_s = fmax(time_s, trial->total_time_s);
    }
    if (moment_us < trial->known_us)
        moment_us = trial->known_us;
    *out_piece = (struct usage_piece){.from_us = trial->known_us,
                                      .to_us = moment_us,
                                      .energy_j = energy_j - trial->total_energy_j,
                                      .time_s = time_s - trial->total_time_s};
    trial->known_us = moment_us;
    trial->total_energy_j = energy_j;
    trial->total_time_s = time_s;
    return true;
}

void usage_trial_attempt(struct usage_trial *trial, uint32_t attempt, int64_t time_us)
{
    trial->cut_off |= trial->attempt > 0;
    trial->attempt = attempt;
    trial->attempt_us = trial->known_us = time_us;
    trial->past_energy_j += trial->energy_j;
    trial->past_time_s += trial->time_s;
    trial->energy_j = trial->time_s = 0.0;
    trial->silent = false;
}

bool usage_trial_heartbeat(struct usage_trial *trial, const struct heartbeat_record *record, int64_t time_us,
                           struct usage_piece *out_piece)
{
    if (record->attempt != trial->attempt)
        return false;
    trial->silent = false;
    if (trial->closed || !isfinite(record->energy_j) || !isfinite(record->time_s))
        return false;
    trial->energy_j = fmax(trial->energy_j, record->energy_j);
    trial->time_s = fmax(trial->time_s, record->time_s);
    return rise(trial, trial->past_energy_j + trial->energy_j, trial->past_time_s + trial->time_s, time_us,
                false, out_piece);
}

bool usage_trial_epoch(struct usage_trial *trial, const struct epoch_record *record, int64_t time_us,
                       struct usage_piece *out_piece)
{
    if (record->attempt != trial->attempt)
        return false;
    trial->silent = false;
    if (trial->closed)
        return false;
    if (!isnan(record->energy_j))
        trial->energy_j = record->energy_j;
    trial->time_s = record->time_s;
    return rise(trial, trial->past_energy_j + record->energy_j, trial->past_time_s + trial->time_s, time_us,
                false, out_piece);
}

/* An end that was reported without knowing more than the last report has no figure of its own. */
static bool is_told_in_vain(const struct usage_trial *trial, const struct ended_record *record)
{
    return record->stop == JOB_STOP_NONE &&
           (record->outcome == TRIAL_CRASHED || record->outcome == TRIAL_OUT_OF_MEMORY) &&
           record->energy_j == trial->past_energy_j + trial->energy_j;
}

bool usage_trial_ended(struct usage_trial *trial, const struct ended_record *record, int64_t time_us,
                       struct usage_piece *out_piece)
{
    trial->outcome = record->outcome;
    trial->nothing_learnt = record->nothing_learnt;
    trial->silent = record->outcome == TRIAL_EXPIRED;
    trial->ended |= !trial->silent;
    trial->cut_off |= is_told_in_vain(trial, record);
    return rise(trial, record->energy_j, record->time_s, time_us, false, out_piece);
}

bool usage_trial_closed(struct usage_trial *trial, const struct closed_record *record, int64_t time_us,
                        struct usage_piece *out_piece)
{
    trial->closed = true;
    return rise(trial, record->energy_j, record->time_s, time_us, true, out_piece);
}

double usage_piece_within(const struct usage_piece *piece, int64_t since_us, int64_t until_us)
{
    int64_t from_us = piece->from_us > since_us ? piece->from_us : since_us;
    int64_t to_us = piece->to_us < until_us ? piece->to_us : until_us;

    if (piece->from_us == piece->to_us)
        return piece->from_us >= since_us && piece->from_us < until_us ? 1.0 : 0.0;
    return to_us > from_us ? (double)(to_us - from_us) / (double)(piece->to_us - piece->from_us) : 0.0;
}

bool usage_trial_touch(struct usage_trial *trial, size_t row)
{
    size_t *touched;

    trial->inside = true;
    for (size_t i = 0; i < trial->touched_count; i++) {
        if (trial->touched[i] == row)
            return true;
    }
    touched = array_grow(trial->touched, trial->touched_count, &trial->touched_capacity, sizeof touched[0]);
    if (touched == NULL)
        return false;
    trial->touched = touched;
    trial->touched[trial->touched_count++] = row;
    return true;
}
