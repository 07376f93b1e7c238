/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the readings of one device, in whatever order threads bring them. */
#include "meter/account.h"

#include <math.h>
#include <stdlib.h>

#include "meter/tracking.h"

/* Two samples are a period apart if they are as far apart to within this share. */
static const double apart_tolerance = 0.1;

/* Facts about the sensor that are unknown are settled by the first sample. */
static void know_sensor(struct account *account, bool average)
{
    account->sensing = sensing_of(&account->device->info, account->sensing.sample_s, average);
    account->integral.lag_s = account->sensing.lag_s;
    variation_init(&account->variation, fmax(account->sensing.lag_s, account->sensing.apart_s));
}

bool account_init(struct account *account, const struct device *device, uint32_t mark_count,
                  double sample_period_s)
{
    *account = (struct account){
        .device = device,
        .sensing = {.sample_s = sample_period_s},
        .counter = {.modulus_uj = device->info.energy_modulus_uj},
        .integral = {.gap_max_s = fmax(10.0 * sample_period_s, 2.0)},
        .wanted = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                  QUANTITY_BIT(QUANTITY_POWER_AVERAGE),
        .marks = calloc(mark_count, sizeof account->marks[0]),
        .mark_count = mark_count,
        .first_open = mark_count,
    };
    if (account->marks == NULL)
        return false;
    know_sensor(account, false);
    phase_init(&account->phase, device->info.estimated ? 0.0 : account->sensing.counter_period_s);
    knots_init(&account->knots);
    summing_init(&account->summing);
    pthread_mutex_init(&account->lock, NULL);
    return true;
}

void account_deinit(struct account *account)
{
    free(account->marks);
    account->marks = NULL;
}

static bool is_offered(const struct reading *reading)
{
    return reading->state != READING_NOT_READ && reading->state != READING_UNSUPPORTED &&
           reading->state != READING_MISSING;
}

/* Returns the power reading to integrate: the instant one if there is one, since it tells most. */
static const struct reading *power_of(const struct reading *values)
{
    const struct reading *instant = &values[QUANTITY_POWER_INSTANT],
                         *average = &values[QUANTITY_POWER_AVERAGE];

    if (instant->state == READING_OK || average->state == READING_NOT_READ)
        return instant;
    return average->state == READING_OK || !is_offered(instant) ? average : instant;
}

static quantity_set wanted_of(const struct reading *values)
{
    const struct reading *power = power_of(values);

    if (values[QUANTITY_ENERGY].state == READING_OK)
        return QUANTITY_BIT(QUANTITY_ENERGY);
    if (power->state != READING_OK || values[QUANTITY_ENERGY].state == READING_FAILED)
        return 0;
    return power == &values[QUANTITY_POWER_INSTANT] ? QUANTITY_BIT(QUANTITY_POWER_INSTANT)
                                                    : QUANTITY_BIT(QUANTITY_POWER_AVERAGE);
}

/* The begins of windows whose lag has passed by the next reading get the sum of readings up to there. */
static void centre_marks(struct account *account, struct mono_time next_at, double next_w)
{
    double lag_s = account->sensing.lag_s;

    for (uint32_t i = account->first_open; account->uncentred > 0 && i < account->mark_count;
         i = account->marks[i].after) {
        struct account_mark *mark = &account->marks[i];
        struct mono_time due = mono_after_s(mark->begin.at, lag_s);

        if (mark->centred || due.ns > next_at.ns)
            continue;
        mark->begin_centred = integral_between(&account->integral, due, next_at, next_w);
        mark->jump_w = fabs(next_w - mark->begin.integral.power_w);
        mark->centred = true;
        account->uncentred--;
    }
}

static void take_power(struct account *account, struct mono_time at, double power_w)
{
    if (!account->integral.known || at.ns > account->integral.at.ns) {
        if (account->uncentred > 0)
            centre_marks(account, at, power_w);
        integral_take(&account->integral, at, power_w);
    }
}

/* Returns whether the board can draw that much; a reading of more is left out, like one that was not made. */
static bool can_be(const struct account *account, const struct reading *power)
{
    double most_w = account->counter.power_max_w;

    return !(most_w > 0.0) || (double)power->value * 1e-3 <= most_w;
}

