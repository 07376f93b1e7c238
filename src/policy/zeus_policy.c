/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `zeus`: the batch-size search of You et al., "Zeus: Understanding and Optimizing GPU Energy
 * Consumption of DNN Training", NSDI '23, as its published simulator carries it out: two rounds
 * of pruning, then Gaussian Thompson sampling over the survivors. Each trial is stopped at beta
 * times the least cost that a recurrence has had.
 *
 * It matches the simulator to the last random draw, so that published runs can be repeated. Hence
 * it has some habits that other policies should not copy:
 * - a failed trial enters the beliefs with the cost at which it was stopped, which is less than
 *   what it would have cost;
 * - a trial refused in its first epoch enters with 100 times its bound;
 * - the first trial of a size includes its power profile, and stays in the mean;
 * - the least cost includes a recurrence's failed tries;
 * - the power limit and the stopping rule weigh time with the highest limit of the batch size,
 *   the cost with that of the GPU;
 * - when the very first recurrence fails once, the search ends;
 * - a window of 1 leaves too few observations to build the bandit.
 *
 * With overlapping recurrences (policy_parameters.overlapping) it is the published group
 * simulator's policy: while a trial runs, others take the cheapest batch size so far; the least
 * cost is that of a single trial; and a trial refused before it began enters as if it had cost
 * nothing, so as the best there is.
 */
#include <math.h>
#include <stdbool.h>

#include <flyball/cost.h>

#include "base/math/philox.h"
#include "base/math/ziggurat.h"
#include "policy/batch_policy.h"
#include "policy/early_stopping.h"
#include "policy/pruning.h"
#include "policy/rewards.h"

enum { POLICY_STREAM = 0, WORDS_AT_ONCE = 64 };

static const double refused_penalty = 100.0;
static const size_t NO_ARM = SIZE_MAX;

/* Beliefs about the mean reward of one surviving batch size. */
struct arm {
    double mean_j;
    double deviation_j;
};

struct zeus_state {
    const struct job_spec *spec;
    double beta;
    bool overlapping;
    double least_cost_j;      /* of a recurrence that reached its target; infinity until there is one */
    size_t cheapest;          /* the batch size of that recurrence; until then the default */
    double recurrence_cost_j; /* of the running recurrence so far */
    uint32_t window;          /* how many observations of a size count; 0: all */
    struct pruning pruning;
    bool exploring;          /* the awaited size was proposed and its outcome is not known yet */
    size_t excluded;         /* the first batch size that does not fit; batch_count if all fit */
    bool *given_up;          /* per batch size: its trials crash again and again */
    struct rewards *rewards; /* per batch size */
    struct arm *arms;        /* the survivors, ascending; filled when exploration ends */
    size_t *arm_batches;     /* arm -> batch size */
    size_t *batch_arms;      /* batch size -> arm, or NO_ARM */
    size_t arm_count;
    enum generator generator;
    struct philox_key key;
    struct numpy_random random; /* with GENERATOR_NUMPY: the state of the sequence */
    const struct ziggurat *ziggurat;
};

