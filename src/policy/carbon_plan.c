/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon_plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "model/units.h"

/* Weights that differ by less are one. */
static const double flat_spread = 1e-3;

/* What rounding may make of a work that fills the time exactly. */
static const double slack = 1e-9;

static const char *const reason_texts[] = {
    [CARBON_FOLLOWS] = "follows the grid",
    [CARBON_KEPT] = "another limit would gain too little",
    [CARBON_DWELLS] = "the limit was changed only now",
    [CARBON_PAUSES] = "pauses",
    [CARBON_UNKNOWN_GRID] = "static limit: nothing is known of the grid",
    [CARBON_STALE_GRID] = "static limit: what is known of the grid is too old",
    [CARBON_FLAT_GRID] = "static limit: the grid is the same all the time",
    [CARBON_NO_GAIN] = "static limit: following the grid would gain too little",
    [CARBON_BEHIND] = "fastest limit, to keep the deadline",
};
_Static_assert(sizeof reason_texts / sizeof reason_texts[0] == CARBON_REASON_COUNT, "a text for each");

/* A question with the spans cut at the deadline and without gaps. */
struct outlook {
    const struct carbon_question *question;
    struct carbon_problem problem;
    bool known; /* at least one weight */
    bool flat;
};

const char *carbon_reason_text(enum carbon_reason reason)
{
    return reason_texts[reason];
}

static bool in_range(double value, double most)
{
    return value >= 0.0 && value <= most;
}

int carbon_plan_init(struct carbon_plan *plan, const struct carbon_plan_settings *settings, size_t capacity,
                     struct fly_error *out_error)
{
    const struct carbon_pause *pause = &settings->pause;
    struct carbon_plan made = {.settings = *settings};
    int code;

    if (!in_range(settings->least_gain, 1.0) || !in_range(settings->doubt, 1.0) ||
        !in_range(settings->dwell_s, HUGE_VAL) ||
        (pause->allowed && (!in_range(pause->idle_w, 1e9) || !in_range(pause->checkpoint_s, 1e9) ||
                            !in_range(pause->least_on_s, 1e9) || !in_range(pause->least_off_s, 1e9))))
        return error_set(out_error, FLY_EUSAGE,
                         "carbon plan: a setting is negative or not a number; expected times, powers and "
                         "shares from 0");
    made.spans = malloc((capacity + 1) * sizeof made.spans[0]);
    if (made.spans == NULL)
        return error_no_memory(out_error);
    code = carbon_workspace_init(&made.workspace, capacity + 1, out_error);
    if (code == 0 && pause->allowed)
        code = carbon_pauser_init(&made.pauser, capacity + 1, out_error);
    if (code < 0)
        carbon_plan_deinit(&made);
    else
        *plan = made;
    return code;
}

void carbon_plan_deinit(struct carbon_plan *plan)
{
    carbon_workspace_deinit(&plan->workspace);
    carbon_pauser_deinit(&plan->pauser);
    free(plan->spans);
    *plan = (struct carbon_plan){0};
}

void carbon_plan_restart(struct carbon_plan *plan)
{
    plan->held_static_w = 0.0;
}

/* Spans up to the deadline; what is not known there gets the mean of what is. */
static struct outlook look(struct carbon_plan *plan, const struct carbon_question *question)
{
    struct outlook outlook = {.question = question, .flat = true};
    double left_s = question->time_s, sum = 0.0, known_s = 0.0, least = INFINITY, most = -INFINITY;
    size_t count = 0;

