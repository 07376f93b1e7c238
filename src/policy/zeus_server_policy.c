/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `zeus-server`: the batch-size search of Zeus as its published server carries it out, for
 * clients of that server. It differs from the policy `zeus`, which is the published simulator:
 * - a trial is stopped after the epoch that crossed the bound, and has then failed, even if it
 *   reached its target in that epoch;
 * - the bound refers to the cheapest single trial;
 * - only the trial that explores advances the exploration. Trials beside it take the cheapest
 *   batch size so far. They do not count when the bandit begins, but do from the next report of
 *   their size on;
 * - an exploration that crashed or expired is repeated.
 *
 * It does not copy these faults of the published server:
 * - without a seed each arm of a draw has a random number of its own (there, all arms share one
 *   that changes with the second);
 * - a trial beside the exploration may report after that has ended, and counts (there it is
 *   refused and lost);
 * - the bound and the batch size of trials beside the exploration come from trials that reached
 *   their target (there, from failed ones too);
 * - with no round of pruning all batch sizes are sampled (there, an error);
 * - arms are in the order of their sizes (there, in that of the database).
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>

#include "base/math/philox.h"
#include "base/math/ziggurat.h"
#include "policy/batch_policy.h"
#include "policy/pruning.h"
#include "policy/rewards.h"

enum { POLICY_STREAM = 0 };

/* Beliefs about the mean reward of one batch size; there are no arms until the bandit begins. */
struct server_arm {
    bool exists;
    double mean_j;
    double deviation_j;
    uint64_t observations;
};

struct server_state {
    const struct job_spec *spec;
    struct policy_parameters parameters;
    struct pruning pruning;
    bool exploring;           /* a trial of the awaited size is running */
    uint64_t explorer;        /* number of that trial */
    uint64_t proposed;        /* number of trials proposed */
    bool bandit;              /* a trial was drawn: from now on reports change the beliefs */
    double least_cost_j;      /* of a trial that reached its target; infinity until there is one */
    size_t cheapest;          /* the batch size of that trial; until then the default */
    size_t excluded;          /* the first batch size that does not fit */
    struct rewards *all;      /* per batch size: of every trial that ended normally */
    struct rewards *explored; /* per batch size: of explorations alone, without a window */
    struct server_arm *arms;  /* per batch size */
    struct philox_key key;
    struct numpy_random random;
};

static int server_create(const struct batch_policy *self, const struct job_spec *spec,
                         const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                         struct fly_error *out_error)
{
    struct server_state *state = arena_alloc(arena, 1, sizeof *state);
    size_t count = spec->batch_count;
    bool fits = state != NULL;

    (void)self;
    if (!(parameters->beta > 0.0) || parameters->window > POLICY_WINDOW_MAX)
        return error_set(out_error, FLY_EUSAGE, "policy 'zeus-server': beta %g, window %u: out of range",
                         parameters->beta, parameters->window);
    if (!fits)
        return error_no_memory(out_error);
    *state = (struct server_state){
        .spec = spec,
        .parameters = *parameters,
        .least_cost_j = INFINITY,
        .cheapest = spec->default_batch,
        .excluded = count,
        .all = arena_alloc(arena, count, sizeof state->all[0]),
        .explored = arena_alloc(arena, count, sizeof state->explored[0]),
        .arms = arena_alloc(arena, count, sizeof state->arms[0]),
        .key = philox_key(parameters->seed, spec->name),
        .random = numpy_random_seed(parameters->seed),
    };
    fits = state->all != NULL && state->explored != NULL && state->arms != NULL &&
           pruning_init(&state->pruning, count, spec->default_batch, arena);
    for (size_t i = 0; fits && i < count; i++)
        fits = rewards_init(&state->all[i], parameters->window, arena) &&
               rewards_init(&state->explored[i], 0, arena);
    if (!fits)
        return error_no_memory(out_error);
    state->pruning.rounds = parameters->pruning_rounds;
    *out_state = state;
    return 0;
}

