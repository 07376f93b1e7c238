/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/units.h"
#include "policy/carbon/carbon_schedule.h"

/*
 * The exact optimum of the rest of a job (carbon_solver.h, carbon_pause.h), in the form from
 * which the plan makes its schedule: the part up to the first pause that costs something, when
 * that part ends, and the price of work there. Pure.
 */
struct carbon_optimum {
    struct carbon_problem problem; /* of that part */
    double finish_s, price;
    struct carbon_mix mix; /* of the first span; at rate 0 the job pauses */
    double lost_s;         /* until a paused job runs again */
    double cost;           /* of the whole rest; NaN: only the schedule's cost is known */
    double whole_finish_s; /* of the whole rest */
};

/* Returns whether a pause costs time or has a least duration. */
static inline bool carbon_optimum_is_priced(const struct carbon_plan *plan)
{
    return plan->settings.pause.allowed && !carbon_pause_is_free(&plan->settings.pause);
}

/* Finds the optimum without pauses, or with pauses that cost nothing. */
static int plan_rates(struct carbon_plan *plan, struct carbon_problem *problem,
                      struct carbon_optimum *optimum, struct fly_error *out_error)
{
    const struct carbon_pause *pause = &plan->settings.pause;
    struct carbon_solution solution;
    int code;

    if (pause->allowed)
        problem->idle_w = pause->idle_w * problem->profile->pue;
    code = carbon_solve(&plan->workspace, problem, &solution, out_error);
    if (code < 0)
        return code;
    *optimum = (struct carbon_optimum){.problem = *problem,
                                       .finish_s = solution.finish_s,
                                       .price = solution.price,
                                       .mix = carbon_solution_mix(problem, &solution, 0),
                                       .cost = NAN};
    return 0;
}

/* Takes the spans before the first pause, and the work in them. */
static void take_first_run(const struct carbon_problem *whole, const struct carbon_pattern *best,
                           struct carbon_optimum *optimum)
{
    struct carbon_problem *problem = &optimum->problem;
    double work_s = 0.0;
    size_t first_off = 0;

    while (first_off < whole->span_count && best->on[first_off])
        first_off++;
    problem->spans = best->spans;
    problem->span_count = best->place[first_off];
    problem->idle_w = NAN;
    if (best->solution.last < problem->span_count) {
        optimum->finish_s = best->solution.finish_s;
        return;
    }
    for (size_t i = 0; i < first_off; i++) {
        struct carbon_mix mix = carbon_pattern_mix(whole, best, i);
        double rate = mix.low.rate + (mix.high.rate - mix.low.rate) * mix.high_share;
        double duration_s = whole->spans[i].duration_s - best->lost_s[i];

        optimum->finish_s += duration_s;
        work_s += rate * duration_s;
    }
    problem->work_s = work_s;
}

/* Finds the optimum with pauses; a mixture with rate 0 means that the job pauses. */
static int plan_pauses(struct carbon_plan *plan, const struct carbon_question *question,
                       struct carbon_problem *problem, struct carbon_optimum *optimum,
                       struct fly_error *out_error)
{
    const struct carbon_pause *pause = &plan->settings.pause;
    struct carbon_pause_now now = {.paused = question->limit_w == 0.0, .held_s = question->held_s};
    const struct carbon_pattern *best = &plan->pauser.best;
    int code;

    if (isnan(question->limit_w))
        now.held_s = INFINITY;
    problem->idle_w = pause->idle_w * question->profile->pue;
    code = carbon_pause_solve(&plan->pauser, &plan->workspace, problem, pause, &now, out_error);
    if (code < 0)
        return code;
    *optimum = (struct carbon_optimum){.problem = *problem, .cost = best->cost};
    for (size_t i = 0; i < problem->span_count && !carbon_pattern_is_over(best, i); i++)
        optimum->whole_finish_s += best->on[i] ? best->lost_s[i] : problem->spans[i].duration_s;
    optimum->whole_finish_s += best->solution.finish_s;
    if (!best->on[0])
        return 0;
    optimum->lost_s = best->lost_s[0];
    optimum->mix = carbon_pattern_mix(problem, best, 0);
    optimum->price = best->solution.price;
    take_first_run(problem, best, optimum);
    return 0;
}

