/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `bayes`: believes in a model of epochs-to-target and of the cost of an epoch over batch sizes
 * (bayes_belief.h), and tries the batch size whose trial is worth most beyond its cost
 * (bayes_choice.h). Draws no random numbers.
 *
 * - The first recurrence runs the default without a bound; so does each until one reached its target.
 * - A past that was brought (bayes_belief.h) is no evidence that a batch size reaches its target, unless only
 *   the hardware differs: then the first recurrence runs what is best by it, or the default.
 * - Within a bound on the slowdown the default runs first in any case, without a bound (pair_bound.h).
 * - A retry runs the best known batch size, as do new trials while enough others explore.
 * - A new batch size that its profile shows not to be worth the trial is left: at once where the
 *   profile is a part of the first epoch (policy_parameters.profile_window), else after that epoch.
 * - How many recurrences are still expected, and when one doubts the belief, is learnt (bayes_prospect_of).
 * - The best known batch size is stopped at 3 V. Each time that happens the bound doubles, and it
 *   halves when a run that reached its target would have fitted below the half. So a job whose
 *   costs all rise is neither stopped for ever nor once in each recurrence.
 */
#include <math.h>
#include <stdbool.h>

#include <flyball/cost.h>

#include "policy/batch_policy.h"
#include "policy/bayes_choice.h"
#include "policy/early_stopping.h"

enum { DOUBLINGS_MAX = 60, EARLY_BY_CHANCE = 2 };

static const double unknown_profile_extra = 0.15;     /* until there is a profile to learn it from */
static const double best_known_stop = 3.0;            /* of its expected cost */
static const struct bayes_prospect known_alone = {0}; /* without a look ahead */

struct bayes_state {
    const struct job_spec *spec;
    double horizon; /* recurrences that are still expected; 0: learnt */
    struct bayes_course course;
    double profile_window; /* 0: a profile takes the whole first epoch; else as of the newest one, if told */
    double profile_steps;  /* of each limit of a profile; 0: not told */
    struct belief belief;
    double
        profile_extra;  /* what profiling a whole epoch costs beyond it, as a share; of the newest profile */
    uint32_t doublings; /* of the bound of the best known batch size */
    size_t excluded;    /* the first batch size that does not fit; batch_count if all fit */
    bool *cannot_run;   /* per batch size: it does not fit, or was given up */
    bool *given_up;
    uint32_t *pending;       /* per batch size: trials that run */
    uint64_t *early;         /* per batch size: trials that ended by themselves before their target */
    struct pair_bound bound; /* arms are NULL without a bound on the slowdown */
};

static int check(const struct job_spec *spec, const struct policy_parameters *parameters,
                 struct fly_error *out_error)
{
    if (spec->batch_count > LAW_BATCHES_MAX)
        return error_set(
            out_error, FLY_EUSAGE,
            "policy 'bayes' chooses among at most %d batch sizes, and job '%.100s' has %zu; name "
            "fewer, or choose the policy 'zeus'",
            LAW_BATCHES_MAX, spec->name, spec->batch_count);
    if (!(parameters->horizon >= 0.0) || !isfinite(parameters->horizon))
        return error_set(out_error, FLY_EUSAGE, "horizon %g: expected a number from 0", parameters->horizon);
    if (!(parameters->profile_window >= 0.0 && parameters->profile_window <= 1.0))
        return error_set(out_error, FLY_EUSAGE, "profile window %g: expected a share from 0 to 1",
                         parameters->profile_window);
    return 0;
}

/* Returns whether the bound is the policy's own: a power policy from elsewhere chooses limits itself. */
static bool is_bounded(const struct job_spec *spec, const struct policy_parameters *parameters)
{
    return spec->objective != NULL && isfinite(spec->objective->max_slowdown) &&
           (parameters->power == NULL || parameters->power == &power_policy_cost);
}