/* Power comes first: the integral fills the gap of a counter that was reset. */
static struct account_edge take(struct account *account, const struct device_reading *reading)
{
    const struct reading *energy = &reading->values[QUANTITY_ENERGY], *power = power_of(reading->values);
    struct account_edge edge = {.at = mono_middle(reading->before, reading->after),
                                .read_s = mono_elapsed_s(reading->before, reading->after)};
    struct integral_edge before = integral_edge(&account->integral, account->counter.at), now;

    if (power->state != READING_NOT_READ)
        account->power_state = power->state;
    if (power->state == READING_OK && can_be(account, power))
        take_power(account, edge.at, (double)power->value * 1e-3);
    now = integral_edge(&account->integral, edge.at);
    if (energy->state != READING_NOT_READ)
        account->energy_state = energy->state;
    if (energy->state == READING_OK) {
        bool fills = now.known && before.known && now.holes_s == before.holes_s;

        edge.counter = counter_take(&account->counter, edge.at, (uint64_t)energy->value,
                                    fills ? now.total_j - before.total_j : NAN);
    }
    edge.integral = now;
    edge.expected_w = NAN;
    if (energy->state == READING_OK)
        tracking_take(account, reading, &edge);
    edge.variation = variation_edge(&account->variation);
    edge.shares = account->shares;
    edge.power_limit = account->latest.values[QUANTITY_POWER_LIMIT];
    edge.energy_state = account->energy_state;
    edge.power_state = account->power_state;
    return edge;
}

quantity_set account_wanted(struct account *account)
{
    quantity_set wanted;

    pthread_mutex_lock(&account->lock);
    wanted = account->wanted;
    pthread_mutex_unlock(&account->lock);
    return wanted;
}

/* Returns the energy since the last sample, from the counter if there is one, else from the integral. */
static double since_sample_j(const struct account *account, const struct account_edge *edge)
{
    if (edge->counter.known && account->sampled_counter.known &&
        edge->counter.holes == account->sampled_counter.holes)
        return (double)(int64_t)(edge->counter.total_uj - account->sampled_counter.total_uj) * 1e-6;
    if (edge->integral.known && account->sampled_integral.known &&
        edge->integral.holes_s == account->sampled_integral.holes_s)
        return edge->integral.total_j - account->sampled_integral.total_j;
    return NAN;
}

static void note_temperature(struct account *account, const struct reading *temperature)
{
    if (temperature->state != READING_OK)
        return;
    for (uint32_t i = account->first_open; i < account->mark_count; i = account->marks[i].after) {
        if (account->marks[i].temperature_max_c < temperature->value)
            account->marks[i].temperature_max_c = temperature->value;
    }
}

/*
 * Without a power sensor, the power that the counter shows between two samples takes its place. A
 * counter that is fast enough also shows what a sensor averages away.
 */
static void note_power(struct account *account, const struct account_edge *edge, const struct reading *power,
                       double energy_j)
{
    const struct sensing *sensing = &account->sensing;
    double elapsed_s = mono_elapsed_s(account->sampled_at, edge->at), power_w = NAN, counter_w = NAN;

    if (account->sampled && elapsed_s > 0.0)
        counter_w = energy_j / elapsed_s;
    if (power->state == READING_OK)
        power_w = (double)power->value * 1e-3;
    else
        power_w = counter_w;
    if (sensing->counter_from_power || elapsed_s < 4.0 * sensing->counter_period_s)
        counter_w = NAN;
    /* A reading that comes again tells nothing new about how power varies. */
    if (account->variation.known && mono_elapsed_s(account->variation.at, edge->at) < 0.9 * sensing->apart_s)
        return;
    if (isfinite(power_w))
        variation_take(&account->variation, edge->at, power_w, fmax(power_w, counter_w));
}

/* Compares how counter and integral went on since the last sample. */
static void note_lag(struct account *account, const struct account_edge *edge)
{
    const struct counter_edge *counter = &edge->counter, *last = &account->sampled_counter;

    if (!account->sensing.counter_from_power || !counter->known || !edge->integral.known)
        return;
    counter_lag_take(&account->lag, edge->at, (double)(int64_t)counter->total_uj * 1e-6,
                     edge->integral.total_j,
                     account->sampled && counter->resets == last->resets && counter->holes == last->holes &&
                         edge->integral.holes_s == account->sampled_integral.holes_s);
}