/*
 * Solves a problem and fills in its idle_w. Uses the memory of the plan. FLY_EEXHAUSTED if the
 * work cannot be done in time.
 */
static int carbon_optimum_find(struct carbon_plan *plan, const struct carbon_question *question,
                               struct carbon_problem *problem, struct carbon_optimum *out_optimum,
                               struct fly_error *out_error)
{
    return carbon_optimum_is_priced(plan) ? plan_pauses(plan, question, problem, out_optimum, out_error)
                                          : plan_rates(plan, problem, out_optimum, out_error);
}

/* Weights that differ by less than this share count as equal. */
static const double flat_spread = 1e-3;

/* Rounding may change a work that fills the time exactly. */
static const double slack = 1e-9;

/* Leaving a limit before its dwell is over has to gain this share of what a dwell takes. */
static const double haste = 0.01;

/* In jobs of up to half a day, doubt is greater by this share. */
static const double half_day_s = 43200.0, more_doubt = 2.0 / 3.0;

static const char *const reason_texts[] = {
    [CARBON_FOLLOWS] = "follows the grid",
    [CARBON_KEPT] = "another limit would gain too little",
    [CARBON_DWELLS] = "the limit was changed only now, and another would gain too little",
    [CARBON_PAUSES] = "pauses",
    [CARBON_TAKES_TURNS] = "two limits one after the other: the grid is the same all the time",
    [CARBON_UNKNOWN_GRID] = "static limit: nothing is known of the grid",
    [CARBON_STALE_GRID] = "static limit: what is known of the grid is too old",
    [CARBON_SCARCE_GRID] = "static limit: too little is known of the grid to foretell it",
    [CARBON_FLAT_GRID] = "static limit: the grid is the same all the time",
    [CARBON_NO_GAIN] = "static limit: following the grid would gain too little",
    [CARBON_BEHIND] = "fastest limit, to keep the deadline",
};
_Static_assert(sizeof reason_texts / sizeof reason_texts[0] == CARBON_REASON_COUNT, "a text for each");

/* A question, with its spans cut at the deadline and without gaps. */
struct outlook {
    const struct carbon_question *question;
    struct carbon_problem problem;
    bool known; /* at least one weight is known */
    bool flat;  /* and so it was whenever this job looked */
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
    made.raw_weights = malloc((capacity + 1) * sizeof made.raw_weights[0]);
    code = carbon_scheduler_init(&made.scheduler, capacity + 1, out_error);
    if (code == 0)
        made.held.legs = malloc(made.scheduler.capacity * sizeof made.held.legs[0]);
    if (code == 0 && (made.spans == NULL || made.raw_weights == NULL || made.held.legs == NULL))
        code = error_no_memory(out_error);
    if (code == 0)
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
    carbon_scheduler_deinit(&plan->scheduler);
    free(plan->spans);
    free(plan->raw_weights);
    free(plan->held.legs);
    *plan = (struct carbon_plan){0};
}

void carbon_plan_restart(struct carbon_plan *plan)
{
    plan->held_static_w = 0.0;
    plan->held.count = 0;
    plan->whole_s = 0.0;
    plan->varied = false;
}

/* Over a day and more the errors of a forecast average out; over half a day and less they do not. */
static double doubt_of(const struct carbon_plan *plan)
{
    double shortness = fmin(fmax(2.0 - plan->whole_s / half_day_s, 0.0), 1.0);

    return fmin(plan->settings.doubt * (1.0 + shortness * more_doubt), 1.0);
}