/* ---- beliefs ---- */

/* Computes the posterior of a mean with known variance, from the prior of the parameters. */
static void arm_fit(const struct server_state *state, struct server_arm *arm, const struct rewards *rewards)
{
    double prior_mean_j = state->parameters.prior_mean, prior_precision = state->parameters.prior_precision;
    double count = (double)rewards_count(rewards), precision;

    arm->observations = rewards_count(rewards);
    if (count == 0.0) {
        arm->mean_j = prior_mean_j;
        arm->deviation_j = prior_precision > 0.0 ? sqrt(1.0 / prior_precision) : 0.0;
    } else if (rewards->variance == 0.0) {
        arm->mean_j = rewards->mean;
        arm->deviation_j = 0.0;
    } else {
        precision = prior_precision + count / rewards->variance;
        arm->mean_j =
            (prior_precision * prior_mean_j + count * rewards->mean / rewards->variance) / precision;
        arm->deviation_j = sqrt(1.0 / precision);
    }
}

static void arms_build(struct server_state *state)
{
    for (size_t i = 0; i < state->spec->batch_count; i++) {
        state->arms[i].exists = state->pruning.candidate[i];
        if (state->arms[i].exists)
            arm_fit(state, &state->arms[i], &state->explored[i]);
    }
}

static bool exploration_over(const struct server_state *state)
{
    return state->pruning.round >= state->pruning.rounds;
}

/* ---- folding ---- */

static void fold_proposed(struct server_state *state, const struct proposal *proposal)
{
    uint64_t trial = state->proposed++;

    if (proposal->reason == REASON_SAMPLED) {
        if (!state->bandit)
            arms_build(state);
        state->bandit = true;
        state->random = proposal->random_after;
    } else if (proposal->reason == REASON_EXPLORE) {
        state->exploring = true;
        state->explorer = trial;
    }
}

static void fold_ended(struct server_state *state, const struct fly_trial *ended)
{
    bool explored = state->exploring && ended->trial == state->explorer;
    bool reached = ended->outcome == TRIAL_REACHED;
    double cost_j = fly_cost(state->spec->eta, state->spec->max_power_w, ended->energy_j, ended->time_s);

    state->exploring &= !explored;
    if (!outcome_observed(ended->outcome))
        return;
    rewards_add(&state->all[ended->batch], -cost_j);
    if (explored && !pruning_over(&state->pruning) && ended->batch == state->pruning.awaited) {
        rewards_add(&state->explored[ended->batch], -cost_j);
        pruning_observe(&state->pruning, reached, cost_j);
    }
    if (state->bandit && state->arms[ended->batch].exists)
        arm_fit(state, &state->arms[ended->batch], &state->all[ended->batch]);
    if (reached && cost_j < state->least_cost_j) {
        state->least_cost_j = cost_j;
        state->cheapest = ended->batch;
    }
}

static void fold_excluded(struct server_state *state, size_t first)
{
    state->excluded = first;
    for (size_t i = first; i < state->spec->batch_count; i++)
        state->arms[i].exists = false;
    if (!pruning_over(&state->pruning)) {
        state->exploring &= state->pruning.awaited < first;
        pruning_exclude(&state->pruning, first);
    }
}

static void fold_given_up(struct server_state *state, size_t batch)
{
    state->arms[batch].exists = false;
    if (!pruning_over(&state->pruning)) {
        state->exploring &= state->pruning.awaited != batch;
        pruning_drop(&state->pruning, batch);
    }
}