static int zeus_create(const struct batch_policy *self, const struct job_spec *spec,
                       const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                       struct fly_error *out_error)
{
    struct zeus_state *state = arena_alloc(arena, 1, sizeof *state);
    size_t count = spec->batch_count;
    bool fits = state != NULL;

    if (!(parameters->beta > 0.0))
        return error_set(out_error, FLY_EUSAGE, "beta %g: expected a number above 0, or inf",
                         parameters->beta);
    if (parameters->window > POLICY_WINDOW_MAX)
        return error_set(out_error, FLY_EUSAGE, "window %u: expected at most %d", parameters->window,
                         POLICY_WINDOW_MAX);
    if (!fits)
        return error_no_memory(out_error);
    *state = (struct zeus_state){
        .spec = spec,
        .beta = parameters->beta,
        .window = parameters->window,
        .overlapping = parameters->overlapping,
        .cheapest = spec->default_batch,
        .excluded = count,
        .least_cost_j = INFINITY,
        .given_up = arena_alloc(arena, count, sizeof state->given_up[0]),
        .rewards = arena_alloc(arena, count, sizeof state->rewards[0]),
        .arms = arena_alloc(arena, count, sizeof state->arms[0]),
        .arm_batches = arena_alloc(arena, count, sizeof state->arm_batches[0]),
        .batch_arms = arena_alloc(arena, count, sizeof state->batch_arms[0]),
        .generator = parameters->generator,
        .key = philox_key(parameters->seed, spec->name),
        .random = numpy_random_seed(parameters->seed),
        .ziggurat = ziggurat_tables(),
    };
    fits = state->given_up != NULL && state->rewards != NULL && state->arms != NULL &&
           state->arm_batches != NULL && state->batch_arms != NULL &&
           pruning_init(&state->pruning, count, spec->default_batch, arena);
    for (size_t i = 0; fits && i < count; i++)
        fits = rewards_init(&state->rewards[i], parameters->window, arena);
    if (!fits)
        return error_no_memory(out_error);
    if (self == &batch_policy_zeus_one_round)
        state->pruning.rounds = 1;
    *out_state = state;
    return 0;
}

/*
 * Computes the posterior of the mean reward from a flat prior: normal, with the mean of the
 * rewards and their variance divided by their number.
 */
static void arm_fit(struct zeus_state *state, size_t arm)
{
    const struct rewards *rewards = &state->rewards[state->arm_batches[arm]];

    state->arms[arm] = (struct arm){.mean_j = rewards->mean,
                                    .deviation_j = sqrt(rewards->variance / (double)rewards_count(rewards))};
}

static void arms_build(struct zeus_state *state)
{
    for (size_t i = 0; i < state->spec->batch_count; i++) {
        state->batch_arms[i] = NO_ARM;
        if (!state->pruning.candidate[i])
            continue;
        state->arm_batches[state->arm_count] = i;
        state->batch_arms[i] = state->arm_count;
        arm_fit(state, state->arm_count++);
    }
}

static void observe(struct zeus_state *state, size_t batch, bool reached, double cost_j)
{
    rewards_add(&state->rewards[batch], -cost_j);
    if (pruning_over(&state->pruning)) {
        if (state->arm_count > 0 && state->batch_arms[batch] != NO_ARM)
            arm_fit(state, state->batch_arms[batch]);
        return;
    }
    if (!state->exploring || batch != state->pruning.awaited)
        return;
    state->exploring = false;
    pruning_observe(&state->pruning, reached, cost_j);
    if (state->pruning.round == state->pruning.rounds)
        arms_build(state);
}

/* Folds an end that tells nothing about the batch size's cost: if it was explored, it is tried again. */
static void fold_in_vain(struct zeus_state *state, size_t batch)
{
    if (!pruning_over(&state->pruning) && batch == state->pruning.awaited)
        state->exploring = false;
}

/* The published group simulator refuses trials before they begin, never after their profile. */
static double refused_cost_j(const struct zeus_state *state, const struct fly_trial *ended)
{
    return state->overlapping && ended->time_s == 0.0 ? 0.0
                                                      : refused_penalty * state->beta * state->least_cost_j;
}

static void fold_ended(struct zeus_state *state, const struct fly_trial *ended)
{
    bool reached = ended->outcome == TRIAL_REACHED;
    double cost_j, counted_j;

    if (ended->outcome != TRIAL_REFUSED && !outcome_observed(ended->outcome)) {
        fold_in_vain(state, ended->batch);
        return;
    }
    if (ended->outcome == TRIAL_REFUSED) {
        observe(state, ended->batch, false, refused_cost_j(state, ended));
        return;
    }
    cost_j = fly_cost(state->spec->eta, state->spec->max_power_w, ended->energy_j, ended->time_s);
    state->recurrence_cost_j += cost_j;
    counted_j = state->overlapping ? cost_j : state->recurrence_cost_j;
    observe(state, ended->batch, reached, cost_j);
    if (reached && counted_j < state->least_cost_j) {
        state->least_cost_j = counted_j;
        state->cheapest = ended->batch;
    }
}

