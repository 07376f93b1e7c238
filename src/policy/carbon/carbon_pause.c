/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_pause.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/units.h"

enum { PRICES = 24, TRIES_EFFORT = 6000, TRIES_MIN = 40 };

/* Arrays over the borders of spans, 0 .. count. */
enum { ON_COST, OFF_COST, LOST_COST, TIME, FROM_ON, FROM_OFF, SUM_COUNT };

/* The dynamic program at one price. */
struct program {
    const struct carbon_problem *problem;
    const struct carbon_pause *pause;
    double *sums[SUM_COUNT];
    size_t *on_until;  /* for each border, where a run that begins there ends; past the count: with the job */
    size_t *off_until; /* the same for a pause */
};

int carbon_pauser_init(struct carbon_pauser *pauser, size_t capacity, struct fly_error *out_error)
{
    size_t room = capacity + 2;
    struct carbon_pauser made = {.capacity = capacity};
    struct carbon_pattern *patterns[] = {&made.best, &made.tried};

    for (size_t i = 0; i < 2; i++) {
        patterns[i]->on = calloc(room, sizeof(bool));
        patterns[i]->lost_s = calloc(room, sizeof(double));
        patterns[i]->place = calloc(room, sizeof(size_t));
        patterns[i]->spans = calloc(room, sizeof(struct carbon_span));
        patterns[i]->fixed = calloc(room, sizeof(double));
    }
    made.sums = calloc(room * SUM_COUNT, sizeof made.sums[0]);
    made.next = calloc(room * 2, sizeof made.next[0]);
    *pauser = made;
    for (size_t i = 0; i < 2; i++) {
        if (patterns[i]->on == NULL || patterns[i]->lost_s == NULL || patterns[i]->place == NULL ||
            patterns[i]->spans == NULL || patterns[i]->fixed == NULL || made.sums == NULL ||
            made.next == NULL) {
            carbon_pauser_deinit(pauser);
            return error_no_memory(out_error);
        }
    }
    return 0;
}

static void free_pattern(struct carbon_pattern *pattern)
{
    free(pattern->on);
    free(pattern->lost_s);
    free(pattern->place);
    free(pattern->spans);
    free(pattern->fixed);
}

void carbon_pauser_deinit(struct carbon_pauser *pauser)
{
    free_pattern(&pauser->best);
    free_pattern(&pauser->tried);
    free(pauser->sums);
    free(pauser->next);
    *pauser = (struct carbon_pauser){.capacity = 0};
}

static const struct carbon_point *fastest_of(const struct carbon_problem *problem)
{
    return &problem->profile->points[problem->profile->fastest];
}

/* Returns the least cost of running for a second at a price of work, both in weight * W. */
static double running_cost(const struct carbon_problem *problem, double weight, double price)
{
    const struct carbon_hull *hull = weight < 0.0 ? &problem->profile->upper : &problem->profile->lower;
    double least = INFINITY;

    for (size_t i = 0; i < hull->count; i++)
        least = fmin(least, weight * hull->points[i].power_w - price * hull->points[i].rate);
    return least;
}

static void fill_sums(const struct program *program, double price)
{
    const struct carbon_problem *problem = program->problem;
    double fastest_w = fastest_of(problem)->power_w;

    for (int i = 0; i < SUM_COUNT; i++)
        program->sums[i][0] = 0.0;
    for (size_t i = 0; i < problem->span_count; i++) {
        double duration_s = problem->spans[i].duration_s, weight = problem->spans[i].weight;

        program->sums[TIME][i + 1] = program->sums[TIME][i] + duration_s;
        program->sums[ON_COST][i + 1] =
            program->sums[ON_COST][i] + duration_s * running_cost(problem, weight, price);
        program->sums[OFF_COST][i + 1] = program->sums[OFF_COST][i] + duration_s * weight * problem->idle_w;
        program->sums[LOST_COST][i + 1] = program->sums[LOST_COST][i] + duration_s * weight * fastest_w;
    }
}

