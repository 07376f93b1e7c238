/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/carbon_job.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "base/math/philox.h"
#include "model/units.h"

/* ---- the grid without gaps ---- */

enum { DAY_S = 86400, PERIODS_MAX = 1 << 21 };

/* Returns the period that holds a moment; after the end, the last one. */
static const struct grid_period *truth_at(const struct grid_series *truth, double time_s)
{
    size_t at = grid_series_find(truth, (int64_t)floor(time_s));

    return &truth->periods[at < truth->count ? at : truth->count - 1];
}

static int add(struct grid_series *truth, int64_t start_s, int64_t end_s, double value,
               struct fly_error *out_error)
{
    const struct grid_period period = {.start_s = start_s, .end_s = end_s, .value = value};

    return grid_series_add(truth, &period, out_error);
}

/* Fills a time without record, in steps of the usual length. */
static int add_gap(struct grid_series *truth, int64_t start_s, int64_t end_s, int64_t step_s,
                   struct fly_error *out_error)
{
    int code = 0;

    for (; code == 0 && start_s < end_s; start_s += step_s)
        code = add(truth, start_s, start_s + step_s < end_s ? start_s + step_s : end_s, NAN, out_error);
    return code;
}

/* Returns the value on the line between the known neighbours, or the one neighbour that is known. */
static double between(const struct grid_series *truth, const struct grid_period *at)
{
    const struct grid_period *first = truth->periods, *last = first + truth->count - 1;
    const struct grid_period *before = at, *after = at;

    while (before > first && before->quality == GRID_UNKNOWN)
        before--;
    while (after < last && after->quality == GRID_UNKNOWN)
        after++;
    if (before->quality == GRID_UNKNOWN)
        before = after;
    if (after->quality == GRID_UNKNOWN)
        after = before;
    if (after == before)
        return before->value;
    return before->value + (double)(at->start_s - before->start_s) /
                               (double)(after->start_s - before->start_s) * (after->value - before->value);
}

static void fill(struct grid_series *truth, const struct grid_series *published, int64_t last_s)
{
    for (size_t i = 0; i < truth->count; i++) {
        struct grid_period *period = &truth->periods[i];
        const struct grid_period *said = grid_series_at(published, period->start_s);

        if (period->quality != GRID_UNKNOWN)
            continue;
        if (said != NULL && !isnan(said->value))
            period->value = said->value;
        else if (period->start_s >= last_s)
            period->value = truth_at(truth, (double)(period->start_s - DAY_S))->value;
        else
            period->value = between(truth, period);
    }
}

int grid_truth_init(struct grid_truth *out_truth, const struct grid_answer *answer, int64_t beyond_s,
                    const char *name, struct fly_error *out_error)
{
    const struct grid_series *series =
        grid_series_has_value(&answer->actual) ? &answer->actual : &answer->published;
    struct grid_series *truth = &out_truth->series;
    int64_t step_s = grid_series_step(series), end_s = 0;
    int code = 0;

    if (!grid_series_has_value(series))
        return error_set(out_error, FLY_EDATA, "%s: not one period has a value", name);
    grid_series_init(truth, &series->kind, PERIODS_MAX);
    for (size_t i = 0; i < series->count && code == 0; i++) {
        const struct grid_period *period = &series->periods[i];

        if (i > 0)
            code = add_gap(truth, end_s, period->start_s, step_s, out_error);
        if (code == 0)
            code = add(truth, period->start_s, period->end_s, series == &answer->actual ? period->value : NAN,
                       out_error);
        end_s = period->end_s;
    }
    if (code == 0)
        code = add_gap(truth, end_s, end_s + beyond_s, step_s, out_error);
    if (code == 0)
        fill(truth, &answer->published, end_s);
    else
        grid_series_deinit(truth);
    return code;
}

void grid_truth_deinit(struct grid_truth *truth)
{
    grid_series_deinit(&truth->series);
}