static void fold_excluded(struct zeus_state *state, size_t first)
{
    state->excluded = first;
    if (pruning_over(&state->pruning))
        return;
    state->exploring &= state->pruning.awaited < first;
    pruning_exclude(&state->pruning, first);
    if (state->pruning.round == state->pruning.rounds)
        arms_build(state);
}

static void fold_given_up(struct zeus_state *state, size_t batch)
{
    state->given_up[batch] = true;
    if (pruning_over(&state->pruning))
        return;
    state->exploring &= state->pruning.awaited != batch;
    pruning_drop(&state->pruning, batch);
    if (state->pruning.round == state->pruning.rounds)
        arms_build(state);
}

static void zeus_fold(void *opaque, const struct event *event)
{
    struct zeus_state *state = opaque;

    if (event->kind == EVENT_RECURRENCE_BEGUN) {
        state->recurrence_cost_j = 0.0;
    } else if (event->kind == EVENT_TRIAL_PROPOSED) {
        if (event->proposed->reason == REASON_SAMPLED)
            state->random = event->proposed->random_after;
        state->exploring |= event->proposed->reason == REASON_EXPLORE;
    } else if (event->kind == EVENT_TRIAL_ENDED) {
        fold_ended(state, event->ended);
    } else if (event->kind == EVENT_BATCHES_EXCLUDED) {
        fold_excluded(state, event->first_excluded);
    } else if (event->kind == EVENT_BATCH_GIVEN_UP) {
        fold_given_up(state, event->given_up);
    }
}

static bool can_run(const struct zeus_state *state, size_t arm)
{
    return state->arm_batches[arm] < state->excluded && !state->given_up[state->arm_batches[arm]];
}

/* Draws one normal number for each arm, from the random numbers of this trial. */
static size_t sample_philox(const struct zeus_state *state, uint64_t trial)
{
    struct philox philox = philox_open(state->key, POLICY_STREAM, trial, 0);
    uint64_t words[WORDS_AT_ONCE];
    double highest_j = -INFINITY;
    size_t best = 0;

    for (size_t first = 0; first < state->arm_count; first += WORDS_AT_ONCE) {
        size_t count = state->arm_count - first < WORDS_AT_ONCE ? state->arm_count - first : WORDS_AT_ONCE;

        philox_fill(&philox, words, count);
        for (size_t i = 0; i < count; i++) {
            const struct arm *arm = &state->arms[first + i];
            double z = ziggurat_normal(state->ziggurat, words[i], philox_source, &philox);
            double reward_j = arm->mean_j + arm->deviation_j * z;

            if (reward_j > highest_j && can_run(state, first + i)) {
                highest_j = reward_j;
                best = first + i;
            }
        }
    }
    return best;
}

/* Draws them from the published generator, with the permutation that its code draws and does not use. */
static size_t sample_numpy(const struct zeus_state *state, struct numpy_random *random)
{
    double highest_j = -INFINITY;
    size_t best = 0;

    numpy_random_skip_permutation(random, (uint32_t)state->arm_count);
    for (size_t i = 0; i < state->arm_count; i++) {
        const struct arm *arm = &state->arms[i];
        double reward_j = arm->mean_j + arm->deviation_j * numpy_random_normal(random);

        if (reward_j > highest_j && can_run(state, i)) {
            highest_j = reward_j;
            best = i;
        }
    }
    return best;
}

static int check_alive(const struct zeus_state *state, const struct batch_question *question,
                       struct fly_error *out_error)
{
    if (!state->overlapping && question->recurrence == 0 && question->try_number > 0)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "the first recurrence did not reach its target with the default batch size; choose another "
            "default, target or number of epochs");
    if (state->pruning.exhausted)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "no batch size is left: exploration pruned them all; raise beta or allow more epochs");
    if (state->window == 1 && state->arm_count > 0)
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "a window of 1 leaves a single observation of each batch size, and the bandit needs two; "
            "choose a window of 0 or from 2");
    return 0;
}