/* Returns a sum at any time, interpolated linearly between the borders. */
static double sum_at(const struct program *program, int sum, size_t from, double time_s)
{
    const double *times = program->sums[TIME], *sums = program->sums[sum];
    size_t count = program->problem->span_count;

    while (from < count && times[from + 1] < time_s)
        from++;
    if (from >= count)
        return sums[count];
    return sums[from] +
           (sums[from + 1] - sums[from]) * (time_s - times[from]) / (times[from + 1] - times[from]);
}

/* Returns what restoring at a border costs more than running. */
static double restoring_cost(const struct program *program, size_t at)
{
    double until_s = program->sums[TIME][at] + program->pause->checkpoint_s;

    return sum_at(program, LOST_COST, at, until_s) - program->sums[LOST_COST][at] -
           (sum_at(program, ON_COST, at, until_s) - program->sums[ON_COST][at]);
}

/* Returns the first border that is at least so long after `at`; past the count if there is none. */
static size_t border_after(const struct program *program, size_t at, double duration_s)
{
    size_t border = at + 1, count = program->problem->span_count;

    while (border <= count &&
           program->sums[TIME][border] - program->sums[TIME][at] < duration_s * (1.0 - 1e-9))
        border++;
    return border;
}

/*
 * Goes from the last border to the first and computes what running from there, or pausing from
 * there, costs until the end. Later choices are minima over all borders from the least time on;
 * these minima are updated along the way.
 */
static void work_back(const struct program *program)
{
    const double *on = program->sums[ON_COST], *off = program->sums[OFF_COST];
    size_t count = program->problem->span_count;
    double *from_on = program->sums[FROM_ON], *from_off = program->sums[FROM_OFF];
    size_t *on_until = program->on_until, *off_until = program->off_until;

    from_on[count] = 0.0;
    from_off[count] = INFINITY; /* a job must not end with a pause */
    on_until[count] = off_until[count] = count;
    for (size_t i = count; i-- > 0;) {
        from_on[i] = INFINITY;
        from_off[i] = INFINITY;
        for (size_t j = i + 1; j <= count; j++) {
            if (on[j] - on[i] < from_on[i]) { /* the job ends there */
                from_on[i] = on[j] - on[i];
                on_until[i] = count + 1 + j;
            }
        }
        for (size_t j = border_after(program, i, program->pause->least_on_s); j < count; j++) {
            if (on[j] - on[i] + from_off[j] < from_on[i]) {
                from_on[i] = on[j] - on[i] + from_off[j];
                on_until[i] = j;
            }
        }
        for (size_t j = border_after(program, i, program->pause->least_off_s); j < count; j++) {
            double cost = off[j] - off[i] + from_on[j] + restoring_cost(program, j);

            if (cost < from_off[i]) {
                from_off[i] = cost;
                off_until[i] = j;
            }
        }
    }
}

/* Returns the first border at which the job may change what it does now. */
static size_t first_change(const struct program *program, const struct carbon_pause_now *now)
{
    double least_s = now->paused ? program->pause->least_off_s : program->pause->least_on_s;

    return now->held_s >= least_s ? 0 : border_after(program, 0, least_s - now->held_s);
}

/*
 * Returns the least cost from now on, and until when the job goes on with what it does now; past
 * the count: to its end.
 */
static double choose_first(const struct program *program, const struct carbon_pause_now *now,
                           size_t *out_until)
{
    const double *sums = program->sums[now->paused ? OFF_COST : ON_COST];
    size_t count = program->problem->span_count;
    double least = INFINITY;

    for (size_t j = 1; j <= count && !now->paused; j++) {
        if (sums[j] < least) { /* the job ends there */
            least = sums[j];
            *out_until = count + 1 + j;
        }
    }
    for (size_t j = first_change(program, now); j < count; j++) {
        double cost = sums[j] + (now->paused ? program->sums[FROM_ON][j] + restoring_cost(program, j)
                                             : program->sums[FROM_OFF][j]);

        if (cost < least) {
            least = cost;
            *out_until = j;
        }
    }
    return least;
}