static void server_fold(void *opaque, const struct event *event)
{
    struct server_state *state = opaque;

    switch (event->kind) {
    case EVENT_RECURRENCE_BEGUN:
    case EVENT_PROFILE_MEASURED:
    case EVENT_EPOCH_REPORTED:
    case EVENT_TRIAL_SEEN:
    case EVENT_PROFILE_KEPT:
    case EVENT_PAST_BROUGHT:
        break;
    case EVENT_TRIAL_PROPOSED:
        fold_proposed(state, event->proposed);
        break;
    case EVENT_TRIAL_ENDED:
        fold_ended(state, event->ended);
        break;
    case EVENT_BATCHES_EXCLUDED:
        fold_excluded(state, event->first_excluded);
        break;
    case EVENT_BATCH_GIVEN_UP:
        fold_given_up(state, event->given_up);
        break;
    }
}

/* ---- proposing ---- */

/* Lists the arms as they are, or as they will be if the bandit begins with this draw. */
static size_t list_arms(const struct server_state *state, size_t *out_batches, struct server_arm *out_arms)
{
    size_t count = 0;

    for (size_t i = 0; i < state->excluded; i++) {
        struct server_arm arm = state->arms[i];

        if (!state->bandit) {
            arm.exists = state->pruning.candidate[i];
            arm_fit(state, &arm, &state->explored[i]);
        }
        if (!arm.exists)
            continue;
        out_batches[count] = i;
        out_arms[count++] = arm;
    }
    return count;
}

/* Random numbers of one draw, from either generator. */
struct draw {
    bool published;
    struct numpy_random numpy;
    struct philox philox;
};

static void draw_order(struct draw *draw, size_t count, uint32_t *out_order)
{
    if (draw->published) {
        numpy_random_permutation(&draw->numpy, (uint32_t)count, out_order);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = philox_below(&draw->philox, i + 1);

        out_order[i] = i;
        out_order[i] = out_order[other];
        out_order[other] = i;
    }
}

static double draw_normal(struct draw *draw)
{
    return draw->published
               ? numpy_random_normal(&draw->numpy)
               : ziggurat_normal(ziggurat_tables(), philox_u64(&draw->philox), philox_source, &draw->philox);
}

/* Chooses the first arm, in a random order, that was seen too seldom; if none, the one of the best draw. */
static size_t choose_arm(const struct server_state *state, struct draw *draw, const struct server_arm *arms,
                         size_t count)
{
    uint32_t order[JOB_BATCHES_MAX];
    double highest_j = -INFINITY;
    size_t best = 0;

    draw_order(draw, count, order);
    for (size_t i = 0; i < count; i++) {
        if (arms[order[i]].observations < state->parameters.explorations)
            return order[i];
    }
    for (size_t i = 0; i < count; i++) {
        double reward_j = arms[i].mean_j + arms[i].deviation_j * draw_normal(draw);

        if (reward_j > highest_j) {
            highest_j = reward_j;
            best = i;
        }
    }
    return best;
}

static int propose_arm(const struct server_state *state, uint64_t trial, struct proposal *proposal,
                       struct fly_error *out_error)
{
    size_t batches[JOB_BATCHES_MAX];
    struct server_arm *arms = malloc(state->spec->batch_count * sizeof *arms);
    struct draw draw = {.published = state->parameters.generator == GENERATOR_NUMPY,
                        .numpy = state->random,
                        .philox = philox_open(state->key, POLICY_STREAM, trial, 0)};
    size_t count;

    if (arms == NULL)
        return error_no_memory(out_error);
    count = list_arms(state, batches, arms);
    if (count > 0) {
        proposal->batch = batches[choose_arm(state, &draw, arms, count)];
        proposal->reason = REASON_SAMPLED;
        proposal->random_after = draw.numpy;
    }
    free(arms);
    return count > 0 ? 0
                     : error_set(out_error, FLY_EEXHAUSTED,
                                 "no batch size is left: each of them failed or does not fit");
}

