/* SPDX-License-Identifier: Apache-2.0 */
/* The window of the limit on trial: opens it, measures it over all ranks, and ends it. */
#include <math.h>

#include "meter/meter.h"
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
    tuner->interrupted = false;
    step_record_begin(&tuner->record);
    tuner->times.running = true;
    tuner->times.last = tuner->clock->now(tuner->clock->state);
}

/* Measures the window so far. `peek` is fly_meter_peek, or the one that waits for nothing. */
static bool measure(struct fly_tuner *tuner,
                    int (*peek)(struct fly_meter *meter, fly_window window,
                                struct fly_measurement *out_measurement, struct fly_error *out_error),
                    struct step_stretch *out_whole)
{
    struct fly_measurement measured = tuner_measurement(tuner);

    if (!tuner->window_open || peek(tuner->options.meter, tuner->window, &measured, NULL) < 0)
        return false;
    out_whole->time_s = measured.time_s;
    out_whole->energy_j = tuner_gpu_energy_j(tuner, &out_whole->half_j);
    return true;
}

void tuner_window_step(struct fly_tuner *tuner)
{
    struct step_times *times = &tuner->times;
    struct step_stretch so_far;
    struct mono_time now;

    if (!tuner->window_open || !times->running)
        return;
    now = tuner->clock->now(tuner->clock->state);
    step_record_add(&tuner->record, mono_elapsed_s(times->last, now));
    times->last = now;
    times->count++;
    if (step_record_wants_mark(&tuner->record) && measure(tuner, meter_peek_at_once, &so_far))
        step_record_mark(&tuner->record, &so_far);
}

/* Adds the steps of a window to those before it. */
static void add_steps(struct step_times *times, const struct step_estimate *estimate)
{
    double kept = times->kept + estimate->steps, off_s = estimate->mean_s - times->mean_s;

    if (!(estimate->steps > 0.0))
        return;
    times->squares_s2 += estimate->spread_s * estimate->spread_s * (estimate->steps - 1.0) +
                         off_s * off_s * times->kept * estimate->steps / kept;
    times->mean_s += off_s * estimate->steps / kept;
    times->kept = kept;
}

double tuner_times_error(const struct step_times *times)
{
    if (times->kept < 2.0 || !(times->mean_s > 0.0))
        return 0.0;
    return sqrt(times->squares_s2 / (times->kept - 1.0) / times->kept) / times->mean_s;
}

/* Of the steps so far, those of the open window included. */
static double standard_error(const struct fly_tuner *tuner)
{
    struct step_times times = tuner->times;

    add_steps(&times, &tuner->estimated);
    return tuner_times_error(&times);
}

/* What the GPUs of this rank did, from the meter's answer. */
static void take_shares(struct fly_tuner *tuner, struct tuner_window *window)
{
    bool clock = tuner->options.knob == FLY_TUNER_CLOCK;
    bool profile = tuner->options.knob == FLY_TUNER_PROFILE; /* whose hold on a GPU is not felt as a number */

    window->capped_share = window->idle_share = 1.0;
    window->least_felt = INFINITY;
    for (size_t i = 0; i < tuner->device_count; i++) {
        const struct fly_device_energy *energy = &tuner->energies[i];
        double capped_share, felt;

        if (!tuner_is_gpu(tuner, i))
            continue;
        window->heat_share = fmax(window->heat_share, energy->heat_share); /* fmax leaves out NAN */
        window->brake_share = fmax(window->brake_share, energy->brake_share);
        capped_share = profile ? NAN : clock ? energy->held_share : energy->capped_share;
        felt = profile ? NAN : clock ? energy->clock_mhz : energy->mean_power_w;
        if (isnan(capped_share) || isnan(window->capped_share))
            window->capped_share = NAN;
        else
            window->capped_share = fmin(window->capped_share, capped_share);
        window->idle_share = isnan(window->idle_share) || isnan(energy->idle_share)
                                 ? NAN
                                 : fmin(window->idle_share, energy->idle_share);
        tuner->capped |= !(capped_share <= 0.0);
        window->least_felt = fmin(window->least_felt, isnan(felt) ? -INFINITY : felt);
        window->most_felt = fmax(window->most_felt, isnan(felt) ? INFINITY : felt);
    }
}

/*
 * The steps alone: what the GPUs did in pauses is not theirs. A GPU that is held down is so in its steps, and
 * draws less than their power in between.
 */
static void leave_out_pauses(struct fly_tuner *tuner, const struct step_stretch *whole,
                             struct tuner_window *window)
{
    const struct step_estimate *estimate = &tuner->estimated;
    double steps_s = whole->time_s - estimate->pause_s;