static int zeus_propose(const void *opaque, const struct batch_question *question,
                        struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct zeus_state *state = opaque;
    struct numpy_random random = state->random;
    enum reason reason = REASON_BEST_SEEN;
    size_t batch = state->cheapest;

    if (!state->overlapping || question->in_flight == 0) {
        int code = check_alive(state, question, out_error);

        if (code < 0)
            return code;
        if (!pruning_over(&state->pruning)) {
            reason = REASON_EXPLORE;
            batch = state->pruning.awaited;
        } else {
            reason = REASON_SAMPLED;
            batch = state->arm_batches[state->generator == GENERATOR_NUMPY
                                           ? sample_numpy(state, &random)
                                           : sample_philox(state, question->trial)];
        }
    }
    *out_proposal = (struct proposal){.batch = batch,
                                      .limit_rule = LIMIT_PROFILED,
                                      .limit_w = 0.0,
                                      .uncapped = false,
                                      .reason = reason,
                                      .policy_version = batch_policy_zeus.version,
                                      .random_after = random};
    return 0;
}

static int zeus_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                          struct fly_error *out_error)
{
    const struct zeus_state *state = opaque;
    double epoch_j = fly_cost(state->spec->eta, question->highest_limit_w, question->epoch_energy_j,
                              question->epoch_time_s);

    double apart_j = fly_cost(state->spec->eta, question->highest_limit_w, question->apart_energy_j,
                              question->apart_time_s);

    (void)out_error;
    *out_epochs = early_stopping_epochs(fmax(state->beta * state->least_cost_j - apart_j, 0.0), epoch_j,
                                        state->spec->max_epochs);
    return 0;
}

static void zeus_save(const void *opaque, struct buffer *bytes)
{
    const struct zeus_state *state = opaque;

    bytes_put_double(bytes, state->least_cost_j);
    bytes_put_u64(bytes, state->cheapest);
    bytes_put_double(bytes, state->recurrence_cost_j);
    bytes_put_u64(bytes, state->exploring);
    bytes_put_u64(bytes, state->excluded);
    numpy_random_save(&state->random, bytes);
    pruning_save(&state->pruning, bytes);
    for (size_t i = 0; i < state->spec->batch_count; i++)
        rewards_save(&state->rewards[i], bytes);
}

static bool zeus_load(void *opaque, struct bytes_reader *bytes)
{
    struct zeus_state *state = opaque;
    size_t count = state->spec->batch_count;
    bool fits;

    state->least_cost_j = bytes_double(bytes);
    state->cheapest = (size_t)bytes_up_to(bytes, count - 1);
    state->recurrence_cost_j = bytes_double(bytes);
    state->exploring = bytes_bool(bytes);
    state->excluded = (size_t)bytes_up_to(bytes, count);
    fits = numpy_random_load(&state->random, bytes) && pruning_load(&state->pruning, bytes);
    for (size_t i = 0; fits && i < count; i++)
        fits = rewards_load(&state->rewards[i], bytes);
    if (fits && state->pruning.round == state->pruning.rounds)
        arms_build(state); /* an arm follows from its rewards */
    return fits;
}

const struct batch_policy batch_policy_zeus = {
    .name = "zeus",
    .summary = "the published search: pruning, then Thompson sampling, stopping at beta",
    .version = 1,
    .weighs_with_batch_limit = true,
    .heeds_window = true,
    .create = zeus_create,
    .fold = zeus_fold,
    .propose = zeus_propose,
    .epoch_cap = zeus_epoch_cap,
    .save = zeus_save,
    .load = zeus_load,
};

const struct batch_policy batch_policy_zeus_one_round = {
    .name = "zeus-one-round",
    .summary = "the published search with one round of pruning instead of two",
    .version = 1,
    .weighs_with_batch_limit = true,
    .create = zeus_create,
    .fold = zeus_fold,
    .propose = zeus_propose,
    .epoch_cap = zeus_epoch_cap,
};