/* The truth of a figure; NULL if there is none. */
static const struct grid_series *truth_of(const struct carbon_world *world, int signal)
{
    return world->truths[signal] != NULL ? &world->truths[signal]->series : NULL;
}

/* ---- what a job knows ---- */

/*
 * What a simulated job knows of the grid: forecasts made from periods that have ended, or the
 * truth. A moment is the job's start, since 1970, plus seconds since that start.
 */

/* Returns room for the borders of all figures up to the deadline, from any start within a period. */
static size_t carbon_outlook_capacity(const struct carbon_world *world)
{
    size_t capacity = 4;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_series *truth = truth_of(world, i);
        size_t most = 0, first = 0;

        /* The number of periods is greatest where they are shortest. */
        for (size_t last = 0; truth != NULL && last < truth->count; last++) {
            while ((double)(truth->periods[last].start_s - truth->periods[first].end_s) > world->bound_s)
                first++;
            most = last - first + 1 > most ? last - first + 1 : most;
        }
        if (world->answers[i] != NULL && truth != NULL) {
            size_t steps = (size_t)(world->bound_s / (double)grid_series_step(&world->answers[i]->actual));

            most = most > steps ? most : steps;
        }
        capacity += most + 4;
    }
    return capacity;
}

/* Asks for the published forecasts that are known by then: that of the current period, at least. */
static struct grid_outlook_request ask(const struct carbon_world *world, double from_s, double to_s)
{
    struct grid_outlook_request request = {.objective = world->objective, .from_s = from_s, .to_s = to_s};

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_series *truth = truth_of(world, i);

        request.answers[i] = world->answers[i];
        if (truth != NULL)
            request.published_until_s[i] =
                (int64_t)fmax((double)truth_at(truth, from_s)->end_s, from_s + world->known_ahead_s);
    }
    return request;
}

/* Fills worker->outlook from now to the deadline with forecasts. */
static void carbon_outlook_foretell(struct carbon_worker *worker, int64_t start_s, double now_s)
{
    const struct grid_outlook_request request =
        ask(worker->world, (double)start_s + now_s, (double)start_s + worker->world->bound_s);

    grid_outlook_foretell(&worker->outlook, &request);
}

/* Fills worker->outlook from the start with the truth. */
static void carbon_outlook_know(struct carbon_worker *worker, int64_t start_s)
{
    struct grid_outlook *outlook = &worker->outlook;
    double to_s = (double)start_s + worker->world->bound_s;

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_series *truth = truth_of(worker->world, i);
        size_t at = truth == NULL ? 0 : grid_series_find(truth, start_s), count = 0;

        for (; truth != NULL && at < truth->count && (double)truth->periods[at].start_s < to_s &&
               count < outlook->capacity;
             at++)
            outlook->periods[i][count++] = truth->periods[at];
        outlook->period_counts[i] = count;
    }
    grid_outlook_merge(outlook, &worker->world->objective, (double)start_s, to_s);
}

/* Returns the intensity that is forecast for the current period. */
static double carbon_outlook_next(struct carbon_worker *worker, int64_t start_s, double now_s)
{
    double from_s = (double)start_s + now_s;
    struct grid_outlook_request request = ask(worker->world, from_s, from_s + 1.0);

    request.answers[CARBON_PRICE] = NULL;
    grid_outlook_foretell(&worker->outlook, &request);
    return worker->outlook.period_counts[CARBON_INTENSITY] > 0
               ? worker->outlook.periods[CARBON_INTENSITY][0].value
               : NAN;
}

/* Returns the greatest intensity of periods that have ended within the last `back_s`; at least 1. */
static double carbon_outlook_most(const struct grid_answer *answer, int64_t now_s, int64_t back_s)
{
    const struct grid_series *series = &answer->actual;
    double most = 1.0;

    for (size_t i = grid_series_find(series, now_s - back_s); i < series->count; i++) {
        if (series->periods[i].end_s > now_s)
            break;
        if (series->periods[i].value > most)
            most = series->periods[i].value;
    }
    return most;
}