static int bayes_create(const struct batch_policy *self, const struct job_spec *spec,
                        const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                        struct fly_error *out_error)
{
    struct bayes_state *state = arena_alloc(arena, 1, sizeof *state);
    uint32_t sizes[LAW_BATCHES_MAX];
    size_t count = spec->batch_count;
    int code = check(spec, parameters, out_error);

    (void)self;
    if (code < 0)
        return code;
    if (state == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++)
        sizes[i] = spec->batches[i].size;
    *state = (struct bayes_state){
        .spec = spec,
        .horizon = parameters->horizon,
        .profile_window = parameters->profile_window,
        .profile_steps = parameters->profile_steps,
        .profile_extra = unknown_profile_extra,
        .excluded = count,
        .cannot_run = arena_alloc(arena, count, sizeof state->cannot_run[0]),
        .given_up = arena_alloc(arena, count, sizeof state->given_up[0]),
        .pending = arena_alloc(arena, count, sizeof state->pending[0]),
        .early = arena_alloc(arena, count, sizeof state->early[0]),
    };
    if (state->cannot_run == NULL || state->given_up == NULL || state->pending == NULL ||
        state->early == NULL ||
        (is_bounded(spec, parameters) && !pair_bound_init(&state->bound, spec, arena)) ||
        !belief_init(&state->belief, &belief_prior_default, sizes, count, spec->default_batch, arena))
        return error_no_memory(out_error);
    *out_state = state;
    return 0;
}

static void bayes_destroy(void *state)
{
    belief_deinit(&((struct bayes_state *)state)->belief);
}

/*
 * Answers for all batch sizes; `pending` is NULL where trials that run do not count, `exact` where
 * the belief has all that is known of costs.
 */
static struct choice open_choice(const struct bayes_state *state, const uint32_t *pending,
                                 const struct epoch_cost *exact, struct bayes_prospect prospect,
                                 struct choice_room *room)
{
    const struct choice_question question = {
        .pairs = pair_bound_open(&state->bound, &state->belief, exact,
                                 state->bound.arms != NULL ? room->pairs : NULL),
        .default_batch = state->spec->default_batch,
        .belief = &state->belief,
        .cannot_run = state->cannot_run,
        .pending = pending,
        .prospect = prospect,
        .exact = exact,
        .profile_extra = state->profile_extra * (state->profile_window > 0.0 ? state->profile_window : 1.0)};

    return choice_open(&question, room);
}

/* Answers for the trial that is chosen next. */
static struct choice open_next(const struct bayes_state *state, const struct batch_question *question,
                               struct choice_room *room)
{
    const struct bayes_prospect prospect =
        bayes_prospect_of(&state->course, state->horizon, question->recurrences_left - 1.0, false);
    struct choice choice = open_choice(state, state->pending, NULL, prospect, room);

    choice.question.explorers = question->explorers;
    return choice;
}

/* ---- the fold ---- */

/* A unit that is no part of an epoch says nothing of steps. */
static void fold_window(struct bayes_state *state, const struct profile_measured *measured)
{
    if (state->profile_steps > 0.0 && measured->units_per_epoch > 1.0)
        state->profile_window =
            fmin(state->profile_steps * (double)measured->count / measured->units_per_epoch, 1.0);
}

static void fold_profile(struct bayes_state *state, const struct profile_measured *measured)
{
    const struct job_spec *spec = state->spec;
    double sum = 0.0, best = 0.0;

    if (!(measured->units_per_epoch > 0.0))
        return;
    for (size_t i = 0; i < measured->count; i++) {
        const struct fly_power_point *point = &measured->points[i];
        double cost = fly_cost(spec->eta, spec->max_power_w, point->time_s * point->power_w, point->time_s);

        sum += cost;
        if (i == measured->best)
            best = cost;
    }
    if (!(best > 0.0) || !isfinite(sum))
        return;
    fold_window(state, measured);
    if (state->bound.arms != NULL)
        best = pair_bound_least_cost(&state->bound, measured);
    state->profile_extra = fmax(sum / ((double)measured->count * best) - 1.0, 0.0);
    belief_take_cost(&state->belief, measured->batch, best * measured->units_per_epoch, true);
    belief_fit_cost(&state->belief);
}

/* Returns what a trial of the best known batch size may cost. */
static double best_known_bound(const struct choice *choice, uint32_t doublings)
{
    return best_known_stop * choice->best_cost * (double)((uint64_t)1 << doublings);
}

