/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decider.h"

#include <math.h>
#include <string.h>

#include <flyball/cost.h>
#include <flyball/power_selector.h>

/* Begun anew, a policy's state takes new memory. */
enum { BEGUN_ANEW_MAX = 100 };

static bool is_guarded(const struct batch_policy *policy, const struct policy_parameters *parameters)
{
    if (policy->unguarded || parameters->no_default)
        return false;
    return parameters->guard == GUARD_ON || (parameters->guard == GUARD_OF_POLICY && policy->guarded);
}

int decider_init(struct decider *decider, const struct job_spec *spec, const struct batch_policy *policy,
                 const struct policy_parameters *parameters, struct arena *arena, struct fly_error *out_error)
{
    *decider = (struct decider){
        .spec = spec,
        .policy = policy,
        .power = parameters->power != NULL ? parameters->power : &power_policy_cost,
        .arena = arena,
        .recurrences_left = NAN,
        .parameters = *parameters,
        .guarded = is_guarded(policy, parameters),
        .excluded = spec->batch_count,
    };
    guard_init(&decider->guard, policy->guarded);
    decider->profiles = arena_alloc(arena, spec->batch_count, sizeof decider->profiles[0]);
    decider->streaks = arena_alloc(arena, spec->batch_count, sizeof decider->streaks[0]);
    if (decider->profiles == NULL || decider->streaks == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < spec->batch_count; i++)
        decider->profiles[i].highest_limit_w = batch_highest_limit_w(&spec->batches[i]);
    return policy->create(policy, spec, parameters, arena, &decider->policy_state, out_error);
}

void decider_deinit(struct decider *decider)
{
    if (decider->policy->destroy != NULL)
        decider->policy->destroy(decider->policy_state);
}

/* Converts a limit of one GPU into the power of all GPUs that share it. */
static double of_all_gpus(const struct decider *decider, double limit_w)
{
    return decider->spec->gpu_count > 1 ? limit_w * decider->spec->gpu_count : limit_w;
}

/* The built-in policy follows the job's objective if it has one; any other policy knows only eta. */
static int choose_point(const struct decider *decider, const struct profile_measured *measured,
                        double highest_limit_w, size_t *out_best, struct fly_error *out_error)
{
    const struct job_spec *spec = decider->spec;
    double max_power_w =
        decider->policy->weighs_with_batch_limit ? of_all_gpus(decider, highest_limit_w) : spec->max_power_w;

    if (spec->objective != NULL && decider->power == &power_policy_cost)
        return fly_power_select(measured->points, measured->count, spec->objective, max_power_w, out_best,
                                out_error);
    return decider->power->choose(decider->power, measured->points, measured->count, spec->eta, max_power_w,
                                  out_best, out_error);
}

static double highest_measured_w(const struct profile_measured *measured)
{
    double highest_w = 0.0;

    for (size_t i = 0; i < measured->count; i++)
        highest_w = fmax(highest_w, measured->points[i].limit_w);
    return highest_w;
}

bool decider_chooses_pairs(const struct decider *decider)
{
    const struct fly_objective *objective = decider->spec->objective;

    return decider->policy->choose_limit != NULL && decider->power == &power_policy_cost &&
           objective != NULL && isfinite(objective->max_slowdown);
}

bool decider_keeps_bound(const struct decider *decider, size_t batch)
{
    return decider->policy->keeps_bound(decider->policy_state, batch);
}

/* Returns the point at which the profile's batch size runs; `own` is the power policy's. */
static size_t point_to_run(const struct decider *decider, const struct profile_measured *measured, size_t own)
{
    size_t point;

    return decider_chooses_pairs(decider) &&
                   decider->policy->choose_limit(decider->policy_state, measured, &point)
               ? point
               : own;
}

int decider_choose(const struct decider *decider, const struct profile_measured *measured, size_t *out_best,
                   struct fly_error *out_error)
{
    size_t own;
    int code = choose_point(decider, measured, highest_measured_w(measured), &own, out_error);

    if (code == 0)
        *out_best = point_to_run(decider, measured, own);
    return code;
}