static double watts_of(const struct reading *reading)
{
    return reading->state == READING_OK ? (double)reading->value * 1e-3 : NAN;
}

/* Only samples that are one period of the sensor apart can be compared with its readings. */
static void note_summing(struct account *account, const struct account_edge *edge,
                         const struct device_reading *reading, double energy_j)
{
    double period_s = account->sensing.power_period_s;
    double apart = mono_elapsed_s(account->sampled_at, edge->at) / period_s;

    if (fabs(account->sensing.sample_s - period_s) < apart_tolerance * period_s)
        summing_take(&account->summing, fabs(apart - 1.0) < apart_tolerance ? energy_j : NAN,
                     watts_of(&reading->values[QUANTITY_POWER_INSTANT]),
                     watts_of(&reading->values[QUANTITY_POWER_AVERAGE]), period_s);
}

static void keep_latest(struct account *account, const struct device_reading *reading)
{
    account->latest.before = reading->before;
    account->latest.after = reading->after;
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if (reading->values[i].state != READING_NOT_READ)
            account->latest.values[i] = reading->values[i];
    }
}

static void take_sample(struct account *account, const struct device_reading *reading)
{
    const struct reading *power = power_of(reading->values),
                         *most = &reading->values[QUANTITY_POWER_LIMIT_MAX];
    struct account_edge edge;
    double energy_j;

    if (!account->sampled)
        know_sensor(account, power == &reading->values[QUANTITY_POWER_AVERAGE]);
    if (most->state == READING_OK)
        account->counter.power_max_w = counter_power_max_w(most->value);
    edge = take(account, reading);
    if (account->sampled && edge.at.ns <= account->sampled_at.ns)
        return;
    energy_j = account->sampled ? since_sample_j(account, &edge) : NAN;
    note_power(account, &edge, power, energy_j);
    note_lag(account, &edge);
    note_summing(account, &edge, reading, energy_j);
    if (account->sampled)
        shares_take(&account->shares, reading->values, mono_elapsed_s(account->sampled_at, edge.at),
                    energy_j);
    else if (wanted_of(reading->values) != 0)
        account->wanted = wanted_of(reading->values);
    if (power->state == READING_OK || edge.counter.known)
        account->good = edge;
    account->sampled = true;
    account->sampled_at = edge.at;
    account->sampled_counter = edge.counter;
    account->sampled_integral = edge.integral;
    keep_latest(account, reading);
    note_temperature(account, &reading->values[QUANTITY_TEMPERATURE]);
}

void account_sample(struct account *account, const struct device_reading *reading)
{
    pthread_mutex_lock(&account->lock);
    take_sample(account, reading);
    pthread_mutex_unlock(&account->lock);
}

struct mono_time account_next_extra(struct account *account, struct mono_time now)
{
    struct mono_time next;

    pthread_mutex_lock(&account->lock);
    next = phase_next_read(&account->phase, now);
    pthread_mutex_unlock(&account->lock);
    return next;
}

void account_extra(struct account *account, const struct device_reading *reading)
{
    pthread_mutex_lock(&account->lock);
    (void)take(account, reading);
    if (reading->values[QUANTITY_ENERGY].state == READING_OK)
        phase_extra_read(&account->phase, reading->after);
    else
        phase_read_failed(&account->phase, reading->after);
    pthread_mutex_unlock(&account->lock);
}

void account_add(struct account *account, const struct device_reading *reading)
{
    pthread_mutex_lock(&account->lock);
    (void)take(account, reading);
    pthread_mutex_unlock(&account->lock);
}

void account_begin(struct account *account, uint32_t mark, const struct device_reading *reading)
{
    struct account_mark *opened = &account->marks[mark];

    pthread_mutex_lock(&account->lock);
    opened->begin = take(account, reading);
    opened->centred = false;
    opened->next[0].known = opened->next[1].known = false;
    account->uncentred++;
    account->unsettled++;
    opened->temperature_max_c = account->latest.values[QUANTITY_TEMPERATURE].state == READING_OK
                                    ? account->latest.values[QUANTITY_TEMPERATURE].value
                                    : INT64_MIN;
    opened->before = account->mark_count;
    opened->after = account->first_open;
    if (opened->after < account->mark_count)
        account->marks[opened->after].before = mark;
    account->first_open = mark;
    pthread_mutex_unlock(&account->lock);
}