/* Halves the bound of the best known batch size while a run of this cost would have fitted below the half. */
static void tighten(struct bayes_state *state, size_t batch, double cost)
{
    struct choice_room room;
    const struct choice choice = open_choice(state, NULL, NULL, known_alone, &room);

    while (batch == choice.best && state->doublings > 0 &&
           cost <= best_known_bound(&choice, state->doublings - 1))
        state->doublings--;
}

/* Takes in a run that reached its target; `cost` is that of the run. */
static void fold_reached(struct bayes_state *state, const struct fly_trial *ended, double cost)
{
    if (state->doublings > 0)
        tighten(state, ended->batch, cost);
    belief_take_reached(&state->belief, ended->batch, ended->epochs);
    bayes_course_reach(&state->course, belief_past_runs(&state->belief.past, state->belief.count));
}

/* Takes in a run that did not reach its target; `cost` is that of the run. */
static void fold_missed(struct bayes_state *state, const struct fly_trial *ended, double cost)
{
    struct choice_room room;
    const struct choice choice = open_choice(state, NULL, NULL, known_alone, &room);
    bool failed = ended->epochs >= (double)state->spec->max_epochs || choice.best == state->belief.count ||
                  cost >= choice.best_cost;

    if (ended->batch == choice.best && state->doublings < DOUBLINGS_MAX)
        state->doublings++;
    belief_take_stopped(&state->belief, ended->batch, ended->epochs, failed);
}

/*
 * Takes in a run that ended by itself: it shows that its target needs more epochs. Where that happens again
 * and again at a batch size that never reached its target, it fails there.
 */
static void fold_early(struct bayes_state *state, const struct fly_trial *ended)
{
    bool failed =
        state->early[ended->batch]++ >= EARLY_BY_CHANCE && state->belief.arms[ended->batch].reached == 0;

    belief_take_stopped(&state->belief, ended->batch, ended->epochs, failed);
}

static void fold_ended(struct bayes_state *state, const struct fly_trial *ended)
{
    struct belief_arm *arm = &state->belief.arms[ended->batch];
    double cost = trial_epochs_cost(state->spec, ended);

    state->pending[ended->batch] -= !ended->late && state->pending[ended->batch] > 0;
    state->course.taken_up &= !ended->nothing_learnt; /* a doubt is still open */
    if (!outcome_observed(ended->outcome) || !(ended->epochs > 0.0) || !isfinite(ended->epochs))
        return;
    arm->tried = true;
    if (!arm->profiled) {
        belief_take_cost(&state->belief, ended->batch,
                         cost / ended->epochs / (ended->dearer > 1.0 ? ended->dearer : 1.0), false);
        belief_fit_cost(&state->belief);
    }
    if (ended->outcome == TRIAL_REACHED)
        fold_reached(state, ended, cost);
    else if (ended->by_itself)
        fold_early(state, ended);
    else
        fold_missed(state, ended, cost);
    belief_fit_epochs(&state->belief);
}

/*
 * Takes in a run that it did not propose: its epochs are as good as any others. What an epoch took
 * at its limit counts until the batch size's own cost is known.
 */
static void fold_seen(struct bayes_state *state, const struct fly_trial *ended)
{
    double cost = trial_epochs_cost(state->spec, ended);

    if (ended->outcome != TRIAL_REACHED || !(ended->epochs > 0.0) || !isfinite(ended->epochs))
        return;
    if (!state->belief.arms[ended->batch].cost_known && cost > 0.0 && isfinite(cost)) {
        belief_take_cost(&state->belief, ended->batch, cost / ended->epochs, false);
        belief_fit_cost(&state->belief);
    }
    belief_take_reached(&state->belief, ended->batch, ended->epochs);
    belief_fit_epochs(&state->belief);
}

static void bar(struct bayes_state *state)
{
    for (size_t i = 0; i < state->spec->batch_count; i++)
        state->cannot_run[i] = i >= state->excluded || state->given_up[i];
}