static void tell_policy(struct decider *decider, const struct event *event)
{
    if (decider->policy->fold != NULL)
        decider->policy->fold(decider->policy_state, event);
}

/* The policy learns of the profile with the chosen point. */
__attribute__((cold)) static int fold_profile(struct decider *decider,
                                              const struct profile_measured *measured,
                                              struct fly_error *out_error)
{
    struct profile_measured told = *measured;
    struct decider_profile profile = {.count = measured->count,
                                      .units_per_epoch = measured->units_per_epoch,
                                      .highest_limit_w = highest_measured_w(measured)};
    int code = choose_point(decider, measured, profile.highest_limit_w, &profile.best, out_error);
    if (code < 0)
        return code;
    profile.points = arena_alloc(decider->arena, measured->count, sizeof profile.points[0]);
    if (profile.points == NULL)
        return error_no_memory(out_error);
    memcpy(profile.points, measured->points, measured->count * sizeof profile.points[0]);
    decider->profiles[measured->batch] = profile;
    told.points = profile.points;
    told.best = profile.best;
    tell_policy(decider, &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &told});
    return 0;
}

static void give_up(struct decider *decider, size_t batch)
{
    decider->streaks[batch].given_up = true;
    tell_policy(decider, &(struct event){.kind = EVENT_BATCH_GIVEN_UP, .given_up = batch});
}

/* Call it after the policy has folded the end. */
static void watch_crashes(struct decider *decider, const struct fly_trial *ended)
{
    bool trained = !ended->crashed && (outcome_observed(ended->outcome) || ended->outcome == TRIAL_CRASHED);

    if (ended->nothing_learnt) {
        if (ended->crashed && !decider->streaks[ended->batch].given_up)
            give_up(decider, ended->batch);
        return;
    }
    if (!ended->crashed && (!trained || !decider->crashing))
        return;
    decider->crashing = true;
    if (crash_streaks_take(decider->streaks, decider->spec->batch_count, ended->batch, ended->crashed))
        tell_policy(decider, &(struct event){.kind = EVENT_BATCH_GIVEN_UP, .given_up = ended->batch});
}

bool decider_gave_up(const struct decider *decider, size_t batch)
{
    return decider->streaks[batch].given_up;
}

bool decider_keeps_crashing(const struct decider *decider, size_t batch)
{
    return crash_streaks_alone(&decider->streaks[batch]);
}

/* ---- the guard ---- */

static struct profile_measured kept_profile(const struct decider_profile *profile, size_t batch)
{
    return (struct profile_measured){.batch = batch,
                                     .points = profile->points,
                                     .count = profile->count,
                                     .units_per_epoch = profile->units_per_epoch,
                                     .best = profile->best};
}

/* Tells the guard what a trial took; `own`: it is one of the policy's recurrences. */
static void watch_costs(struct decider *decider, const struct fly_trial *ended, bool own)
{
    const struct job_spec *spec = decider->spec;
    const struct decider_profile *profile = &decider->profiles[spec->default_batch];
    bool reached = ended->outcome == TRIAL_REACHED;
    double cost = fly_cost(spec->eta, spec->max_power_w, ended->energy_j, ended->time_s);

    if (!(cost > 0.0) || !isfinite(cost) ||
        !(outcome_observed(ended->outcome) || ended->outcome == TRIAL_REFUSED))
        return;
    if (ended->batch == spec->default_batch && reached)
        guard_take_default(&decider->guard,
                           cost / guard_limit_share(spec, profile->points, profile->count, ended->limit_w));
    if (ended->batch == spec->default_batch && !reached && ended->epochs >= (double)spec->max_epochs)
        guard_take_default_failed(&decider->guard);
    if (own)
        guard_take_try(&decider->guard, ended->recurrence, cost, reached);
}