/* Takes the spans up to the deadline; unknown weights get the mean of the known ones. */
static struct outlook look(struct carbon_plan *plan, const struct carbon_question *question)
{
    struct outlook outlook = {.question = question, .flat = true};
    double left_s = question->time_s, sum = 0.0, known_s = 0.0, least = INFINITY, most = -INFINITY;
    double doubt = doubt_of(plan);
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
    for (size_t i = 0; i < count && known_s > 0.0; i++) {
        plan->raw_weights[i] = plan->spans[i].weight;
        plan->spans[i].weight -= doubt * (plan->spans[i].weight - sum / known_s);
    }
    outlook.known = known_s > 0.0;
    /* The last period of a job is flat by itself; the reason speaks of the whole job. */
    plan->varied = plan->varied || (outlook.known && most - least > flat_spread * fabs(sum / known_s));
    outlook.flat = outlook.known && !plan->varied;
    outlook.problem = (struct carbon_problem){.profile = question->profile,
                                              .spans = plan->spans,
                                              .span_count = count,
                                              .work_s = question->work_s,
                                              .idle_w = NAN};
    return outlook;
}

/* Returns why the plan does not follow what is known of the grid. */
static enum carbon_reason distrust(const struct outlook *outlook)
{
    if (!outlook->known)
        return CARBON_UNKNOWN_GRID;
    return outlook->question->scarce ? CARBON_SCARCE_GRID : CARBON_STALE_GRID;
}

static const struct carbon_point *find_limit(const struct carbon_profile *profile, double limit_w)
{
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->points[i].limit_w == limit_w)
            return &profile->points[i];
    }
    return NULL;
}

/* Returns the weight of running at one point until the work is done. */
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

/* Returns the static limit for the rest: the one taken before as long as it is in time. */
static const struct carbon_point *static_limit(const struct carbon_plan *plan,
                                               const struct carbon_question *question)
{
    const struct carbon_profile *profile = question->profile;
    const struct carbon_point *held = find_limit(profile, plan->held_static_w);

    if (held != NULL && question->work_s <= held->rate * question->time_s * (1.0 + slack))
        return held;
    return &profile->points[carbon_profile_static(profile, question->work_s, question->time_s)];
}

/* Answers with a static limit. */
static void stay(struct carbon_plan *plan, const struct outlook *outlook, const struct carbon_point *point,
                 enum carbon_reason reason, struct carbon_decision *decision)
{
    plan->held_static_w = point->limit_w;
    plan->held.count = 0;
    run_alone(decision, point, outlook->problem.spans[0].duration_s);
    decision->reason = reason;
    decision->cost = decision->static_cost;
    decision->finish_s = outlook->question->work_s / point->rate;
}

/*
 * Returns the limit in force and what changing it costs: shares of what a dwell takes at the
 * fastest limit.
 */
static struct carbon_standing standing_of(const struct carbon_plan *plan, const struct outlook *outlook,
                                          struct carbon_point *room)
{
    const struct carbon_question *question = outlook->question;
    const struct carbon_profile *profile = question->profile;
    const struct carbon_point *point = find_limit(profile, question->limit_w);
    double sum = 0.0, time_s = 0.0, dwell_cost;

    for (size_t i = 0; i < outlook->problem.span_count; i++) {
        sum += fabs(plan->spans[i].weight) * plan->spans[i].duration_s;
        time_s += plan->spans[i].duration_s;
    }
    dwell_cost =
        sum / time_s * units_kwh_from_j(profile->points[profile->fastest].power_w * plan->settings.dwell_s);
    if (question->limit_w == 0.0 && !isnan(outlook->problem.idle_w)) {
        *room = (struct carbon_point){.power_w = outlook->problem.idle_w};
        point = room;
    }
    return (struct carbon_standing){.point = point,
                                    .held_s = question->held_s,
                                    .dwell_s = plan->settings.dwell_s,
                                    .change_cost = plan->settings.least_gain * dwell_cost,
                                    .haste_cost = haste * dwell_cost};
}