/* Returns the least cost from now on, and the pattern that has it. */
static double choose(const struct program *program, const struct carbon_pause_now *now, bool *pattern)
{
    size_t count = program->problem->span_count, at = 0, until = count + 1;
    double cost = choose_first(program, now, &until);
    bool on = !now->paused;

    for (size_t i = 0; i < count; i++)
        pattern[i] = true;
    while (until <= count) {
        for (size_t i = at; i < until; i++)
            pattern[i] = on;
        at = until;
        on = !on;
        if (at == count)
            break;
        until = on ? program->on_until[at] : program->off_until[at];
    }
    return cost;
}

/* Lists the spans in which a pattern runs, and what its pauses cost up to each. */
static void lay_out(const struct carbon_problem *problem, const struct carbon_pause *pause, bool paused,
                    struct carbon_pattern *pattern)
{
    double fastest_w = fastest_of(problem)->power_w, fixed = 0.0, owed_s = 0.0;
    bool before = !paused;

    pattern->span_count = 0;
    for (size_t i = 0; i < problem->span_count; i++) {
        struct carbon_span span = problem->spans[i];
        double lost_s;

        if (!pattern->on[i]) {
            fixed += span.weight * units_kwh_from_j(problem->idle_w * span.duration_s);
            pattern->place[i] = pattern->span_count;
            pattern->lost_s[i] = 0.0;
            before = false;
            continue;
        }
        owed_s = before ? owed_s : pause->checkpoint_s;
        before = true;
        lost_s = fmin(owed_s, span.duration_s);
        owed_s -= lost_s;
        fixed += span.weight * units_kwh_from_j(fastest_w * lost_s);
        span.duration_s -= lost_s;
        pattern->lost_s[i] = lost_s;
        pattern->place[i] = pattern->span_count;
        if (span.duration_s <= 0.0)
            continue;
        pattern->fixed[pattern->span_count] = fixed;
        pattern->spans[pattern->span_count++] = span;
    }
    pattern->place[problem->span_count] = pattern->span_count;
}

static struct carbon_problem problem_of(const struct carbon_problem *problem,
                                        const struct carbon_pattern *pattern)
{
    return (struct carbon_problem){.profile = problem->profile,
                                   .spans = pattern->spans,
                                   .span_count = pattern->span_count,
                                   .fixed = pattern->fixed,
                                   .ends_most = CARBON_ENDS_MIN,
                                   .work_s = problem->work_s,
                                   .idle_w = NAN};
}

/*
 * Solves the rates of the pattern on trial, and keeps it if it is the best. Returns whether it is
 * feasible.
 */
static bool try_pattern(struct carbon_pauser *pauser, struct carbon_workspace *workspace,
                        const struct carbon_problem *problem, const struct carbon_pause *pause, bool paused)
{
    struct carbon_pattern *tried = &pauser->tried, kept = pauser->best;
    struct carbon_problem rates;

    lay_out(problem, pause, paused, tried);
    if (tried->span_count == 0)
        return false;
    rates = problem_of(problem, tried);
    if (carbon_solve(workspace, &rates, &tried->solution, NULL) < 0)
        return false;
    tried->cost = tried->solution.cost;
    if (tried->cost < kept.cost) {
        pauser->best = *tried;
        *tried = kept;
    }
    return true;
}

/* Returns whether the pattern on trial keeps all least times. Its last run may be shorter. */
static bool is_allowed(const struct program *program, const struct carbon_pause_now *now, const bool *on)
{
    size_t count = program->problem->span_count, at = 0;
    bool running = !now->paused;
    double held_s = now->held_s;

    while (at < count) {
        double least_s = running ? program->pause->least_on_s : program->pause->least_off_s;
        size_t begin = at;

        while (at < count && on[at] == running)
            at++;
        if (at < count &&
            held_s + program->sums[TIME][at] - program->sums[TIME][begin] < least_s * (1.0 - 1e-9))
            return false;
        running = !running;
        held_s = 0.0;
    }
    return true;
}