/* Tells a policy whose state was made afresh what still holds. */
static void tell_what_holds(struct decider *decider)
{
    const struct job_spec *spec = decider->spec;

    if (decider->excluded < spec->batch_count)
        tell_policy(decider,
                    &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = decider->excluded});
    for (size_t i = 0; i < spec->batch_count; i++) {
        const struct profile_measured kept = kept_profile(&decider->profiles[i], i);

        if (kept.count > 0)
            tell_policy(decider, &(struct event){.kind = EVENT_PROFILE_MEASURED, .measured = &kept});
        if (decider->streaks[i].given_up)
            tell_policy(decider, &(struct event){.kind = EVENT_BATCH_GIVEN_UP, .given_up = i});
    }
}

void decider_tell_kept(struct decider *decider)
{
    for (size_t i = 0; i < decider->spec->batch_count; i++) {
        const struct profile_measured kept = kept_profile(&decider->profiles[i], i);

        if (kept.count > 0)
            tell_policy(decider, &(struct event){.kind = EVENT_PROFILE_KEPT, .measured = &kept});
        if (decider->streaks[i].given_up)
            tell_policy(decider, &(struct event){.kind = EVENT_BATCH_GIVEN_UP, .given_up = i});
    }
}

__attribute__((cold)) static int begin_anew(struct decider *decider, struct fly_error *out_error)
{
    void *state;
    int code;

    if (decider->begun_anew >= BEGUN_ANEW_MAX)
        return 0;
    code = decider->policy->create(decider->policy, decider->spec, &decider->parameters, decider->arena,
                                   &state, out_error);
    if (code < 0)
        return code;
    decider_deinit(decider);
    decider->policy_state = state;
    tell_what_holds(decider);
    return 0;
}

/* Tells the guard what was proposed by it. Lets learning begin anew where it says so. */
static int heed_guard(struct decider *decider, const struct proposal *proposal, struct fly_error *out_error)
{
    bool anew;
    int code = 0;

    if (proposal->reason == REASON_GUARD_DOUBT)
        guard_take_question(&decider->guard);
    if (proposal->reason != REASON_GUARD)
        return 0;
    anew = guard_begins_anew(&decider->guard);
    guard_take_advice(&decider->guard);
    if (anew)
        code = begin_anew(decider, out_error);
    decider->begun_anew += anew;
    return code;
}

bool decider_default_fails(const struct decider *decider)
{
    return decider->guarded && decider->guard.fails;
}

enum reason decider_guard_reason(const struct decider *decider, uint32_t try_number)
{
    static const enum reason reasons[] = {
        [GUARD_GO_ON] = REASON_COUNT, [GUARD_ASK] = REASON_GUARD_DOUBT, [GUARD_DEFAULT] = REASON_GUARD};
    size_t batch = decider->spec->default_batch;

    if (!decider->guarded || batch >= decider->excluded || decider_gave_up(decider, batch) ||
        decider_keeps_crashing(decider, batch))
        return REASON_COUNT;
    return reasons[guard_advise(&decider->guard, try_number)];
}

/* The default runs at the limit that its profile has shown to be best, if there is one, else at its highest.
 */
static struct proposal propose_default(const struct decider *decider, enum reason reason)
{
    size_t batch = decider->spec->default_batch;
    bool profiled = decider->profiles[batch].points != NULL;

    return (struct proposal){.batch = batch,
                             .limit_rule = profiled ? LIMIT_PROFILED : LIMIT_FIXED,
                             .limit_w = batch_highest_limit_w(&decider->spec->batches[batch]),
                             .uncapped = true,
                             .reason = reason,
                             .policy_version = decider->policy->version};
}

/* ---- the fold ---- */

/* A trial of which nothing is learnt gives its number back, unless another one has the next. */
static void count_end(struct decider *decider, const struct fly_trial *ended)
{
    if (ended->nothing_learnt && ended->batch == decider->spec->default_batch)
        guard_withdraw_question(&decider->guard);
    if (ended->nothing_learnt && !ended->late && ended->trial + 1 == decider->trials)
        decider->trials--;
    else
        decider->ended += !ended->late;
}