static int server_propose(const void *opaque, const struct batch_question *question,
                          struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct server_state *state = opaque;
    struct proposal proposal = {.limit_rule = LIMIT_PROFILED,
                                .policy_version = batch_policy_zeus_server.version,
                                .random_after = state->random};
    int code = 0;

    if (state->pruning.exhausted) {
        return error_set(
            out_error, FLY_EEXHAUSTED,
            "no batch size is left: exploration pruned them all; raise beta or allow more epochs");
    } else if (exploration_over(state)) {
        code = propose_arm(state, question->trial, &proposal, out_error);
    } else if (state->exploring) {
        proposal.batch = state->cheapest;
        proposal.reason = REASON_BEST_SEEN;
    } else {
        proposal.batch = state->pruning.awaited;
        proposal.reason = REASON_EXPLORE;
    }
    if (code == 0)
        *out_proposal = proposal;
    return code;
}

/* Judges after the epoch: too expensive comes before reached, and reached before out of epochs. */
static enum verdict server_judge(const void *opaque, const struct progress_question *question)
{
    const struct server_state *state = opaque;
    const struct epoch_reported *reported = question->reported;
    double cost_j =
        fly_cost(state->spec->eta, state->spec->max_power_w, reported->energy_j, reported->time_s);

    if (question->capped && !(cost_j <= state->parameters.beta * state->least_cost_j))
        return VERDICT_COST;
    if (reported->reached)
        return VERDICT_REACHED;
    return reported->epoch >= state->spec->max_epochs ? VERDICT_EPOCHS : VERDICT_GO_ON;
}

/* ---- snapshots ---- */

static void server_save(const void *opaque, struct buffer *bytes)
{
    const struct server_state *state = opaque;

    pruning_save(&state->pruning, bytes);
    bytes_put_u64(bytes, state->exploring);
    bytes_put_u64(bytes, state->explorer);
    bytes_put_u64(bytes, state->proposed);
    bytes_put_u64(bytes, state->bandit);
    bytes_put_double(bytes, state->least_cost_j);
    bytes_put_u64(bytes, state->cheapest);
    bytes_put_u64(bytes, state->excluded);
    numpy_random_save(&state->random, bytes);
    for (size_t i = 0; i < state->spec->batch_count; i++) {
        rewards_save(&state->all[i], bytes);
        rewards_save(&state->explored[i], bytes);
        bytes_put_u64(bytes, state->arms[i].exists);
        bytes_put_double(bytes, state->arms[i].mean_j);
        bytes_put_double(bytes, state->arms[i].deviation_j);
        bytes_put_u64(bytes, state->arms[i].observations);
    }
}

static bool server_load(void *opaque, struct bytes_reader *bytes)
{
    struct server_state *state = opaque;
    size_t count = state->spec->batch_count;

    if (!pruning_load(&state->pruning, bytes))
        return false;
    state->exploring = bytes_bool(bytes);
    state->explorer = bytes_u64(bytes);
    state->proposed = bytes_u64(bytes);
    state->bandit = bytes_bool(bytes);
    state->least_cost_j = bytes_double(bytes);
    state->cheapest = (size_t)bytes_up_to(bytes, count - 1);
    state->excluded = (size_t)bytes_up_to(bytes, count);
    if (!numpy_random_load(&state->random, bytes))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!rewards_load(&state->all[i], bytes) || !rewards_load(&state->explored[i], bytes))
            return false;
        state->arms[i].exists = bytes_bool(bytes);
        state->arms[i].mean_j = bytes_double(bytes);
        state->arms[i].deviation_j = bytes_double(bytes);
        state->arms[i].observations = bytes_u64(bytes);
    }
    return !bytes->failed;
}

const struct batch_policy batch_policy_zeus_server = {
    .name = "zeus-server",
    .summary = "the published batch-size server's search, for its clients",
    .version = 1,
    .weighs_with_batch_limit = true,
    .heeds_window = true,
    .unguarded = true,
    .create = server_create,
    .fold = server_fold,
    .propose = server_propose,
    .judge = server_judge,
    .save = server_save,
    .load = server_load,
};