static void turn_over(bool *on, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        on[i] = !on[i];
}

/*
 * Tries patterns near the best one: adds, removes, lengthens and shortens pauses and runs of many
 * lengths, as long as that improves the result, up to a number of tries.
 */
static void improve(const struct program *program, struct carbon_pauser *pauser,
                    struct carbon_workspace *workspace, const struct carbon_pause_now *now)
{
    size_t count = program->problem->span_count, since = 0, at = 0, tries = 0;
    size_t tries_max = TRIES_EFFORT / count < TRIES_MIN ? TRIES_MIN : TRIES_EFFORT / count;

    for (; tries < tries_max && since < count; since++, at = (at + 1) % count) {
        for (size_t length = 1; at + length <= count && tries < tries_max; length += 1 + length / 3) {
            double cost = pauser->best.cost;

            memcpy(pauser->tried.on, pauser->best.on, count * sizeof(bool));
            turn_over(pauser->tried.on, at, at + length);
            if (!is_allowed(program, now, pauser->tried.on))
                continue;
            tries++;
            (void)try_pattern(pauser, workspace, program->problem, program->pause, now->paused);
            if (pauser->best.cost < cost)
                since = 0;
        }
    }
}

/* Returns a price so high that even the least bit of work is worth any limit. */
static double greatest_price(const struct carbon_problem *problem)
{
    double most = 1.0, weight = 0.0;

    for (size_t i = 0; i < problem->profile->count; i++)
        most = fmax(most, problem->profile->points[i].power_w / problem->profile->points[i].rate);
    for (size_t i = 0; i < problem->span_count; i++)
        weight = fmax(weight, fabs(problem->spans[i].weight));
    /* Restoring, too, has to pay for itself within one span. */
    return 1e4 * most * fmax(weight, 1e-9);
}

int carbon_pause_solve(struct carbon_pauser *pauser, struct carbon_workspace *workspace,
                       const struct carbon_problem *problem, const struct carbon_pause *pause,
                       const struct carbon_pause_now *now, struct fly_error *out_error)
{
    struct program program = {.problem = problem, .pause = pause};
    double low = 0.0, high = greatest_price(problem);

    for (int i = 0; i < SUM_COUNT; i++)
        program.sums[i] = pauser->sums + (size_t)i * (pauser->capacity + 2);
    program.on_until = pauser->next;
    program.off_until = pauser->next + pauser->capacity + 2;
    pauser->best.cost = INFINITY;
    pauser->least_cost = -INFINITY;
    memset(pauser->tried.on, true, problem->span_count * sizeof(bool));
    (void)try_pattern(pauser, workspace, problem, pause, now->paused);
    for (int i = 0; i < PRICES; i++) {
        double price = i == 0 ? high : low + (high - low) / 2.0, cost;

        fill_sums(&program, price);
        work_back(&program);
        cost = choose(&program, now, pauser->tried.on);
        pauser->least_cost = fmax(pauser->least_cost, (cost + price * problem->work_s) / JOULES_PER_KWH);
        if (i == 0)
            continue;
        if (try_pattern(pauser, workspace, problem, pause, now->paused))
            high = price;
        else
            low = price;
    }
    if (pauser->best.cost < INFINITY) {
        improve(&program, pauser, workspace, now);
        return 0;
    }
    return error_set(out_error, FLY_EEXHAUSTED,
                     "carbon plan: %g s of work do not fit into the time given even without a pause",
                     problem->work_s);
}

struct carbon_mix carbon_pattern_mix(const struct carbon_problem *problem,
                                     const struct carbon_pattern *pattern, size_t span)
{
    struct carbon_problem rates = problem_of(problem, pattern);

    return carbon_solution_mix(&rates, &pattern->solution, pattern->place[span]);
}

bool carbon_pattern_is_over(const struct carbon_pattern *pattern, size_t span)
{
    return pattern->place[span] > pattern->solution.last;
}
