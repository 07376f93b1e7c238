/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/search_guard.h"

#include <math.h>

#include <flyball/cost.h>

enum {
    DEAR_DOUBT = 2,   /* of the last GUARD_WINDOW recurrences, before the default's level is doubted */
    FAILED_TRIES = 2, /* of one recurrence, before the default takes over */
    NEWEST = 3,       /* recurrences whose middle cost is compared with that of those before them */
    SETTLED = 30,     /* recurrences after which a search should have found its choice */
    LEVEL_RUNS = 4,   /* newest runs of the default that count about equally */
};

static const double dear_factor = 1.2, changed_factor = 1.4, risen_factor = 1.5;
static const double near_share = 0.5; /* of what the default took: less is not doubted */
static const double newest_weight = 0.2, crept_factor = 1.3, crept_near_share = 0.33;

void guard_init(struct guard *guard, bool follows)
{
    *guard = (struct guard){.follows = follows, .least = INFINITY};
}

static size_t window_count(const struct guard *guard)
{
    return guard->finished < GUARD_WINDOW ? (size_t)guard->finished : GUARD_WINDOW;
}

/* Returns the recurrence that ended `back` recurrences ago; 0: the newest. */
static struct guard_recurrence *ended_before(struct guard *guard, uint64_t back)
{
    return &guard->last[(guard->finished - 1 - back) % GUARD_WINDOW];
}

unsigned guard_dear(const struct guard *guard)
{
    unsigned dear = 0;

    for (size_t i = 0; i < window_count(guard); i++)
        dear += guard->last[i].dear;
    return dear;
}

/* ---- what the default takes ---- */

/* Returns whether a cost exceeds what the default takes by more than a fifth. */
static bool is_dear(const struct guard *guard, double cost)
{
    return !guard->fails && guard->level > 0.0 && cost > dear_factor * guard->level;
}

/* Judges anew the recurrences since the default last ran: they were held against what it took then. */
static void judge_again(struct guard *guard)
{
    for (uint64_t back = 0; back < window_count(guard) && guard->finished - back > guard->level_at; back++) {
        struct guard_recurrence *ended = ended_before(guard, back);

        ended->dear = is_dear(guard, ended->cost);
    }
}

void guard_take_default(struct guard *guard, double cost)
{
    bool rose = guard->level > 0.0 && cost > changed_factor * guard->level;
    double weight;

    guard->rose = guard->rose || rose;
    if (rose || guard->level > changed_factor * cost)
        guard->level_runs = 0;
    guard->level_runs++;
    weight = fmax(1.0 / (double)guard->level_runs, 1.0 / LEVEL_RUNS);
    guard->level += weight * (cost - guard->level);
    guard->fails = guard->asked = false;
    judge_again(guard);
    guard->level_at = guard->finished;
    guard->least = INFINITY;
    guard->rests = guard->rests && guard_dear(guard) >= GUARD_DEAR_MOST;
}

void guard_take_default_failed(struct guard *guard)
{
    guard->fails = true;
    guard->asked = false;
}

/* ---- what recurrences take ---- */

/* Smoothes what recurrences take; one that is far off counts as twice what was usual. */
static void smoothe(struct guard *guard, double cost)
{
    if (guard->smooth == 0.0)
        guard->smooth = cost;
    guard->smooth += newest_weight * (fmin(cost, 2.0 * guard->smooth) - guard->smooth);
    guard->least = fmin(guard->least, guard->smooth);
}

static struct guard_open *find_open(struct guard *guard, uint64_t recurrence)
{
    for (size_t i = 0; i < GUARD_OPEN_MAX; i++) {
        if (guard->open[i].used && guard->open[i].recurrence == recurrence)
            return &guard->open[i];
    }
    return NULL;
}

void guard_take_try(struct guard *guard, uint64_t recurrence, double cost, bool reached)
{
    struct guard_open *open = find_open(guard, recurrence);

    if (open == NULL) {
        open = &guard->open[guard->opened++ % GUARD_OPEN_MAX];
        *open = (struct guard_open){.recurrence = recurrence, .used = true};
    }
    open->cost += cost;
    if (!reached)
        return;
    guard->finished++;
    smoothe(guard, open->cost);
    *ended_before(guard, 0) = (struct guard_recurrence){open->cost, is_dear(guard, open->cost)};
    *open = (struct guard_open){.used = false};
    guard->rests = guard->rests && guard_dear(guard) >= GUARD_DEAR_MOST;
}

/* ---- the answer ---- */

