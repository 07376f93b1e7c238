/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/carbon_job.h"

#include <math.h>

#include "base/error.h"
#include "model/units.h"
#include "sim/carbon/carbon_outlook.h"

const char *const carbon_policy_names[CARBON_POLICY_COUNT + 1] = {
    [CARBON_POLICY_MAX] = "max",   [CARBON_POLICY_STATIC] = "static",
    [CARBON_POLICY_MIX] = "mix",   [CARBON_POLICY_PUBLISHED] = "published",
    [CARBON_POLICY_PLAN] = "plan", [CARBON_POLICY_FORESIGHT] = "foresight",
};

static const double work_slack = 1e-9;

enum { RULE_LOOKS_BACK_S = 8 * 86400 };

/* A job under way. */
struct running {
    const struct carbon_world *world;
    int64_t start_s;
    double now_s;   /* since its start */
    double left_s;  /* of the work */
    double limit_w; /* NaN before the first */
    double held_s;
    double known_j;
    struct carbon_outcome outcome;
};

/* Returns the next border of any figure's period, from the job's start. */
static double next_border(const struct running *job)
{
    double next_s = INFINITY;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_truth *truth = job->world->truths[i];

        if (truth != NULL) {
            size_t at = grid_truth_find(truth, (double)job->start_s + job->now_s);

            next_s = fmin(next_s, (double)(truth->periods[at].end_s - job->start_s));
        }
    }
    return next_s > job->now_s ? next_s : INFINITY;
}

/* Counts what is drawn within one period of each figure. */
static void count(struct running *job, double power_w, double duration_s)
{
    const struct carbon_world *world = job->world;
    double energy_j = power_w * duration_s, now_s = (double)job->start_s + job->now_s;
    bool known = world->truths[CARBON_INTENSITY] != NULL;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct truth_period *period;
        double amount;

        if (world->truths[i] == NULL)
            continue;
        period = &world->truths[i]->periods[grid_truth_find(world->truths[i], now_s)];
        amount = units_kwh_from_j(energy_j) * period->value;
        if (i == CARBON_INTENSITY) {
            job->outcome.grams += amount;
            known = period->known;
        } else {
            job->outcome.money += amount;
        }
    }
    job->outcome.energy_j += energy_j;
    job->known_j += known ? energy_j : 0.0;
}

/* Spends a time at a power, split at the borders of periods. */
static void spend(struct running *job, double power_w, double host_w, double duration_s)
{
    double until_s = job->now_s + duration_s;

    while (job->now_s < until_s) {
        double piece_s = fmin(until_s, next_border(job)) - job->now_s;

        count(job, power_w, piece_s);
        job->outcome.gpu_energy_j += (power_w / job->world->pue - host_w) * piece_s;
        job->now_s = piece_s > 0.0 ? job->now_s + piece_s : until_s;
    }
}

/* Spends the cost of a pause, when it is over. */
static void restore(struct running *job)
{
    const struct carbon_profile *profile = job->world->profile;

    spend(job, profile->points[profile->fastest].power_w, job->world->host_w,
          job->world->plan.pause.checkpoint_s);
}

/* Runs at a point for at most that time or until the work is done, across borders of periods. */
static void run_at(struct running *job, const struct carbon_point *point, double duration_s)
{
    double until_s = job->now_s + duration_s;
    double host_w = point->limit_w > 0.0 ? job->world->host_w : 0.0;

    if (job->limit_w == 0.0 && point->limit_w > 0.0)
        restore(job);
    if (point->limit_w != job->limit_w) {
        job->outcome.changes += !isnan(job->limit_w);
        job->outcome.pauses += point->limit_w == 0.0 && !isnan(job->limit_w);
        job->held_s = 0.0;
        job->limit_w = point->limit_w;
    }
    while (job->now_s < until_s && job->left_s > 0.0) {
        double piece_s = fmin(until_s, next_border(job)) - job->now_s;
        bool done = point->rate * piece_s >= job->left_s * (1.0 - work_slack);

        if (done)
            piece_s = job->left_s / point->rate;
        count(job, point->power_w, piece_s);
        job->outcome.gpu_energy_j += (point->power_w / job->world->pue - host_w) * piece_s;
        job->now_s = !done && job->now_s + piece_s > until_s ? until_s : job->now_s + piece_s;
        job->held_s += piece_s;
        job->outcome.paused_s += point->limit_w == 0.0 ? piece_s : 0.0;
        job->left_s = done ? 0.0 : job->left_s - point->rate * piece_s;
    }
}