int decider_fold(struct decider *decider, const struct event *event, struct fly_error *out_error)
{
    int code = 0;

    if (event->kind == EVENT_TRIAL_PROPOSED) {
        decider->trials++;
        code = heed_guard(decider, event->proposed, out_error);
    } else if (event->kind == EVENT_PROFILE_MEASURED) {
        code = fold_profile(decider, event->measured, out_error);
    } else if (event->kind == EVENT_BATCHES_EXCLUDED) {
        decider->excluded = event->first_excluded;
    } else if (event->kind == EVENT_TRIAL_ENDED || event->kind == EVENT_TRIAL_SEEN) {
        if (event->kind == EVENT_TRIAL_ENDED)
            count_end(decider, event->ended);
        if (decider->guarded)
            watch_costs(decider, event->ended, event->kind == EVENT_TRIAL_ENDED);
    }
    if (code == 0 && event->kind != EVENT_PROFILE_MEASURED)
        tell_policy(decider, event);
    if (code == 0 && event->kind == EVENT_TRIAL_ENDED)
        watch_crashes(decider, event->ended);
    return code;
}

/* Returns how many trials may explore at the same time. */
static uint32_t explorers_of(const struct decider *decider)
{
    return decider->guarded ? guard_explorers(&decider->guard) : UINT32_MAX;
}

int decider_propose(const struct decider *decider, uint64_t recurrence, uint32_t try_number,
                    struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct batch_question question = {.recurrence = recurrence,
                                            .try_number = try_number,
                                            .trial = decider->trials,
                                            .in_flight = decider->trials - decider->ended,
                                            .explorers = explorers_of(decider),
                                            .recurrences_left = decider->recurrences_left};
    enum reason reason = decider_guard_reason(decider, try_number);

    if (reason != REASON_COUNT) {
        *out_proposal = propose_default(decider, reason);
        return 0;
    }
    return decider->policy->propose(decider->policy_state, &question, out_proposal, out_error);
}

bool decider_explain(const struct decider *decider, struct batch_outlook *outlooks)
{
    const struct batch_question question = {.trial = decider->trials,
                                            .in_flight = decider->trials - decider->ended,
                                            .explorers = explorers_of(decider),
                                            .recurrences_left = decider->recurrences_left};

    return decider->policy->explain != NULL &&
           decider->policy->explain(decider->policy_state, &question, outlooks);
}

bool decider_wants_profile(const struct decider *decider, const struct proposal *proposal)
{
    return proposal->limit_rule == LIMIT_PROFILED && decider->profiles[proposal->batch].points == NULL;
}

double decider_limit_w(const struct decider *decider, const struct proposal *proposal)
{
    const struct decider_profile *profile = &decider->profiles[proposal->batch];
    struct profile_measured kept;

    if (proposal->limit_rule == LIMIT_FIXED)
        return proposal->limit_w;
    if (!decider_chooses_pairs(decider))
        return profile->points[profile->best].limit_w;
    kept = kept_profile(profile, proposal->batch);
    return profile->points[point_to_run(decider, &kept, profile->best)].limit_w;
}

static int ask_epochs(const struct decider *decider, const struct epoch_question *question,
                      uint32_t *out_epochs, struct fly_error *out_error)
{
    if (decider->policy->epoch_cap != NULL)
        return decider->policy->epoch_cap(decider->policy_state, question, out_epochs, out_error);
    *out_epochs = decider->spec->max_epochs;
    return 0;
}

int decider_cap(const struct decider *decider, struct epoch_question *question, uint32_t *out_epochs,
                struct fly_error *out_error)
{
    question->highest_limit_w = of_all_gpus(decider, decider->profiles[question->batch].highest_limit_w);
    question->recurrences_left = decider->recurrences_left;
    return ask_epochs(decider, question, out_epochs, out_error);
}

int decider_epoch_cap(const struct decider *decider, size_t batch, double epoch_energy_j, double epoch_time_s,
                      uint32_t *out_epochs, struct fly_error *out_error)
{
    struct epoch_question question = {
        .batch = batch, .epoch_energy_j = epoch_energy_j, .epoch_time_s = epoch_time_s};

    return decider_cap(decider, &question, out_epochs, out_error);
}

