/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/figure.h"

#include <math.h>

#include "meter/fusion.h"
#include "meter/uncertainty.h"

/* The share of the energy in one averaging window that fast swings are assumed to hide at the edges, */
/* If the last sample is older than this many sampling periods, it was the last of all. */
static const double usual_samples = 2.5;

static const double hidden_share = 0.06;
/* and the share of the power at an edge. */
static const double hidden_power_share = 0.15;
/* How far the power swings within a period, of what it does from one to the next; */
static const double within_period = 1.3;
/* and in a window that is shorter than what a reading averages over, of what readings do. */
static const double within_reading = 1.4;
/* The same of power itself, where neither counter nor readings would show it. */
static const double hidden_swing_share = 0.6;

/* A figure may be a guess in a window of 20 ms and more, once power has been sampled for so long. */
static const double guessed_least_s = 0.0199, guessed_after_s = 1.0;

/* Readings are whole milliwatts and millijoules; rounding loses up to half of one. */
static const double rounding_w = 0.5e-3, rounding_j = 0.5e-3;

static struct uncertainty_edge edge_of(const struct account_edge *edge, double period_s, double power_w)
{
    double low_s = fmin(edge->counter.age_low_s, period_s), high_s = fmin(edge->counter.age_high_s, period_s);

    /* The driver read the counter at some moment during the reading. */
    return (struct uncertainty_edge){.power_w = power_w,
                                     .age_low_s = low_s - 0.5 * edge->read_s,
                                     .age_high_s = fmax(low_s, high_s) + 0.5 * edge->read_s};
}

static struct uncertainty_sensor sensor_of(const struct account_window *window, double period_s,
                                           double seen_s)
{
    return (struct uncertainty_sensor){.period_s = period_s,
                                       .window_s = seen_s,
                                       .apart_s = window->sensing.apart_s,
                                       .local_w2 = window->variation.local_w2,
                                       .noise_w2 = window->variation.noise_w2};
}

/*
 * Returns the further error of a counter that sums power readings: what the sensor does not see,
 * and its lag.
 */
static double summed_half_j(const struct account_window *window, double length_s)
{
    const struct sensing *sensing = &window->sensing;
    const struct uncertainty_sensor sensor =
        sensor_of(window, sensing->power_period_s, sensing->counter_window_s);
    const struct integral_edge *begin = &window->mark.begin.integral, *end = &window->end.integral;
    double lag_j = sensing->counter_lag_s * fabs(begin->power_w - end->power_w);

    return lag_j + hypot(uncertainty_unseen_j(&sensor, length_s), M_SQRT2 * window->counter_held_j);
}

/*
 * Returns the error at two edges if the counter was last updated at random moments of its period,
 * under the recent load.
 */
static double edges_half_j(const struct account_window *window)
{
    double half_j = window->edges_w * window->counter_period_s;

    /* Recent powers are those of the readings, which may average over more than that period. */
    if (window->sensing.power_window_s > 2.0 * window->counter_period_s)
        half_j *= 1.0 + hidden_power_share;
    return half_j;
}

struct figure figure_by_counter(const struct account_window *window, double length_s)
{
    const struct account_edge *begin = &window->mark.begin, *end = &window->end;
    double period_s = window->counter_period_s, mean_w, filled_j;
    struct figure figure = {.known = begin->counter.known && end->counter.known &&
                                     begin->counter.holes == end->counter.holes};
    struct uncertainty_edge from, to;

    if (!figure.known)
        return figure;
    figure.energy_j = (double)(int64_t)(end->counter.total_uj - begin->counter.total_uj) * 1e-6;
    /* The counted energy may have come in a window that is shorter by one period. */
    mean_w = figure.energy_j / fmax(length_s - period_s, 0.5 * length_s);
    from = edge_of(begin, period_s, begin->integral.known ? begin->integral.power_w : mean_w);
    to = edge_of(end, period_s, end->integral.known ? fmax(end->integral.power_w, mean_w) : mean_w);
    figure.half_j = fmax(uncertainty_ages_j(&from, &to), edges_half_j(window));
    if (window->sensing.counter_from_power)
        figure.half_j = hypot(figure.half_j, summed_half_j(window, length_s));
    /* The error of a gap that was filled is less than what filled it. */
    filled_j = fabs((double)(int64_t)(end->counter.filled_uj - begin->counter.filled_uj)) * 1e-6;
    figure.half_j = hypot(figure.half_j, filled_j) + rounding_j;
    return figure;
}

/*
 * Returns what the noise of readings adds to a counter that sums them more often than they are sampled:
 * uncertainty_unseen_j takes all of them between two samples for one.
 */
static double summed_noise_j(const struct account_window *window, double length_s)
{
    double period_s = window->sensing.power_period_s;

    return period_s < window->sensing.apart_s ? 1.96 * sqrt(length_s * period_s * window->variation.noise_w2)
                                              : 0.0;
}

const char figure_late_clause[] = "the counter sums averages of a second and is late";

/* Returns why a window's energy cannot be fused; NULL: it can. */
static const char *why_not_fused(const struct account_window *window)
{
    const struct account_edge *begin = &window->mark.begin, *end = &window->end;

    if (window->phase != PHASE_TRACKED && window->phase != PHASE_FRESH)
        return phase_state_clause(window->phase);
    if (!begin->age.known || !end->age.known)
        return phase_state_clause(PHASE_SEARCHED);
    if (window->counter_late)
        return figure_late_clause;
    if (window->disagree)
        return "its counter and its power disagree";
    return isfinite(begin->expected_w) && isfinite(end->expected_w) ? NULL : "no power was read beside it";
}

/*
 * Returns by how much the power may be off between two updates. The surprise is one of means over a
 * period, within which the power swings more. A reading that averages over more than that hides what
 * happens there, and so does the counter.
 */