    window->whole_s = whole->time_s;
    window->time_s = estimate->time_s;
    window->scatter = estimate->scatter;
    window->energy_j = estimate->energy_j;
    window->half_j = estimate->half_j;
    window->pauses = (double)estimate->pauses;
    window->pause_s = estimate->pause_s;
    if (estimate->pauses == 0 || !(steps_s > 0.0))
        return;
    if (!isnan(window->capped_share))
        window->capped_share = fmin(window->capped_share * whole->time_s / steps_s, 1.0);
    if (tuner->options.knob == FLY_TUNER_POWER_LIMIT && whole->energy_j > 0.0) {
        double more = estimate->energy_j / estimate->time_s / (whole->energy_j / whole->time_s);

        window->least_felt *= more;
        window->most_felt *= more;
    }
}

/* Joins the ranks' windows into one. */
static bool join(struct fly_tuner *tuner, struct tuner_window *window)
{
    double unknown = isnan(window->energy_j), share_unknown = isnan(window->capped_share);
    double idle_unknown = isnan(window->idle_share);
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
                       tuner->capped,
                       window->whole_s,
                       window->pause_s,
                       window->pauses,
                       idle_unknown > 0.0 ? 2.0 : -window->idle_share,
                       -window->enforced_w,
                       window->enforced_most_w,
                       window->scatter,
                       window->interrupted,
                       tuner->work.late};

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
        .enforced_w = -maxima[15],
        .enforced_most_w = maxima[16],
        .scatter = maxima[17],
        .honoured = !(maxima[7] > 0.0),
        .interrupted = maxima[18] > 0.0,
        .whole_s = maxima[11],
        .pause_s = maxima[12],
        .pauses = maxima[13],
        .idle_share = maxima[14] > 1.0 ? NAN : -maxima[14],
    };
    tuner->capped = maxima[10] > 0.0;
    tuner->work.late = maxima[19] > 0.0;
    tuner->most_felt = window->most_felt;
    return true;
}

bool tuner_window_look(struct fly_tuner *tuner, struct tuner_window *out_window)
{
    struct tuner_window window = {.capped_share = NAN,
                                  .idle_share = NAN,
                                  .honoured = tuner->honoured,
                                  .interrupted = tuner->interrupted};
    struct step_stretch whole = {.energy_j = NAN};

    window.enforced_w = tuner_enforced_w(tuner, &window.enforced_most_w);
    tuner->capped = false;
    tuner->work.late = false;
    if (measure(tuner, fly_meter_peek, &whole)) {
        take_shares(tuner, &window);
        tuner->work.late = tuner_note_work(tuner);
    }
    tuner->estimated = step_record_estimate(&tuner->record, &whole);
    leave_out_pauses(tuner, &whole, &window);
    window.time_error = standard_error(tuner);
    /* A window in which the boards began to enforce another limit is of none of the two. */
    window.honoured &= isinf(window.enforced_w) || isinf(tuner->enforced_now_w) ||
                       tuner_is_same(tuner, window.enforced_w, tuner->enforced_now_w);
    tuner->enforced_now_w = window.enforced_w;
    (void)tuner_check_standing(tuner);
    if (!join(tuner, &window))
        return false;
    *out_window = window;
    return true;
}

/* Counts a closed window for the report. */
static void count_window(struct fly_tuner *tuner, const struct tuner_window *window)
{
    struct tuner_windows *windows = &tuner->windows;

    windows->time_s += window->whole_s;
    windows->pause_s += window->pause_s;
    windows->pauses += (uint64_t)window->pauses;
    if (isnan(window->idle_share))
        return;
    windows->idle_s += window->idle_share * window->whole_s;
    windows->idle_known_s += window->whole_s;
}

bool tuner_window_end(struct fly_tuner *tuner, const struct tuner_window *window)
{
    enum { UNKNOWN_MAX = 3 };
    double nothing = 0.0;

    tuner_window_drop(tuner);
    add_steps(&tuner->times, &tuner->estimated);
    count_window(tuner, window);
    /* All ranks see the same windows, so their counts agree. */
    tuner->unknown_windows = isnan(window->energy_j) ? tuner->unknown_windows + 1 : 0;
    if (tuner->unknown_windows < UNKNOWN_MAX)
        return true;
    tuner_fault(tuner, FLY_TUNER_NO_FIGURE, "the meter has no energy in %u windows on end: %s",
                tuner->unknown_windows, missing_note(tuner));
    return tuner_exchange(tuner, &nothing, 0, &nothing, 0);
}
