/* SPDX-License-Identifier: Apache-2.0 */
/* The window of the limit on trial: opens it, measures it over all ranks, and ends it. */
#include <math.h>

#include "train/tuner/tuner_private.h"

/* Why the last measurement has no energy. */
static const char *missing_note(const struct fly_tuner *tuner)
{
    const char *note = "this rank has no GPU";

    for (size_t i = tuner->device_count; i-- > 0;) {
        if (!tuner_is_gpu(tuner, i))
            continue;
        if (!tuner_has_energy(&tuner->energies[i]))
            return tuner->energies[i].note;
        note = "another rank's GPU has none";
    }
    return note;
}

void tuner_window_open(struct fly_tuner *tuner)
{
    struct fly_error error = {.text = ""};

    if (tuner->reason != FLY_TUNER_GOES_ON)
        return;
    if (fly_meter_begin(tuner->options.meter, "tuner", &tuner->window, &error) < 0) {
        tuner_fault(tuner, FLY_TUNER_NO_FIGURE, "no window can be measured: %s", error.text);
        return;
    }
    tuner->window_open = true;
    tuner->times.running = true;
    tuner->times.last = tuner->clock->now(tuner->clock->state);
}

void tuner_window_step(struct fly_tuner *tuner)
{
    struct step_times *times = &tuner->times;
    struct mono_time now;
    double step_s, off_s;

    if (!tuner->window_open || !times->running)
        return;
    now = tuner->clock->now(tuner->clock->state);
    step_s = mono_elapsed_s(times->last, now);
    times->last = now;
    off_s = step_s - times->mean_s;
    times->count++;
    times->mean_s += off_s / (double)times->count;
    times->squares += off_s * (step_s - times->mean_s);
}

static double standard_error(const struct step_times *times)
{
    if (times->count < 2 || !(times->mean_s > 0.0))
        return 0.0;
    return sqrt(times->squares / (double)(times->count - 1) / (double)times->count) / times->mean_s;
}

/* What the GPUs of this rank did, from the meter's answer. */
static void take_shares(struct fly_tuner *tuner, struct tuner_window *window)
{
    bool clock = tuner->options.knob == FLY_TUNER_CLOCK;

    window->capped_share = 1.0;
    window->least_felt = INFINITY;
    for (size_t i = 0; i < tuner->device_count; i++) {
        const struct fly_device_energy *energy = &tuner->energies[i];
        double capped_share, felt;

        if (!tuner_is_gpu(tuner, i))
            continue;
        window->heat_share = fmax(window->heat_share, energy->heat_share); /* fmax leaves out NAN */
        window->brake_share = fmax(window->brake_share, energy->brake_share);
        capped_share = clock ? energy->held_share : energy->capped_share;
        felt = clock ? energy->clock_mhz : energy->mean_power_w;
        if (isnan(capped_share) || isnan(window->capped_share))
            window->capped_share = NAN;
        else
            window->capped_share = fmin(window->capped_share, capped_share);
        tuner->capped |= !(capped_share <= 0.0);
        window->least_felt = fmin(window->least_felt, isnan(felt) ? -INFINITY : felt);
        window->most_felt = fmax(window->most_felt, isnan(felt) ? INFINITY : felt);
    }
}

/* Joins the ranks' windows into one. */
static bool join(struct fly_tuner *tuner, struct tuner_window *window)
{
    double unknown = isnan(window->energy_j), share_unknown = isnan(window->capped_share);
    double sums[] = {unknown > 0.0 ? 0.0 : window->energy_j, unknown > 0.0 ? 0.0 : window->half_j};
    double maxima[] = {window->time_s,
                       window->time_error,
                       window->heat_share,
                       window->brake_share,
                       window->most_felt,
                       -window->least_felt,
                       share_unknown > 0.0 ? 0.0 : -window->capped_share,
                       !window->honoured,
                       unknown,
                       share_unknown,
                       tuner->capped};

    if (!tuner_exchange(tuner, sums, 2, maxima, sizeof maxima / sizeof maxima[0]))
        return false;
    *window = (struct tuner_window){
        .energy_j = maxima[8] > 0.0 ? NAN : sums[0],
        .half_j = sums[1],
        .time_s = maxima[0],
        .time_error = maxima[1],
        .heat_share = maxima[2],
        .brake_share = maxima[3],
        .most_felt = maxima[4],
        .least_felt = -maxima[5],
        .capped_share = maxima[9] > 0.0 ? NAN : -maxima[6],
        .honoured = !(maxima[7] > 0.0),
    };
    tuner->capped = maxima[10] > 0.0;
    tuner->most_felt = window->most_felt;
    return true;
}

bool tuner_window_look(struct fly_tuner *tuner, struct tuner_window *out_window)
{
    struct tuner_window window = {.energy_j = NAN, .capped_share = NAN, .honoured = tuner->honoured};
    struct fly_measurement measured = tuner_measurement(tuner);

    tuner->capped = false;
    if (tuner->window_open && fly_meter_peek(tuner->options.meter, tuner->window, &measured, NULL) == 0) {
        window.time_s = measured.time_s;
        window.energy_j = tuner_gpu_energy_j(tuner, &window.half_j);
        take_shares(tuner, &window);
    }
    window.time_error = standard_error(&tuner->times);
    (void)tuner_check_standing(tuner);
    if (!join(tuner, &window))
        return false;
    *out_window = window;
    return true;
}

bool tuner_window_end(struct fly_tuner *tuner, const struct tuner_window *window)
{
    enum { UNKNOWN_MAX = 3 };
    double nothing = 0.0;

    tuner_window_drop(tuner);
    /* All ranks see the same windows, so their counts agree. */
    tuner->unknown_windows = isnan(window->energy_j) ? tuner->unknown_windows + 1 : 0;
    if (tuner->unknown_windows < UNKNOWN_MAX)
        return true;
    tuner_fault(tuner, FLY_TUNER_NO_FIGURE, "the meter has no energy in %u windows on end: %s",
                tuner->unknown_windows, missing_note(tuner));
    return tuner_exchange(tuner, &nothing, 0, &nothing, 0);
}