static void bayes_fold(void *opaque, const struct event *event)
{
    struct bayes_state *state = opaque;

    switch (event->kind) {
    case EVENT_RECURRENCE_BEGUN:
    case EVENT_EPOCH_REPORTED:
        break;
    case EVENT_TRIAL_PROPOSED:
        bayes_course_propose(&state->course);
        state->pending[event->proposed->batch]++;
        break;
    case EVENT_PROFILE_MEASURED:
        fold_profile(state, event->measured);
        if (state->bound.arms != NULL)
            pair_bound_take_profile(&state->bound, event->measured, state->pending[event->measured->batch]);
        break;
    case EVENT_PROFILE_KEPT:
        if (state->bound.arms != NULL)
            pair_bound_keep_profile(&state->bound, event->measured);
        break;
    case EVENT_TRIAL_ENDED:
    case EVENT_TRIAL_SEEN:
        if (state->bound.arms != NULL)
            pair_bound_take_ended(&state->bound, event->ended);
        (event->kind == EVENT_TRIAL_ENDED ? fold_ended : fold_seen)(state, event->ended);
        break;
    case EVENT_BATCHES_EXCLUDED:
        state->excluded = event->first_excluded;
        bar(state);
        break;
    case EVENT_BATCH_GIVEN_UP:
        state->given_up[event->given_up] = true;
        bar(state);
        break;
    case EVENT_PAST_BROUGHT:
        belief_bring(&state->belief, event->brought);
        belief_fit_epochs(&state->belief);
        belief_fit_cost(&state->belief);
        break;
    }
}

/* ---- the choice ---- */

/*
 * Returns whether what the default takes here is still to be seen: a bound is on the slowdown against that,
 * whatever a past tells. A default that failed is not insisted on.
 */
static bool lacks_reference(const struct bayes_state *state)
{
    size_t base = state->spec->default_batch;

    return state->bound.arms != NULL && state->bound.arms[base].reached == 0 &&
           state->belief.arms[base].failures == 0;
}

static int bayes_propose(const void *opaque, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct bayes_state *state = opaque;
    struct choice_room room;
    const struct choice choice = open_next(state, question, &room);
    size_t base = state->spec->default_batch;
    struct proposal proposal = {.batch = choice.best,
                                .limit_rule = LIMIT_PROFILED,
                                .reason = REASON_BEST_SEEN,
                                .policy_version = batch_policy_bayes.version};

    if (choice.best == state->belief.count) {
        proposal.batch = choice_least_doubtful(&choice, state->early);
        proposal.reason = REASON_EXPLORE;
    } else if (question->try_number == 0 && lacks_reference(state) && !state->cannot_run[base] &&
               state->pending[base] == 0) {
        proposal.batch = base;
        proposal.reason = REASON_EXPLORE;
    } else if (question->try_number == 0) {
        proposal.batch = choice_begins(&choice) ? choice_first(&choice) : choice_most_worth(&choice);
        proposal.reason = proposal.batch == choice.best ? REASON_BEST_SEEN : REASON_EXPLORE;
    }
    if (proposal.batch == state->belief.count)
        return error_set(out_error, FLY_EEXHAUSTED,
                         "no batch size is left: none fits into the GPUs or all were given up");
    *out_proposal = proposal;
    return 0;
}

static bool bayes_explain(const void *opaque, const struct batch_question *question,
                          struct batch_outlook *outlooks)
{
    const struct bayes_state *state = opaque;
    struct choice_room room;
    const struct choice choice = open_next(state, question, &room);

    return choice_explain(&choice, best_known_bound(&choice, state->doublings), outlooks);
}

/*
 * Returns what a trial with this cost of an epoch may cost; 0 if it should end at once. `following`: how many
 * recurrences will begin after it; NAN: not known.
 */
static double stop_cost(const struct bayes_state *state, const struct epoch_cost *epoch, double following)
{
    struct choice_room room;
    const struct choice choice =
        open_choice(state, NULL, epoch->cost > 0.0 ? epoch : NULL,
                    bayes_prospect_of(&state->course, state->horizon, following, true), &room);
    struct trial_worth worth;

    if (choice.best == state->belief.count || (epoch->batch == state->spec->default_batch &&
                                               (lacks_reference(state) || !belief_has_begun(&state->belief))))
        return INFINITY;
    if (epoch->batch == choice.best)
        return best_known_bound(&choice, state->doublings);
    worth = choice_worth(&choice, epoch->batch);
    return !state->belief.arms[epoch->batch].tried && worth.net <= 0.0 ? 0.0 : worth.stop_cost;
}