/* Keeps what is left of the schedule that was decided on. */
static void move_held(struct carbon_plan *plan, const struct carbon_question *question)
{
    double passed_s = fmax(plan->held_time_s - question->time_s, 0.0);
    struct carbon_legs *held = &plan->held;
    size_t over = 0;

    while (over + 1 < held->count && held->legs[over].duration_s <= passed_s + slack)
        passed_s -= held->legs[over++].duration_s;
    if (held->count == 0)
        return;
    held->count -= over;
    memmove(held->legs, held->legs + over, held->count * sizeof held->legs[0]);
    held->legs[0].duration_s = fmax(held->legs[0].duration_s - passed_s, slack);
    plan->held_time_s = question->time_s;
}

static void hold(struct carbon_plan *plan, const struct carbon_legs *legs, double time_s)
{
    memmove(plan->held.legs, legs->legs, legs->count * sizeof legs->legs[0]);
    plan->held.count = legs->count;
    plan->held_time_s = time_s;
    plan->held_static_w = 0.0;
}

/* Compares by the plan's weights and by the outlook's weights, to which no doubt was applied. */
static bool is_better(const struct carbon_legs_sum *sum, double cost, double raw_cost)
{
    return sum->feasible && sum->cost < cost && sum->raw_cost <= raw_cost + fabs(raw_cost) * slack;
}

static enum carbon_reason reason_of(const struct carbon_plan *plan, const struct outlook *outlook,
                                    const struct carbon_optimum *optimum, const struct carbon_legs *legs)
{
    const struct carbon_question *question = outlook->question;
    double limit_w = legs->legs[0].point.limit_w;

    if (limit_w == 0.0)
        return CARBON_PAUSES;
    if (outlook->flat)
        return CARBON_TAKES_TURNS;
    if (limit_w != question->limit_w || limit_w == optimum->mix.low.limit_w ||
        limit_w == optimum->mix.high.limit_w)
        return CARBON_FOLLOWS;
    return question->held_s < plan->settings.dwell_s ? CARBON_DWELLS : CARBON_KEPT;
}

/* Answers with the first part of a schedule: up to the end of the span, or of its second leg. */
static void answer(const struct carbon_legs *legs, double span_s, double lost_s,
                   struct carbon_decision *decision)
{
    run_alone(decision, &legs->legs[0].point, span_s);
    if (legs->count > 1 && legs->legs[0].duration_s < span_s) {
        decision->first_s = legs->legs[0].duration_s;
        decision->second = legs->legs[1].point;
        if (legs->count > 2)
            decision->valid_s = fmin(span_s, decision->first_s + legs->legs[1].duration_s);
    }
    decision->restore_s = lost_s;
    decision->first_s += lost_s;
    decision->valid_s += lost_s;
}

/*
 * Chooses the best of three: the schedule that was decided on, a new one, and the static limit.
 * It takes another one only if that is no worse by what is known now, so the first decision
 * bounds the result.
 */
static void choose(struct carbon_plan *plan, const struct outlook *outlook,
                   const struct carbon_optimum *optimum, const struct carbon_point *held,
                   struct carbon_decision *decision)
{
    struct carbon_point room;
    struct carbon_leg alone = {*held, INFINITY};
    const struct carbon_legs static_legs = {&alone, 1}, *best = &plan->held;
    struct carbon_schedule_request request = {.problem = &optimum->problem,
                                              .raw_weights = plan->raw_weights,
                                              .standing = standing_of(plan, outlook, &room),
                                              .finish_s = optimum->finish_s,
                                              .price = optimum->price};
    struct carbon_legs_sum unchanged = carbon_schedule_sum(&request, &static_legs), sum = {.feasible = false};
    struct carbon_legs_sum made = carbon_schedule_make(&plan->scheduler, &request);

