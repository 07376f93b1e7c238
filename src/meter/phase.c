/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/phase_private.h"

#include <math.h>
#include <string.h>

/* Below this period a window misses nothing worth tracking. */
static const double tracked_least_s = 0.005;
/* The clocks of board and host part by no more than this between two bursts. */
static const double drift = 50e-6;
/* A period may be off by this share (standard deviation), by how often searching with it has failed. */
static const double believed_error[] = {0.001, 0.03, 0.05};
/* At first, one that is only stated: a board was measured whose sensor is 1.1 % slower. One with which an
 * update was missed. */
static const double stated_error = 0.01, doubted_error = 0.05;
static const double half_life_s = 60.0;
/* Two readings further apart than this share of a period do not locate an update. */
static const double located_share = 0.3;
/* Ages are given only if updates are known to this share of a period, and this share of bursts hits. */
static const double tracked_share = 0.25, hit_share = 0.7;
/* Where more bursts than this miss, an update that was due may have been skipped at any moment. */
static const double skips_share = 0.12;

static const double scatter_first_s = 0.5e-3, scatter_least_s = 0.1e-3;

static const char *const clauses[] = {
    [PHASE_SEARCHED] = "the moments of the counter's updates are not known yet",
    [PHASE_TRACKED] = "the counter's updates are tracked",
    [PHASE_DOUBTED] = "the counter was not updated when it was due",
    [PHASE_UNSTEADY] = "the counter's updates keep no time",
    [PHASE_FRESH] = "the counter is new at every reading",
    [PHASE_NONE] = "the counter's updates are too frequent to track",
};
_Static_assert(sizeof clauses / sizeof clauses[0] == PHASE_STATE_COUNT, "one clause for every state");

const char *phase_state_clause(enum phase_state state)
{
    return clauses[state];
}

void phase_search(struct phase *phase, double period_s, int failures)
{
    const int last = sizeof believed_error / sizeof believed_error[0] - 1;

    phase->found = 0;
    phase->misses = 0;
    phase->failures = failures;
    phase->prior_s = period_s;
    phase->prior_error_s = believed_error[failures < last ? failures : last] * period_s;
    phase->line = (struct phase_line){.period_s = period_s};
    phase->scatter_s = fmax(scatter_first_s, fmin(0.5 * phase->scatter_s, 0.1 * period_s));
    phase->burst = (struct phase_burst){.open = false};
}

static void search_as_stated(struct phase *phase)
{
    phase_search(phase, phase->stated_s, 0);
    phase->prior_error_s = stated_error * phase->stated_s;
}

void phase_init(struct phase *phase, double stated_s)
{
    *phase = (struct phase){.stated_s = stated_s};
    phase->state = stated_s >= tracked_least_s ? PHASE_SEARCHED : PHASE_NONE;
    search_as_stated(phase);
}

void phase_is_not_fresh(struct phase *phase)
{
    phase->state = PHASE_SEARCHED;
    phase->rest_until_s = 0.0;
    search_as_stated(phase);
}

double phase_since_s(const struct phase *phase, struct mono_time at)
{
    return mono_elapsed_s(phase->origin, at);
}

static const struct phase_update *newest(const struct phase *phase)
{
    return &phase->updates[(phase->found - 1) % PHASE_UPDATES];
}

void phase_forget(struct phase *phase)
{
    struct phase_update kept[PHASE_FOUND_LEAST];

    if (phase->found <= PHASE_FOUND_LEAST)
        return;
    for (uint32_t i = 0; i < PHASE_FOUND_LEAST; i++)
        kept[i] = phase->updates[(phase->found - PHASE_FOUND_LEAST + i) % PHASE_UPDATES];
    memcpy(phase->updates, kept, sizeof kept);
    phase->found = PHASE_FOUND_LEAST;
}

/*
 * Fits the line by weighted least squares, with the believed period as one more observation of
 * the slope. Times and numbers are relative to the newest update, so nothing cancels.
 */