/* Takes a mark out of the list of open ones. */
static void unlink_mark(struct account *account, const struct account_mark *closed)
{
    if (closed->after < account->mark_count)
        account->marks[closed->after].before = closed->before;
    if (closed->before < account->mark_count)
        account->marks[closed->before].after = closed->after;
    else
        account->first_open = closed->after;
    if (!closed->centred)
        account->uncentred--;
    if (!closed->next[1].known)
        account->unsettled--;
}

/*
 * For how long a reading of power stands for what came after it: its lag, and where edges read no power the
 * time since the last sample, at the end and in the mean at the begin.
 */
static double held_s(const struct account *account, const struct account_edge *end)
{
    double since_s = end->integral.held_s;

    return account->sensing.lag_s + since_s + (since_s > 0.0 ? 0.5 * account->sensing.sample_s : 0.0);
}

/* Gives everything known of the window from the mark to the reading. */
static void tell_window(struct account *account, uint32_t mark, const struct device_reading *reading,
                        struct account_window *out_window)
{
    double length_s;

    out_window->end = take(account, reading);
    out_window->mark = account->marks[mark];
    out_window->good = account->good;
    length_s = mono_elapsed_s(out_window->mark.begin.at, out_window->end.at);
    out_window->sensing = account->sensing;
    out_window->counter_late = counter_lag_is_late(&account->lag);
    if (out_window->counter_late)
        out_window->sensing.counter_lag_s = 0.5 * (account->sensing.power_period_s + COUNTER_LAG_AVERAGE_S);
    out_window->counter_period_s = fmax(account->sensing.counter_period_s, account->counter.held_s);
    out_window->variation =
        variation_between(&account->variation, &out_window->mark.begin.variation, &out_window->end.variation);
    out_window->phase = account->phase.state;
    /* Readings are made at their period: a counter that moves all the time does not sum them. */
    out_window->sees_all = account->phase.state == PHASE_FRESH || summing_is_disproved(&account->summing);
    out_window->disagree = knots_disagree(&account->knots);
    out_window->surprise_w = knots_surprise_w(&account->knots);
    out_window->step_j = knots_step_j(&account->knots);
    out_window->edges_w = variation_edges_w(&account->variation);
    out_window->held_j = variation_held_j(&account->variation, held_s(account, &out_window->end), length_s);
    out_window->counter_held_j =
        variation_held_j(&account->variation, out_window->sensing.counter_lag_s, length_s);
}

void account_peek(struct account *account, uint32_t mark, const struct device_reading *reading,
                  struct account_window *out_window)
{
    pthread_mutex_lock(&account->lock);
    tell_window(account, mark, reading, out_window);
    pthread_mutex_unlock(&account->lock);
}

void account_end(struct account *account, uint32_t mark, const struct device_reading *reading,
                 struct account_window *out_window)
{
    pthread_mutex_lock(&account->lock);
    tell_window(account, mark, reading, out_window);
    unlink_mark(account, &account->marks[mark]);
    pthread_mutex_unlock(&account->lock);
}

void account_counter(struct account *account, struct account_counter *out_counter)
{
    pthread_mutex_lock(&account->lock);
    *out_counter = (struct account_counter){.state = account->phase.state,
                                            .period_s = account->phase.line.period_s,
                                            .spread_s = phase_spread_s(&account->phase, account->counter.at),
                                            .step_j = knots_step_j(&account->knots),
                                            .disagrees = knots_disagree(&account->knots)};
    pthread_mutex_unlock(&account->lock);
}

bool account_latest(struct account *account, struct device_reading *out_reading)
{
    bool sampled;

    pthread_mutex_lock(&account->lock);
    sampled = account->sampled;
    if (sampled)
        *out_reading = account->latest;
    pthread_mutex_unlock(&account->lock);
    return sampled;
}