/*
 * A trial ends with an epoch: with the one whose end is nearest to where it should be stopped. Live, it is
 * asked before the profile is folded; so the epoch's cost is the question's.
 */
static int bayes_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                           struct fly_error *out_error)
{
    const struct bayes_state *state = opaque;
    const struct epoch_cost epoch = {question->batch,
                                     fly_cost(state->spec->eta, state->spec->max_power_w,
                                              question->epoch_energy_j, question->epoch_time_s),
                                     question->epoch_time_s};
    double most = stop_cost(state, &epoch, question->recurrences_left);
    uint32_t epochs = early_stopping_epochs(most > 0.0 ? most + 0.5 * epoch.cost : 0.0, epoch.cost,
                                            state->spec->max_epochs);

    (void)out_error;
    *out_epochs = epochs > 0 || state->profile_window > 0.0 ? epochs : 1;
    return 0;
}

/* ---- the bound ---- */

static bool bayes_choose_limit(const void *opaque, const struct profile_measured *measured, size_t *out_point)
{
    const struct bayes_state *state = opaque;
    const struct pair pair = pair_bound_of(&state->bound, &state->belief, measured->batch, measured);

    if (!pair.has_point)
        return false;
    *out_point = pair.point;
    return true;
}

static bool bayes_keeps_bound(const void *opaque, size_t batch)
{
    const struct bayes_state *state = opaque;

    return pair_bound_of(&state->bound, &state->belief, batch, NULL).keeps;
}

/* ---- bytes ---- */

static void bayes_save(const void *opaque, struct buffer *bytes)
{
    const struct bayes_state *state = opaque;

    bayes_course_save(&state->course, bytes);
    bytes_put_double(bytes, state->profile_extra);
    bytes_put_double(bytes, state->profile_window);
    bytes_put_u64(bytes, state->doublings);
    bytes_put_u64(bytes, state->excluded);
    for (size_t i = 0; i < state->spec->batch_count; i++)
        bytes_put_u64(bytes, state->pending[i]);
    for (size_t i = 0; i < state->spec->batch_count; i++)
        bytes_put_u64(bytes, state->early[i]);
    if (state->bound.arms != NULL)
        pair_bound_save(&state->bound, bytes);
    belief_save(&state->belief, bytes);
}

static bool bayes_load(void *opaque, struct bytes_reader *bytes)
{
    struct bayes_state *state = opaque;

    bayes_course_load(&state->course, bytes);
    state->profile_extra = bytes_double(bytes);
    state->profile_window = bytes_double(bytes);
    state->doublings = (uint32_t)bytes_up_to(bytes, DOUBLINGS_MAX);
    state->excluded = (size_t)bytes_up_to(bytes, state->spec->batch_count);
    for (size_t i = 0; i < state->spec->batch_count; i++)
        state->pending[i] = (uint32_t)bytes_up_to(bytes, UINT32_MAX);
    for (size_t i = 0; i < state->spec->batch_count; i++)
        state->early[i] = bytes_u64(bytes);
    bar(state);
    if (state->bound.arms != NULL && !pair_bound_load(&state->bound, bytes))
        return false;
    return belief_load(&state->belief, bytes);
}

const struct batch_policy batch_policy_bayes = {
    .name = "bayes",
    .summary = "a model of epochs and scores over batch sizes; tries what is worth what it takes",
    .version = 1,
    .guarded = true,
    .heeds_past = true,
    .create = bayes_create,
    .destroy = bayes_destroy,
    .fold = bayes_fold,
    .propose = bayes_propose,
    .explain = bayes_explain,
    .epoch_cap = bayes_epoch_cap,
    .choose_limit = bayes_choose_limit,
    .keeps_bound = bayes_keeps_bound,
    .save = bayes_save,
    .load = bayes_load,
};