static void run_single(struct running *job, size_t point)
{
    run_at(job, &job->world->profile->points[point], INFINITY);
}

/* Runs at one limit between the two, as if they alternated in turns too short to count. */
static void run_constant(struct running *job)
{
    const struct carbon_world *world = job->world;
    struct carbon_mix mix = carbon_profile_mix(world->profile, world->work_s, world->bound_s);
    struct carbon_point point = carbon_mix_point(&mix);

    run_at(job, &point, INFINITY);
}

static void run_rule(struct running *job, struct carbon_worker *worker)
{
    const struct carbon_world *world = job->world;
    struct carbon_rule rule = world->rule;

    while (job->left_s > 0.0) {
        double now_s = (double)job->start_s + job->now_s;
        double next = carbon_outlook_next(worker, job->start_s, job->now_s);

        if (world->rule_is_scaled)
            rule.max_carbon =
                carbon_outlook_most(world->answers[CARBON_INTENSITY], (int64_t)now_s, RULE_LOOKS_BACK_S);
        job->outcome.decisions++;
        run_at(job, &world->profile->points[carbon_rule_choose(&rule, world->bare, next)],
               next_border(job) - job->now_s);
    }
}

static int run_plan(struct running *job, struct carbon_worker *worker, struct fly_error *out_error)
{
    const struct carbon_world *world = job->world;
    int code = 0;

    carbon_plan_restart(&worker->plan);
    while (job->left_s > 0.0 && code == 0) {
        struct carbon_question question = {
            .profile = world->profile,
            .outlook = worker->outlook.spans,
            .work_s = job->left_s,
            .time_s = world->bound_s - job->now_s,
            .limit_w = job->limit_w,
            .held_s = job->held_s,
        };
        struct carbon_decision decision;

        carbon_outlook_foretell(worker, job->start_s, job->now_s);
        question.outlook_count = worker->outlook.count;
        code = carbon_plan_decide(&worker->plan, &question, &decision, out_error);
        if (code < 0)
            break;
        job->outcome.decisions++;
        run_at(job, &decision.first, decision.first_s - decision.restore_s);
        if (decision.valid_s > decision.first_s)
            run_at(job, &decision.second, decision.valid_s - decision.first_s);
    }
    return code;
}

/* Runs at two limits in turns. A limit without a rate means a pause or, in the last span, nothing. */
static void run_mix(struct running *job, const struct carbon_mix *mix, double duration_s, bool last)
{
    double high_s = mix->high_share * duration_s;

    if (high_s > 0.0 && (mix->high.rate > 0.0 || !last))
        run_at(job, &mix->high, high_s);
    if (high_s < duration_s && (mix->low.rate > 0.0 || !last))
        run_at(job, &mix->low, duration_s - high_s);
}

static int foresee_pauses(struct running *job, struct carbon_worker *worker,
                          const struct carbon_problem *problem, struct fly_error *out_error)
{
    struct carbon_pauser *pauser = &worker->plan.pauser;
    const struct carbon_pause_now now = {.paused = false, .held_s = INFINITY};
    const struct carbon_point idle = {.power_w = problem->idle_w};
    int code = carbon_pause_solve(pauser, &worker->plan.workspace, problem, &worker->plan.settings.pause,
                                  &now, out_error);

    for (size_t i = 0; i < problem->span_count && code == 0; i++) {
        struct carbon_mix mix;

        if (carbon_pattern_is_over(&pauser->best, i))
            break;
        if (!pauser->best.on[i]) {
            run_at(job, &idle, problem->spans[i].duration_s);
            continue;
        }
        if (pauser->best.lost_s[i] >= problem->spans[i].duration_s)
            continue; /* restoring takes all of the pause, and is spent with what follows */
        mix = carbon_pattern_mix(problem, &pauser->best, i);
        run_mix(job, &mix, problem->spans[i].duration_s - pauser->best.lost_s[i],
                carbon_pattern_is_over(&pauser->best, i + 1));
    }
    return code;
}