    for (size_t i = 0; i < question->outlook_count && left_s > 0.0 && count < plan->workspace.capacity - 1;
         i++) {
        struct carbon_span span = question->outlook[i];

        span.duration_s = fmin(span.duration_s, left_s);
        left_s -= span.duration_s;
        if (!isnan(span.weight)) {
            sum += span.weight * span.duration_s;
            known_s += span.duration_s;
            least = fmin(least, span.weight);
            most = fmax(most, span.weight);
        }
        plan->spans[count++] = span;
    }
    if (left_s > question->time_s * slack)
        plan->spans[count++] = (struct carbon_span){left_s, NAN};
    for (size_t i = 0; i < count && known_s > 0.0; i++) {
        if (isnan(plan->spans[i].weight))
            plan->spans[i].weight = sum / known_s;
    }
    for (size_t i = 0; i < count && known_s > 0.0; i++)
        plan->spans[i].weight -= plan->settings.doubt * (plan->spans[i].weight - sum / known_s);
    outlook.known = known_s > 0.0;
    outlook.flat = outlook.known && most - least <= flat_spread * fabs(sum / known_s);
    outlook.problem = (struct carbon_problem){.profile = question->profile,
                                              .spans = plan->spans,
                                              .span_count = count,
                                              .work_s = question->work_s,
                                              .idle_w = NAN};
    return outlook;
}

static const struct carbon_point *find_limit(const struct carbon_profile *profile, double limit_w)
{
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->points[i].limit_w == limit_w)
            return &profile->points[i];
    }
    return NULL;
}

/* Whether the rest can still be done in time after running at a rate for so long. */
static bool leaves_enough(const struct carbon_question *question, double rate, double duration_s)
{
    double spent_s = fmin(duration_s, question->time_s);

    return question->work_s - rate * spent_s <= (question->time_s - spent_s) + question->time_s * slack;
}

/* Weight of running at one point until the work is done. */
static double cost_alone(const struct carbon_problem *problem, const struct carbon_point *point)
{
    double left_s = problem->work_s / point->rate, cost = 0.0;

    for (size_t i = 0; i < problem->span_count && left_s > 0.0; i++) {
        double duration_s = fmin(problem->spans[i].duration_s, left_s);

        cost += problem->spans[i].weight * units_kwh_from_j(point->power_w * duration_s);
        left_s -= duration_s;
    }
    return cost;
}

static void run_alone(struct carbon_decision *decision, const struct carbon_point *point, double duration_s)
{
    decision->first = decision->second = *point;
    decision->first_s = decision->valid_s = duration_s;
}

/* The static limit for the rest; the one that was taken before as long as it is in time. */
static const struct carbon_point *static_limit(const struct carbon_plan *plan,
                                               const struct carbon_question *question)
{
    const struct carbon_profile *profile = question->profile;
    const struct carbon_point *held = find_limit(profile, plan->held_static_w);

    if (held != NULL && question->work_s <= held->rate * question->time_s * (1.0 + slack))
        return held;
    return &profile->points[carbon_profile_static(profile, question->work_s, question->time_s)];
}

/* How a static limit answers. */
static void stay(struct carbon_plan *plan, const struct outlook *outlook, const struct carbon_point *point,
                 enum carbon_reason reason, struct carbon_decision *decision)
{
    plan->held_static_w = point->limit_w;
    run_alone(decision, point, outlook->problem.spans[0].duration_s);
    decision->reason = reason;
    decision->cost = decision->static_cost;
    decision->finish_s = outlook->question->work_s / point->rate;
}

/* The optimum's mixture, made of times that last long enough and leave the rest feasible. */
static void take_turns(const struct carbon_plan *plan, const struct carbon_question *question,
                       const struct carbon_mix *mix, double duration_s, struct carbon_decision *decision)
{
    double dwell_s = plan->settings.dwell_s, high_s = mix->high_share * duration_s, down_s, up_s;

    if (duration_s < 2.0 * dwell_s) {
        down_s = high_s < duration_s ? 0.0 : duration_s;
        up_s = high_s > 0.0 ? duration_s : 0.0;
    } else {
        down_s = high_s < dwell_s ? 0.0 : fmin(high_s, duration_s - dwell_s);
        up_s = high_s > duration_s - dwell_s ? duration_s : fmax(high_s, dwell_s);
        if (high_s <= 0.0)
            up_s = 0.0;
        if (high_s >= duration_s)
            down_s = duration_s;
    }
    if (high_s - down_s > up_s - high_s ||
        !leaves_enough(question,
                       (mix->high.rate * down_s + mix->low.rate * (duration_s - down_s)) / duration_s,
                       duration_s))
        down_s = up_s;
    decision->first = down_s > 0.0 ? mix->high : mix->low;
    decision->second = down_s < duration_s ? mix->low : mix->high;
    decision->first_s = down_s > 0.0 && down_s < duration_s ? down_s : duration_s;
    decision->valid_s = duration_s;
}