static double middle_of_three(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Returns whether the newest recurrences took plainly more than most of those before them, near the default.
 */
static bool took_more(const struct guard *guard)
{
    double newest[NEWEST], middle;
    size_t count = window_count(guard), below = 0;

    if (count < GUARD_WINDOW)
        return false;
    for (uint64_t back = 0; back < NEWEST; back++)
        newest[back] = guard->last[(guard->finished - 1 - back) % GUARD_WINDOW].cost;
    middle = middle_of_three(newest[0], newest[1], newest[2]);
    for (uint64_t back = NEWEST; back < count; back++)
        below += risen_factor * guard->last[(guard->finished - 1 - back) % GUARD_WINDOW].cost < middle;
    return 2 * below > count - NEWEST && middle > near_share * guard->level;
}

/* Returns whether recurrences take more and more, near the default. */
static bool crept_up(const struct guard *guard)
{
    return guard->smooth > crept_factor * guard->least && guard->smooth > crept_near_share * guard->level;
}

/* Returns whether the default's level must be seen again before anything is held against it. */
static bool doubts(const struct guard *guard)
{
    uint64_t since = guard->finished - guard->level_at;

    if (guard->asked && guard->finished - guard->asked_at < GUARD_WINDOW)
        return false;
    if (since >= DEAR_DOUBT && guard_dear(guard) >= DEAR_DOUBT) {
        for (uint64_t back = 0; back < since && back < window_count(guard); back++) {
            if (guard->last[(guard->finished - 1 - back) % GUARD_WINDOW].dear)
                return true;
        }
    }
    return since >= GUARD_WINDOW && (took_more(guard) || crept_up(guard));
}

enum guard_advice guard_advise(const struct guard *guard, uint32_t try_number)
{
    if (guard->fails)
        return GUARD_GO_ON;
    if (try_number >= FAILED_TRIES)
        return GUARD_ASK;
    if (try_number > 0)
        return GUARD_GO_ON;
    if ((guard->rose && !guard->follows) || guard_dear(guard) >= GUARD_DEAR_MOST)
        return GUARD_DEFAULT;
    return doubts(guard) ? GUARD_ASK : GUARD_GO_ON;
}

bool guard_begins_anew(const struct guard *guard)
{
    return (guard->rose && !guard->follows) ||
           (!guard->rests && guard->finished - guard->begun_at >= SETTLED);
}

void guard_take_advice(struct guard *guard)
{
    if (guard_begins_anew(guard))
        guard->begun_at = guard->finished;
    guard->rests = true;
    guard->rose = false;
}

uint32_t guard_explorers(const struct guard *guard)
{
    unsigned dear = guard_dear(guard);

    return dear < GUARD_DEAR_MOST ? GUARD_DEAR_MOST - dear : 0;
}

void guard_take_question(struct guard *guard)
{
    guard->asked = true;
    guard->asked_at = guard->finished;
}

void guard_withdraw_question(struct guard *guard)
{
    guard->asked = false;
}

double guard_limit_share(const struct job_spec *spec, const struct fly_power_point *points, size_t count,
                         double limit_w)
{
    double at_limit = 0.0, at_highest = 0.0, highest_w = 0.0;

    for (size_t i = 0; i < count; i++) {
        double cost =
            fly_cost(spec->eta, spec->max_power_w, points[i].time_s * points[i].power_w, points[i].time_s);

        if (points[i].limit_w == limit_w)
            at_limit = cost;
        if (points[i].limit_w >= highest_w) {
            highest_w = points[i].limit_w;
            at_highest = cost;
        }
    }
    return at_limit > 0.0 && at_highest > 0.0 ? at_limit / at_highest : 1.0;
}

/* ---- bytes ---- */

static const struct bytes_row guard_rows[] = {
    BYTES_AT(guard, level),    BYTES_AT(guard, level_runs), BYTES_AT(guard, level_at), BYTES_AT(guard, asked),
    BYTES_AT(guard, asked_at), BYTES_AT(guard, smooth),     BYTES_AT(guard, least),    BYTES_AT(guard, rose),
    BYTES_AT(guard, rests),    BYTES_AT(guard, begun_at),   BYTES_AT(guard, fails),
};

void guard_save(const struct guard *guard, struct buffer *bytes)
{
    bytes_put_u64(bytes, guard->finished);
    for (size_t i = 0; i < GUARD_WINDOW; i++) {
        bytes_put_double(bytes, guard->last[i].cost);
        bytes_put_u64(bytes, guard->last[i].dear);
    }
    bytes_put_u64(bytes, guard->opened);
    for (size_t i = 0; i < GUARD_OPEN_MAX; i++) {
        bytes_put_u64(bytes, guard->open[i].recurrence);
        bytes_put_double(bytes, guard->open[i].cost);
        bytes_put_u64(bytes, guard->open[i].used);
    }
    bytes_put_rows(bytes, BYTES_ROWS(guard_rows), guard);
}

void guard_load(struct guard *guard, struct bytes_reader *bytes)
{
    guard->finished = bytes_u64(bytes);
    for (size_t i = 0; i < GUARD_WINDOW; i++) {
        guard->last[i].cost = bytes_double(bytes);
        guard->last[i].dear = bytes_bool(bytes);
    }
    guard->opened = bytes_u64(bytes);
    for (size_t i = 0; i < GUARD_OPEN_MAX; i++) {
        guard->open[i].recurrence = bytes_u64(bytes);
        guard->open[i].cost = bytes_double(bytes);
        guard->open[i].used = bytes_bool(bytes);
    }
    bytes_rows(bytes, BYTES_ROWS(guard_rows), guard);
    bytes->failed |= guard->level_at > guard->finished || guard->asked_at > guard->finished ||
                     guard->begun_at > guard->finished;
}