static int foresee_rates(struct running *job, struct carbon_worker *worker,
                         const struct carbon_problem *problem, struct fly_error *out_error)
{
    struct carbon_solution solution;
    int code = carbon_solve(&worker->plan.workspace, problem, &solution, out_error);

    for (size_t i = 0; code == 0 && i <= solution.last; i++) {
        struct carbon_mix mix = carbon_solution_mix(problem, &solution, i);

        run_mix(job, &mix, problem->spans[i].duration_s, i == solution.last);
    }
    return code;
}

static int run_foresight(struct running *job, struct carbon_worker *worker, struct fly_error *out_error)
{
    const struct carbon_world *world = job->world;
    const struct carbon_pause *pause = &world->plan.pause;
    struct carbon_problem problem = {
        .profile = world->profile, .spans = worker->outlook.spans, .work_s = world->work_s, .idle_w = NAN};
    int code;

    carbon_outlook_know(worker, job->start_s);
    problem.span_count = worker->outlook.count;
    if (pause->allowed)
        problem.idle_w = pause->idle_w * world->pue;
    code = pause->allowed && !carbon_pause_is_free(pause) ? foresee_pauses(job, worker, &problem, out_error)
                                                          : foresee_rates(job, worker, &problem, out_error);
    /* Removes what rounding left over. */
    job->left_s = 0.0;
    job->outcome.decisions = 1;
    return code;
}

int carbon_worker_init(struct carbon_worker *worker, const struct carbon_world *world,
                       struct fly_error *out_error)
{
    struct carbon_worker made = {.world = world};
    size_t capacity = carbon_outlook_capacity(world);
    int code = grid_outlook_init(&made.outlook, capacity, out_error);

    if (code < 0)
        return code;
    code = carbon_plan_init(&made.plan, &world->plan, capacity, out_error);
    if (code < 0) {
        grid_outlook_deinit(&made.outlook);
        return code;
    }
    *worker = made;
    return 0;
}

void carbon_worker_deinit(struct carbon_worker *worker)
{
    carbon_plan_deinit(&worker->plan);
    grid_outlook_deinit(&worker->outlook);
}

int carbon_job_run(struct carbon_worker *worker, enum carbon_policy policy, int64_t start_s,
                   struct carbon_outcome *out_outcome, struct fly_error *out_error)
{
    const struct carbon_world *world = worker->world;
    struct running job = {.world = world, .start_s = start_s, .left_s = world->work_s, .limit_w = NAN};
    int code = 0;

    switch (policy) {
    case CARBON_POLICY_MAX:
        run_single(&job, world->profile->fastest);
        break;
    case CARBON_POLICY_STATIC:
        run_single(&job, carbon_profile_static(world->profile, world->work_s, world->bound_s));
        break;
    case CARBON_POLICY_MIX:
        run_constant(&job);
        break;
    case CARBON_POLICY_PUBLISHED:
        run_rule(&job, worker);
        break;
    case CARBON_POLICY_PLAN:
        code = run_plan(&job, worker, out_error);
        break;
    default:
        code = run_foresight(&job, worker, out_error);
        break;
    }
    if (code < 0)
        return code;
    job.outcome.time_s = job.now_s;
    job.outcome.late = job.now_s > world->bound_s * (1.0 + work_slack);
    job.outcome.known_share = job.outcome.energy_j > 0.0 ? job.known_j / job.outcome.energy_j : 0.0;
    if (world->truths[CARBON_INTENSITY] == NULL)
        job.outcome.grams = NAN;
    if (world->truths[CARBON_PRICE] == NULL)
        job.outcome.money = NAN;
    *out_outcome = job.outcome;
    return 0;
}