static void fit(struct phase *phase)
{
    uint32_t kept = phase->found < PHASE_UPDATES ? phase->found : PHASE_UPDATES;
    const struct phase_update *last = newest(phase);
    double prior_s = phase->prior_s, scatter_var_s2 = phase->scatter_s * phase->scatter_s / 3.0;
    double w = 0.0, wx = 0.0, wxx = 1.0 / (phase->prior_error_s * phase->prior_error_s), wy = 0.0, wxy = 0.0;
    double determinant, a_s, b_s;

    for (uint32_t i = 0; i < kept; i++) {
        const struct phase_update *update = &phase->updates[i];
        double x = (double)(update->number - last->number);
        double y = update->at_s - last->at_s - prior_s * x;
        double fades = exp2((update->at_s - last->at_s) / half_life_s);
        double weight = fades / (update->half_s * update->half_s / 3.0 + scatter_var_s2);

        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    determinant = w * wxx - wx * wx;
    a_s = (wxx * wy - wx * wxy) / determinant;
    b_s = (w * wxy - wx * wy) / determinant;
    phase->line = (struct phase_line){.number = last->number,
                                      .at_s = last->at_s + a_s,
                                      .period_s = prior_s + b_s,
                                      .at_var_s2 = wxx / determinant,
                                      .period_var_s2 = w / determinant,
                                      .both_var_s2 = -wx / determinant};
}

/* Two standard deviations of the line, and drift. */
double phase_line_error_s(const struct phase *phase, double at_s)
{
    const struct phase_line *line = &phase->line;
    double x = (at_s - line->at_s) / line->period_s;
    double var_s2 = line->at_var_s2 + 2.0 * x * line->both_var_s2 + x * x * line->period_var_s2;

    return 2.0 * sqrt(fmax(var_s2, 0.0)) + drift * fabs(at_s - line->at_s);
}

double phase_spread_at_s(const struct phase *phase, double at_s)
{
    return phase_line_error_s(phase, at_s) + phase->scatter_s;
}

double phase_spread_s(const struct phase *phase, struct mono_time at)
{
    return phase->state == PHASE_FRESH ? phase->fresh_s : phase_spread_at_s(phase, phase_since_s(phase, at));
}

double phase_last_due(const struct phase *phase, double at_s)
{
    return floor((at_s - phase->line.at_s) / phase->line.period_s);
}

double phase_due_s(const struct phase *phase, double number)
{
    return phase->line.at_s + number * phase->line.period_s;
}

void phase_settle(struct phase *phase, double at_s, bool doubted)
{
    if (phase->found < PHASE_FOUND_LEAST)
        phase->state = PHASE_SEARCHED;
    else if (doubted)
        phase->state = PHASE_DOUBTED;
    else if (phase_spread_at_s(phase, at_s) > tracked_share * phase->line.period_s ||
             phase->missed_share > 1.0 - hit_share)
        phase->state = PHASE_UNSTEADY;
    else
        phase->state = PHASE_TRACKED;
}

double phase_seen_scatter_s(const struct phase *phase)
{
    uint32_t kept = phase->found < PHASE_UPDATES ? phase->found : PHASE_UPDATES;
    double most_s = scatter_least_s;

    for (uint32_t i = 0; i < kept; i++) {
        const struct phase_update *update = &phase->updates[i];
        double off_s = update->at_s - phase_due_s(phase, (double)(update->number - phase->line.number));

        most_s = fmax(most_s, fabs(off_s) - update->half_s);
    }
    return most_s;
}

void phase_doubt_period(struct phase *phase)
{
    if (phase->failures < 0) /* it has proved right */
        return;
    phase->prior_error_s = doubted_error * phase->prior_s;
    fit(phase);
}

static void contradict(struct phase *phase)
{
    if (phase->state != PHASE_TRACKED)
        return;
    phase->misses++;
    phase->state = PHASE_DOUBTED;
    phase->rest_until_s = 0.0;
    /* A burst that has not begun aims too far ahead. */
    if (phase->burst.next == 0)
        phase->burst.open = false;
}

/* Adds an update that fell between two moments. */
static void locate(struct phase *phase, double low_s, double high_s)
{
    struct phase_update update = {.at_s = 0.5 * (low_s + high_s), .half_s = 0.5 * (high_s - low_s)};

    if (phase->found > 0) {
        double number = round((update.at_s - phase->line.at_s) / phase->line.period_s);
        double off_s = fabs(update.at_s - phase_due_s(phase, number));

        update.number = phase->line.number + (int64_t)number;
        if (update.number <= newest(phase)->number ||
            off_s > update.half_s + 2.0 * phase_spread_at_s(phase, update.at_s) + phase->scatter_s) {
            phase->burst.contradicted = true;
            contradict(phase);
            return;
        }
        /* One that is known less well than the line tells nothing, and would displace those that do. */
        if (phase->found >= PHASE_FOUND_LEAST && update.half_s > phase_spread_at_s(phase, update.at_s))
            return;
    }
    phase->updates[phase->found % PHASE_UPDATES] = update;
    phase->found++;
    fit(phase);
    phase->scatter_s = fmax(phase->scatter_s, phase_seen_scatter_s(phase));
    phase_settle(phase, update.at_s, false);
}

/*
 * Doubts the line if the value changed where no update was due; before there is one, the period. One that
 * was due and did not come may have been skipped; if it came to stay away, the next burst sees that.
 */
static void check_due(struct phase *phase, double from_s, double to_s, bool changed)
{
    double spread = phase_spread_at_s(phase, to_s);

    if (phase->found == 0 || !changed ||
        phase_last_due(phase, to_s + spread) != phase_last_due(phase, from_s - spread))
        return;
    contradict(phase);
    if (phase->found < PHASE_FOUND_LEAST && !phase->burst.searches)
        phase_search(phase, phase->line.period_s, (phase->failures + 1) | 1); /* counts what comes */
}

static void count_pair(struct phase_burst *burst, double before_s, double at_s, bool changed)
{
    if (burst->pairs++ == 0)
        burst->from_s = before_s;
    burst->until_s = at_s;
    if (!changed)
        return;
    if (burst->changes == 0)
        burst->first_change_s = at_s;
    burst->last_change_s = at_s;
    burst->changes++;
}

/* What a reading shows that follows another one. */
static void compare(struct phase *phase, double before_s, double after_s, bool changed)
{
    const struct phase_burst *burst = &phase->burst;
    double apart_s = after_s - phase->read_before_s;
    /* A reading since the update before this one shows whether this one came early. */
    double counts_from_s = burst->start_s - (burst->dense ? 0.0 : 0.5 * phase->line.period_s);

    check_due(phase, phase->read_before_s, after_s, changed);
    if (burst->open && (burst->next > 0 || phase->read_before_s > counts_from_s))
        count_pair(&phase->burst, phase->read_before_s, after_s, changed);
    if (phase->state == PHASE_FRESH) {
        if (!changed && before_s - phase->read_after_s > phase->fresh_s)
            phase_is_not_fresh(phase);
    } else if (changed && !burst->dense && apart_s <= located_share * phase->line.period_s &&
               (phase->found > 0 || burst->open)) {
        locate(phase, phase->read_before_s, after_s);
    }
}

void phase_take(struct phase *phase, struct mono_time before, struct mono_time after, uint64_t value_uj)
{
    double before_s, after_s;

    if (phase->state == PHASE_NONE)
        return;
    if (!phase->read)
        phase->origin = before;
    before_s = phase_since_s(phase, before);
    after_s = phase_since_s(phase, after);
    if (phase->read && before_s < phase->read_after_s)
        return;
    if (phase->read)
        compare(phase, before_s, after_s, value_uj != phase->value_uj);
    phase->read = true;
    phase->read_before_s = before_s;
    phase->read_after_s = after_s;
    phase->value_uj = value_uj;
}

struct phase_age phase_age(const struct phase *phase, struct mono_time at, double least_s, double most_s)
{
    struct phase_age age = {.low_s = INFINITY, .high_s = -INFINITY};
    double at_s = phase_since_s(phase, at), period_s = phase->line.period_s, spread, since_due_s;
    int lost = phase->skipped_share > skips_share ? 1 : 0;

    if (phase->state == PHASE_FRESH)
        return (struct phase_age){least_s <= phase->fresh_s, least_s, fmin(most_s, phase->fresh_s)};
    if (phase->state != PHASE_TRACKED)
        return age;
    spread = phase_spread_at_s(phase, at_s);
    if (spread > tracked_share * period_s)
        return age;
    since_due_s = at_s - phase_due_s(phase, phase_last_due(phase, at_s));
    /* The update that is due next, the last one due, those before it; most are excluded. */
    for (int skipped = -1; skipped <= 3; skipped++) {
        double middle_s = since_due_s + skipped * period_s;
        double low_s = fmax(fmax(middle_s - spread, 0.0), least_s), high_s = fmin(middle_s + spread, most_s);

        /* An older one is the last only if the newer one may not have come, or if readings say so. */
        if (skipped > lost && middle_s - period_s > spread && age.high_s >= 0.0)
            break;
        if (low_s > high_s)
            continue;
        age.low_s = fmin(age.low_s, low_s);
        age.high_s = fmax(age.high_s, high_s);
    }
    age.known = age.low_s <= age.high_s;
    return age;
}