/* What a span costs at a point, once the work that it does has its price. */
static double reduced_cost(const struct carbon_point *point, double weight, double price)
{
    return weight * point->power_w - price * point->rate;
}

/* What the optimum does with the first span. */
struct first_span {
    struct carbon_mix mix;
    double weight;
    double duration_s; /* without what restoring takes */
    double price;
    bool last; /* the job ends within it */
};

/* Whether the limit that stands should stay for the whole span. */
static bool is_kept(const struct carbon_plan *plan, const struct carbon_question *question,
                    const struct first_span *span)
{
    const struct carbon_point *now = find_limit(question->profile, question->limit_w);
    double gain;

    if (now == NULL || !leaves_enough(question, now->rate, span->duration_s))
        return false;
    gain = reduced_cost(now, span->weight, span->price) -
           reduced_cost(&span->mix.high, span->weight, span->price);
    return gain < plan->settings.least_gain * fabs(span->weight) * now->power_w;
}

static void follow(struct carbon_plan *plan, const struct carbon_question *question, struct first_span span,
                   struct carbon_decision *decision)
{
    const struct carbon_point *now = find_limit(question->profile, question->limit_w);
    double wait_s = fmin(plan->settings.dwell_s - question->held_s, span.duration_s);

    plan->held_static_w = 0.0;
    decision->reason = CARBON_FOLLOWS;
    if (span.mix.low.rate <= 0.0 && span.last)
        span.mix.low = span.mix.high;
    if (now != NULL && wait_s > 0.0 && leaves_enough(question, now->rate, wait_s)) {
        run_alone(decision, now, wait_s);
        decision->reason = CARBON_DWELLS;
    } else if (now != NULL && is_kept(plan, question, &span)) {
        run_alone(decision, now, span.duration_s);
        decision->reason = CARBON_KEPT;
    } else {
        take_turns(plan, question, &span.mix, span.duration_s, decision);
    }
    decision->first_s += decision->restore_s;
    decision->valid_s += decision->restore_s;
}

/* The optimum without pauses, or with such as cost nothing. */
static int plan_rates(struct carbon_plan *plan, struct outlook *outlook, struct carbon_decision *decision,
                      struct first_span *span, struct fly_error *out_error)
{
    const struct carbon_pause *pause = &plan->settings.pause;
    struct carbon_solution solution;
    int code;

    if (pause->allowed)
        outlook->problem.idle_w = pause->idle_w * outlook->problem.profile->pue;
    code = carbon_solve(&plan->workspace, &outlook->problem, &solution, out_error);
    if (code < 0)
        return code;
    span->last = solution.last == 0;
    decision->cost = solution.cost;
    decision->finish_s = solution.finish_s;
    span->mix = carbon_solution_mix(&outlook->problem, &solution, 0);
    span->price = solution.price;
    return 0;
}

/* The same with pauses; a mixture of nothing is one. */
static int plan_pauses(struct carbon_plan *plan, struct outlook *outlook, struct carbon_decision *decision,
                       struct first_span *span, struct fly_error *out_error)
{
    const struct carbon_question *question = outlook->question;
    const struct carbon_pause *pause = &plan->settings.pause;
    struct carbon_pause_now now = {.paused = question->limit_w == 0.0, .held_s = question->held_s};
    const struct carbon_pattern *best = &plan->pauser.best;
    double before_s = 0.0;
    int code;