static double surprise_w(const struct account_window *window)
{
    const struct sensing *sensing = &window->sensing;
    double power_w = fmax(window->mark.begin.expected_w, window->end.expected_w);
    double within = sensing->power_window_s < window->counter_period_s ? within_period : within_reading;

    if (sensing->power_window_s <= 2.0 * window->counter_period_s)
        return within * window->surprise_w;
    return fmax(within * window->surprise_w, hidden_swing_share * power_w);
}

static struct fusion_edge fusion_edge_of(const struct account_edge *edge, const struct account_edge *begin)
{
    return (struct fusion_edge){
        .at_s = mono_elapsed_s(begin->at, edge->at),
        .total_j = (double)(int64_t)(edge->counter.total_uj - begin->counter.total_uj) * 1e-6,
        .age_low_s = fmax(edge->age.low_s - 0.5 * edge->read_s, 0.0),
        .age_high_s = edge->age.high_s + 0.5 * edge->read_s,
        .power_w = edge->expected_w,
        .change_w = edge->change_w};
}

struct figure figure_by_fusion(const struct account_window *window, double length_s, const char **out_why)
{
    const struct account_edge *begin = &window->mark.begin, *end = &window->end;
    struct fusion_window fused = {.begin = fusion_edge_of(begin, begin),
                                  .end = fusion_edge_of(end, begin),
                                  .surprise_w = surprise_w(window),
                                  .step_j = window->step_j};
    struct figure figure = {.known = false};
    struct fusion result;

    *out_why = NULL;
    if (window->phase == PHASE_NONE || !begin->counter.known || !end->counter.known ||
        begin->counter.holes != end->counter.holes || begin->counter.resets != end->counter.resets)
        return figure;
    *out_why = why_not_fused(window);
    if (*out_why != NULL)
        return figure;
    for (; fused.next_count < 2 && window->mark.next[fused.next_count].known; fused.next_count++) {
        const struct knot *next = &window->mark.next[fused.next_count];

        fused.next[fused.next_count] = (struct fusion_update){
            .at_s = mono_elapsed_s(begin->at, next->at),
            .total_j = (double)(int64_t)(next->total_uj - begin->counter.total_uj) * 1e-6};
    }
    if (window->sensing.counter_from_power && !window->sees_all)
        fused.summed_half_j = hypot(summed_half_j(window, length_s), summed_noise_j(window, length_s));
    result = fusion_energy(&fused);
    return (struct figure){
        .known = true, .wide = true, .energy_j = result.energy_j, .half_j = result.half_j + rounding_j};
}

/*
 * A window often begins when work begins. The moment of that is known only to within two samples,
 * and an average over w blurs it by w / 8 at most. Readings show half of that change once the lag
 * has passed.
 */
static double jump_half_j(const struct account_window *window)
{
    const struct sensing *sensing = &window->sensing;

    return window->mark.jump_w * (0.5 * sensing->apart_s + 0.25 * sensing->power_window_s);
}

/*
 * Sampler and sensor may keep step for a long time: readings are then all about the same age, which lies
 * anywhere in the sensor's period, and not half of it in the mean. What that moves at the begin it moves at
 * the end, too, so only the difference of power counts.
 */
static double age_half_j(const struct account_window *window)
{
    double change_w = window->end.integral.power_w - window->mark.begin.integral.power_w;

    return 0.475 * window->sensing.power_period_s * fabs(change_w);
}

double figure_tail_s(const struct account_window *window)
{
    double held_s = window->end.integral.held_s;

    return held_s > usual_samples * window->sensing.sample_s ? held_s : 0.0;
}

struct figure figure_by_integral(const struct account_window *window, double length_s)
{
    const struct account_mark *mark = &window->mark;
    const struct integral_edge *end = &window->end.integral;
    const struct integral_edge *begin = mark->centred ? &mark->begin_centred : &mark->begin.integral;
    const struct sensing *sensing = &window->sensing;
    const struct uncertainty_sensor sensor = sensor_of(window, sensing->apart_s, sensing->power_window_s);
    struct figure figure = {.known = mark->begin.integral.known && begin->known && end->known};
    double holes_j;

    if (!figure.known)
        return figure;
    if (mark->centred) {
        figure.energy_j = end->total_j + sensing->lag_s * end->power_w - begin->total_j;
        figure.half_j = hypot(M_SQRT2 * window->held_j, uncertainty_unseen_j(&sensor, length_s));
        figure.half_j = hypot(figure.half_j, hypot(jump_half_j(window), age_half_j(window)));
    } else {
        /* Every reading so far describes the time before the window; the last one does so least. */
        figure.energy_j = end->power_w * length_s;
        figure.half_j = window->held_j * (sensing->power_window_s >= length_s ? within_reading : 1.0);
    }
    /* Swings that repeat within the time over which a reading averages do not show in it. */
    if (sensing->power_window_s > sensing->power_period_s)
        figure.half_j = hypot(figure.half_j, hidden_share * sensing->power_window_s * end->power_w);
    /* Where nothing was sampled, the truth may be anything from nothing to twice what was filled in. */
    holes_j = end->holes_j - mark->begin.integral.holes_j + figure_tail_s(window) * end->power_w;
    figure.half_j = hypot(figure.half_j, holes_j) + rounding_w * length_s;
    figure.wide =
        holes_j == 0.0 && length_s >= guessed_least_s && window->end.variation.total_s >= guessed_after_s;
    return figure;
}

/* A reading that averages over more than the window says little about the window. */
bool figure_is_averaged_away(const struct sensing *sensing, double length_s)
{
    return sensing->power_window_s > sensing->power_period_s && length_s < sensing->power_window_s;
}