/* ---- a job ---- */

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
        const struct grid_series *truth = truth_of(job->world, i);

        if (truth != NULL)
            next_s = fmin(next_s,
                          (double)(truth_at(truth, (double)job->start_s + job->now_s)->end_s - job->start_s));
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
        const struct grid_period *period;
        double amount;

        if (world->truths[i] == NULL)
            continue;
        period = truth_at(truth_of(world, i), now_s);
        amount = units_kwh_from_j(energy_j) * period->value;
        if (i == CARBON_INTENSITY) {
            job->outcome.grams += amount;
            known = period->quality != GRID_UNKNOWN;
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

/* ---- many starts ---- */

enum { START_STREAM = 1 };

struct shared {
    const struct carbon_campaign *campaign;
    struct carbon_outcome *outcomes;
};

/* Finds the time that all records cover. */
static void find_record(const struct carbon_world *world, int64_t *out_from_s, int64_t *out_to_s)
{
    *out_from_s = INT64_MIN;
    *out_to_s = INT64_MAX;
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        const struct grid_series *series;

        if (world->answers[i] == NULL || world->answers[i]->actual.count == 0)
            continue;
        series = &world->answers[i]->actual;
        if (series->periods[0].start_s > *out_from_s)
            *out_from_s = series->periods[0].start_s;
        if (series->periods[series->count - 1].end_s < *out_to_s)
            *out_to_s = series->periods[series->count - 1].end_s;
    }
}

int carbon_campaign_start(const struct carbon_campaign *campaign, size_t start, int64_t *out_start_s,
                          struct fly_error *out_error)
{
    int64_t from_s, to_s, bound_s = (int64_t)campaign->world->bound_s + 1;

    find_record(campaign->world, &from_s, &to_s);
    from_s += CARBON_SKIP_S;
    to_s -= bound_s;
    if (to_s < from_s)
        return error_set(out_error, FLY_EDATA,
                         "the record of the grid is %lld s too short: eight days for the forecast and the "
                         "job's time are needed; give it less work",
                         (long long)(from_s - to_s));
    *out_start_s = from_s;
    if (campaign->seed != 0) {
        struct philox stream = philox_open(philox_key(campaign->seed, "sim carbon"), START_STREAM, start, 0);

        *out_start_s += (int64_t)(philox_u64(&stream) % (uint64_t)(to_s - from_s + 1));
    } else if (campaign->starts > 1)
        *out_start_s += (to_s - from_s) / (int64_t)(campaign->starts - 1) * (int64_t)start +
                        (to_s - from_s) % (int64_t)(campaign->starts - 1) * (int64_t)start /
                            (int64_t)(campaign->starts - 1);
    return 0;
}

/* Runs one unit: one start under all policies. */
static int run_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    const struct shared *shared = context;
    const struct carbon_campaign *campaign = shared->campaign;
    struct carbon_worker worker;
    int64_t start_s = 0;
    int code = carbon_campaign_start(campaign, (size_t)unit->number, &start_s, out_error);

    if (code == 0)
        code = carbon_worker_init(&worker, campaign->world, out_error);
    if (code < 0)
        return code;
    for (size_t i = 0; i < campaign->policy_count && code == 0; i++)
        code = carbon_job_run(&worker, campaign->policies[i], start_s,
                              &shared->outcomes[i * campaign->starts + unit->number], out_error);
    carbon_worker_deinit(&worker);
    return code;
}

int carbon_campaign_run(const struct carbon_campaign *campaign, struct carbon_outcome *outcomes,
                        struct fly_error *out_error)
{
    struct shared shared = {campaign, outcomes};
    const struct crew_plan plan = {
        .units = campaign->starts,
        .threads = campaign->threads,
        .run = run_unit,
        .context = &shared,
        .thread_begun = campaign->thread_begun,
        .progress = campaign->progress,
        .progress_context = campaign->progress_context,
    };

    return crew_run(&plan, out_error);
}