int decider_measured_cap(const struct decider *decider, const struct profile_measured *measured, size_t best,
                         double units_per_epoch, uint32_t *out_epochs, struct fly_error *out_error)
{
    const struct fly_power_point *point = &measured->points[best];
    const struct epoch_question question = {
        .batch = measured->batch,
        .epoch_energy_j = point->time_s * point->power_w * units_per_epoch,
        .epoch_time_s = point->time_s * units_per_epoch,
        .highest_limit_w = of_all_gpus(decider, highest_measured_w(measured)),
        .recurrences_left = decider->recurrences_left,
    };

    return ask_epochs(decider, &question, out_epochs, out_error);
}

enum verdict decider_judge(const struct decider *decider, const struct progress_question *question)
{
    const struct epoch_reported *reported = question->reported;

    if (decider->policy->judge != NULL)
        return decider->policy->judge(decider->policy_state, question);
    if (reported->reached)
        return VERDICT_REACHED;
    if (reported->epoch >= decider->spec->max_epochs)
        return VERDICT_EPOCHS;
    return question->capped && reported->epoch >= question->epochs ? VERDICT_COST : VERDICT_GO_ON;
}

void decider_save(const struct decider *decider, struct buffer *bytes)
{
    bytes_put_u64(bytes, decider->trials);
    bytes_put_u64(bytes, decider->ended);
    for (size_t i = 0; i < decider->spec->batch_count; i++) {
        const struct decider_profile *profile = &decider->profiles[i];

        bytes_put_u64(bytes, profile->count);
        bytes_put_u64(bytes, profile->best);
        bytes_put_double(bytes, profile->units_per_epoch);
        bytes_put_double(bytes, profile->highest_limit_w);
        for (size_t point = 0; point < profile->count; point++) {
            bytes_put_double(bytes, profile->points[point].limit_w);
            bytes_put_double(bytes, profile->points[point].power_w);
            bytes_put_double(bytes, profile->points[point].time_s);
        }
    }
    bytes_put_u64(bytes, decider->begun_anew);
    bytes_put_u64(bytes, decider->excluded);
    guard_save(&decider->guard, bytes);
    crash_streaks_save(decider->streaks, decider->spec->batch_count, bytes);
    decider->policy->save(decider->policy_state, bytes);
}

static int load_profile(struct decider *decider, struct decider_profile *out_profile,
                        struct bytes_reader *bytes, struct fly_error *out_error)
{
    struct decider_profile profile = {.count = (size_t)bytes_up_to(bytes, JOB_LIMITS_MAX)};

    profile.best = (size_t)bytes_up_to(bytes, profile.count > 0 ? profile.count - 1 : 0);
    profile.units_per_epoch = bytes_double(bytes);
    profile.highest_limit_w = bytes_double(bytes);
    if (profile.count > 0) {
        profile.points = arena_alloc(decider->arena, profile.count, sizeof profile.points[0]);
        if (profile.points == NULL)
            return error_no_memory(out_error);
    }
    for (size_t i = 0; i < profile.count; i++) {
        profile.points[i].limit_w = bytes_double(bytes);
        profile.points[i].power_w = bytes_double(bytes);
        profile.points[i].time_s = bytes_double(bytes);
    }
    *out_profile = profile;
    return 0;
}

int decider_load(struct decider *decider, struct bytes_reader *bytes, struct fly_error *out_error)
{
    int code = 0;

    decider->trials = bytes_u64(bytes);
    decider->ended = bytes_up_to(bytes, decider->trials);
    for (size_t i = 0; code == 0 && i < decider->spec->batch_count; i++)
        code = load_profile(decider, &decider->profiles[i], bytes, out_error);
    if (code < 0)
        return code;
    decider->begun_anew = bytes_u64(bytes);
    decider->excluded = (size_t)bytes_up_to(bytes, decider->spec->batch_count);
    guard_load(&decider->guard, bytes);
    crash_streaks_load(decider->streaks, decider->spec->batch_count, bytes);
    decider->crashing = true;
    if (bytes->failed || !decider->policy->load(decider->policy_state, bytes))
        return 1;
    decider_tell_kept(decider);
    return 0;
}