    if (isnan(question->limit_w))
        now.held_s = INFINITY;
    outlook->problem.idle_w = pause->idle_w * question->profile->pue;
    code = carbon_pause_solve(&plan->pauser, &plan->workspace, &outlook->problem, pause, &now, out_error);
    if (code < 0)
        return code;
    decision->cost = best->cost;
    for (size_t i = 0; i < outlook->problem.span_count && !carbon_pattern_is_over(best, i); i++)
        before_s += best->on[i] ? best->lost_s[i] : outlook->problem.spans[i].duration_s;
    decision->finish_s = best->solution.finish_s + before_s;
    if (!best->on[0])
        return 0;
    decision->restore_s = best->lost_s[0];
    span->mix = carbon_pattern_mix(&outlook->problem, best, 0);
    span->price = best->solution.price;
    span->last = carbon_pattern_is_over(best, 1);
    span->duration_s -= best->lost_s[0];
    return 0;
}

/* Follows the optimum, or stays where that gains too little. */
static int follow_optimum(struct carbon_plan *plan, struct outlook *outlook, const struct carbon_point *held,
                          struct carbon_decision *decision, struct fly_error *out_error)
{
    struct first_span span = {.duration_s = plan->spans[0].duration_s, .weight = plan->spans[0].weight};
    const struct carbon_pause *pause = &plan->settings.pause;
    int code = pause->allowed && !carbon_pause_is_free(pause)
                   ? plan_pauses(plan, outlook, decision, &span, out_error)
                   : plan_rates(plan, outlook, decision, &span, out_error);

    if (code < 0)
        return code;
    if (decision->static_cost - decision->cost <= plan->settings.least_gain * fabs(decision->static_cost)) {
        stay(plan, outlook, held, CARBON_NO_GAIN, decision);
    } else if (span.mix.high.rate <= 0.0) {
        const struct carbon_point idle = {.power_w = outlook->problem.idle_w};

        plan->held_static_w = 0.0;
        run_alone(decision, &idle, span.duration_s);
        decision->reason = CARBON_PAUSES;
    } else if (span.duration_s <= 0.0) {
        const struct carbon_profile *profile = outlook->question->profile;

        run_alone(decision, &profile->points[profile->fastest], decision->restore_s);
    } else {
        follow(plan, outlook->question, span, decision);
    }
    return 0;
}

int carbon_plan_decide(struct carbon_plan *plan, const struct carbon_question *question,
                       struct carbon_decision *out_decision, struct fly_error *out_error)
{
    struct carbon_decision decision = {.cost = NAN, .static_cost = NAN, .finish_s = NAN};
    const struct carbon_point *fastest = &question->profile->points[question->profile->fastest], *held;
    struct outlook outlook;
    double restore_s = question->limit_w == 0.0 ? plan->settings.pause.checkpoint_s : 0.0;
    int code = 0;

    if (!(question->work_s > 0.0) || !isfinite(question->work_s) || isnan(question->time_s))
        return error_set(out_error, FLY_EUSAGE,
                         "carbon plan: %g s of work in %g s: expected work above 0 and a time",
                         question->work_s, question->time_s);
    if (question->work_s + restore_s >= question->time_s * (1.0 - slack)) {
        run_alone(&decision, fastest, question->work_s + restore_s);
        decision.restore_s = restore_s;
        decision.reason = CARBON_BEHIND;
        decision.finish_s = question->work_s;
        *out_decision = decision;
        return 0;
    }
    outlook = look(plan, question);
    held = static_limit(plan, question);
    if (outlook.known)
        decision.static_cost = cost_alone(&outlook.problem, held);
    if (!outlook.known || question->stale || outlook.flat)
        stay(plan, &outlook, held,
             !outlook.known    ? CARBON_UNKNOWN_GRID
             : question->stale ? CARBON_STALE_GRID
                               : CARBON_FLAT_GRID,
             &decision);
    else
        code = follow_optimum(plan, &outlook, held, &decision, out_error);
    if (code == 0)
        *out_decision = decision;
    return code;
}