    move_held(plan, outlook->question);
    if (plan->held.count > 0)
        sum = carbon_schedule_sum(&request, &plan->held);
    if (sum.feasible ? is_better(&made, sum.cost, sum.raw_cost)
                     : is_better(&made, unchanged.cost - plan->settings.least_gain * fabs(unchanged.own_cost),
                                 unchanged.raw_cost)) {
        sum = made;
        best = &plan->scheduler.best;
    }
    if (!sum.feasible || is_better(&unchanged, sum.cost, sum.raw_cost)) {
        stay(plan, outlook, held, outlook->flat ? CARBON_FLAT_GRID : CARBON_NO_GAIN, decision);
        return;
    }
    hold(plan, best, outlook->question->time_s);
    decision->cost = sum.own_cost;
    decision->finish_s = sum.finish_s;
    decision->reason = reason_of(plan, outlook, optimum, best);
    answer(best, plan->spans[0].duration_s, 0.0, decision);
}

/* Schedules a run between two pauses. */
static void run_between(struct carbon_plan *plan, const struct outlook *outlook,
                        const struct carbon_optimum *optimum, struct carbon_decision *decision)
{
    const struct carbon_profile *profile = outlook->question->profile;
    struct carbon_point room;
    const struct carbon_schedule_request request = {.problem = &optimum->problem,
                                                    .standing = standing_of(plan, outlook, &room),
                                                    .finish_s = optimum->finish_s,
                                                    .price = optimum->price};
    double span_s = plan->spans[0].duration_s - optimum->lost_s;
    struct carbon_legs *best = &plan->scheduler.best;

    plan->held_static_w = 0.0;
    if (span_s <= 0.0) {
        run_alone(decision, &profile->points[profile->fastest], optimum->lost_s);
        decision->restore_s = optimum->lost_s;
        return;
    }
    if (!carbon_schedule_make(&plan->scheduler, &request).feasible) {
        best->legs[0] = (struct carbon_leg){profile->points[profile->fastest], span_s};
        best->count = 1;
    }
    decision->reason = reason_of(plan, outlook, optimum, best);
    answer(best, span_s, optimum->lost_s, decision);
}

/* Follows the optimum, or stays if that gains too little. */
static int follow_optimum(struct carbon_plan *plan, struct outlook *outlook, const struct carbon_point *held,
                          struct carbon_decision *decision, struct fly_error *out_error)
{
    struct carbon_optimum optimum;
    int code = carbon_optimum_find(plan, outlook->question, &outlook->problem, &optimum, out_error);

    if (code < 0)
        return code;
    if (!carbon_optimum_is_priced(plan)) {
        choose(plan, outlook, &optimum, held, decision);
        return 0;
    }
    decision->cost = optimum.cost;
    decision->finish_s = optimum.whole_finish_s;
    if (decision->static_cost - decision->cost <= plan->settings.least_gain * fabs(decision->static_cost)) {
        stay(plan, outlook, held, outlook->flat ? CARBON_FLAT_GRID : CARBON_NO_GAIN, decision);
    } else if (optimum.mix.high.rate <= 0.0) {
        const struct carbon_point idle = {.power_w = outlook->problem.idle_w};

        plan->held_static_w = 0.0;
        run_alone(decision, &idle, plan->spans[0].duration_s);
        decision->reason = CARBON_PAUSES;
    } else {
        run_between(plan, outlook, &optimum, decision);
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
    plan->whole_s = fmax(plan->whole_s, question->time_s);
    outlook = look(plan, question);
    held = static_limit(plan, question);
    if (outlook.known)
        decision.static_cost = cost_alone(&outlook.problem, held);
    if (!outlook.known || question->stale)
        stay(plan, &outlook, held, distrust(&outlook), &decision);
    else
        code = follow_optimum(plan, &outlook, held, &decision, out_error);
    if (code == 0)
        *out_decision = decision;
    return code;
}
