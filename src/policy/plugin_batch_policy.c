/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the internal policy table with the public table of a plug-in. */
#include "policy/plugin_batch_policy.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include <flyball/cost.h>

#include "base/math/philox.h"
#include "base/math/portable_math.h"
#include "base/math/ziggurat.h"
#include "policy/past.h"

/* Each draw of a plug-in gets room for the random blocks that rejections use up. */
enum { POLICY_STREAM = 0, DRAW_SHIFT = 16, REASON_MAX = 101 };

struct plugin_state {
    const struct plugin_batch_policy *self;
    const struct job_spec *spec;
    struct fly_batch_job job;
    void *state; /* of the plug-in */
    struct philox_key key;
    double profile_window, profile_steps; /* as in policy_parameters */
};

/* Whether the plug-in fills a slot. A table that was compiled with an older header ends before it. */
#define HAS(self, slot)                                                                              \
    ((self)->table->size >= offsetof(struct fly_batch_policy, slot) + sizeof((self)->table->slot) && \
     (self)->table->slot != NULL)

/* The random numbers of one trial. */
struct trial_random {
    struct fly_random face; /* first member */
    struct philox_key key;
    uint64_t trial;
};

static struct philox random_open(const struct fly_random *face, uint16_t draw)
{
    const struct trial_random *random = (const struct trial_random *)face;

    return philox_open(random->key, POLICY_STREAM, random->trial, (uint32_t)draw << DRAW_SHIFT);
}

static uint64_t random_bits(const struct fly_random *random, uint16_t draw)
{
    struct philox philox = random_open(random, draw);

    return philox_u64(&philox);
}

static double random_normal(const struct fly_random *random, uint16_t draw)
{
    struct philox philox = random_open(random, draw);

    return ziggurat_normal(ziggurat_tables(), philox_u64(&philox), philox_source, &philox);
}

/* Describes the job with the types of the public header. */
static int describe_job(const struct job_spec *spec, const struct policy_parameters *parameters, void *data,
                        struct arena *arena, struct fly_batch_job *out_job)
{
    struct fly_batch_choice *batches = arena_alloc(arena, spec->batch_count, sizeof batches[0]);

    if (batches == NULL)
        return FLY_ENOMEM;
    for (size_t i = 0; i < spec->batch_count; i++)
        batches[i] = (struct fly_batch_choice){spec->batches[i].size, spec->batches[i].limits_w,
                                               spec->batches[i].limit_count};
    *out_job = (struct fly_batch_job){
        .name = spec->name,
        .batches = batches,
        .batch_count = spec->batch_count,
        .default_batch = spec->default_batch,
        .max_epochs = spec->max_epochs,
        .max_power_w = spec->max_power_w,
        .eta = spec->eta,
        .beta = parameters->beta,
        .window = parameters->window,
        .seed = parameters->seed,
        .objective = spec->objective != NULL
                         ? *spec->objective
                         : (struct fly_objective){FLY_OBJECTIVE_COST, spec->eta, INFINITY},
        .gpu_count = spec->gpu_count > 0 ? spec->gpu_count : 1,
        .overlapping = parameters->overlapping,
        .no_default = parameters->no_default,
        .data = data,
    };
    return 0;
}

static int plugin_create(const struct batch_policy *opaque, const struct job_spec *spec,
                         const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                         struct fly_error *out_error)
{
    const struct plugin_batch_policy *self = (const struct plugin_batch_policy *)opaque;
    struct plugin_state *state = arena_alloc(arena, 1, sizeof *state);
    const char *reason = NULL;
    char told[REASON_MAX] = "no reason given";
    int answer;

    if (state == NULL || describe_job(spec, parameters, self->data, arena, &state->job) < 0)
        return error_no_memory(out_error);
    state->self = self;
    state->spec = spec;
    state->key = philox_key(parameters->seed, spec->name);
    state->profile_window = parameters->profile_window;
    state->profile_steps = parameters->profile_steps;
    plugin_enter(&self->plugin, "create");
    answer = self->table->create(&state->job, &state->state, &reason);
    if (answer != 0 && reason != NULL)
        snprintf(told, sizeof told, "%s", reason);
    plugin_leave();
    if (answer != 0)
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s': 'create' failed with %d for job '%.60s': %.100s; mend the "
                         "plug-in or leave it out",
                         self->plugin.path, answer, spec->name, told);
    *out_state = state;
    return 0;
}

static void plugin_destroy(void *opaque)
{
    struct plugin_state *state = opaque;
    const struct plugin_batch_policy *self = state->self;

    if (self->table->destroy == NULL)
        return;
    plugin_enter(&self->plugin, "destroy");
    self->table->destroy(state->state);
    plugin_leave();
}

/* Returns the share of an epoch in which a profile was measured. */
static double profile_share(const struct plugin_state *state, const struct profile_measured *measured)
{
    if (state->profile_steps > 0.0 && measured->units_per_epoch > 1.0)
        return fmin(state->profile_steps * (double)measured->count / measured->units_per_epoch, 1.0);
    return state->profile_window > 0.0 ? state->profile_window : 1.0;
}

static struct fly_profile describe_profile(const struct plugin_state *state,
                                           const struct profile_measured *measured)
{
    double units = measured->units_per_epoch > 0.0 ? measured->units_per_epoch : NAN;
    struct fly_profile profile = {.batch = measured->batch,
                                  .points = measured->points,
                                  .count = measured->count,
                                  .chosen = measured->best,
                                  .units_per_epoch = units,
                                  .window = profile_share(state, measured)};
    double units_at_each = units * profile.window / (double)measured->count;

    for (size_t i = 0; i < measured->count; i++) {
        profile.energy_j += units_at_each * measured->points[i].power_w * measured->points[i].time_s;
        profile.time_s += units_at_each * measured->points[i].time_s;
    }
    return profile;
}

static void fold_profile(struct plugin_state *state, const struct profile_measured *measured)
{
    const struct plugin_batch_policy *self = state->self;

    if (HAS(self, measure)) {
        const struct fly_profile profile = describe_profile(state, measured);

        plugin_enter(&self->plugin, "measure");
        self->table->measure(state->state, &profile);
        plugin_leave();
    } else if (self->table->profile != NULL) {
        plugin_enter(&self->plugin, "profile");
        self->table->profile(state->state, measured->batch, measured->points, measured->count);
        plugin_leave();
    }
}

/* A trial that the policy proposed, or one that it only sees. */
static void fold_trial(struct plugin_state *state, const struct fly_trial *ended, bool seen)
{
    const struct plugin_batch_policy *self = state->self;
    struct fly_trial trial = *ended;
    void (*take)(void *, const struct fly_trial *) = !seen            ? self->table->observe
                                                     : HAS(self, see) ? self->table->see
                                                                      : NULL;

    if (take == NULL)
        return;
    trial.cost_j = fly_cost(state->spec->eta, state->spec->max_power_w, trial.energy_j, trial.time_s);
    plugin_enter(&self->plugin, seen ? "see" : "observe");
    take(state->state, &trial);
    plugin_leave();
}

static void fold_proposed(struct plugin_state *state, size_t batch)
{
    const struct plugin_batch_policy *self = state->self;

    if (!HAS(self, begin))
        return;
    plugin_enter(&self->plugin, "begin");
    self->table->begin(state->state, batch);
    plugin_leave();
}

static void fold_brought(struct plugin_state *state, const struct past_brought *brought)
{
    static const enum fly_past_kind kinds[] = {
        [PAST_HARDWARE] = FLY_PAST_HARDWARE, [PAST_REVISION] = FLY_PAST_REVISION, [PAST_JOB] = FLY_PAST_JOB};
    const struct plugin_batch_policy *self = state->self;

    for (size_t i = 0; HAS(self, bring) && i < brought->count; i++) {
        const struct past_tally *tally = &brought->batches[i].tally;
        const struct fly_past past = {.kind = kinds[brought->kind],
                                      .batch = brought->batches[i].batch,
                                      .reached = tally->reached,
                                      .epochs = tally->reached > 0 ? portable_exp(tally->mean) : 0.0,
                                      .log_epochs_squares = tally->squares,
                                      .stopped = tally->stopped,
                                      .failed = tally->failed,
                                      .stopped_epochs = tally->stopped_epochs,
                                      .epoch_cost_j = portable_exp(tally->log_epoch_cost),
                                      .following = brought->count - 1 - i};

        plugin_enter(&self->plugin, "bring");
        self->table->bring(state->state, &past);
        plugin_leave();
    }
}

/* Tells that the batch sizes from `first`, below `end`, will not be run again. */
static void fold_barred(struct plugin_state *state, size_t first, size_t end, enum fly_bar why)
{
    const struct plugin_batch_policy *self = state->self;

    for (size_t i = first; HAS(self, bar) && i < end; i++) {
        plugin_enter(&self->plugin, "bar");
        self->table->bar(state->state, i, why);
        plugin_leave();
    }
}

static void plugin_fold(void *opaque, const struct event *event)
{
    struct plugin_state *state = opaque;

    switch (event->kind) {
    case EVENT_RECURRENCE_BEGUN:
    case EVENT_EPOCH_REPORTED:
    case EVENT_PROFILE_KEPT: /* the state of a plug-in is never loaded */
        break;
    case EVENT_TRIAL_PROPOSED:
        fold_proposed(state, event->proposed->batch);
        break;
    case EVENT_PROFILE_MEASURED:
        fold_profile(state, event->measured);
        break;
    case EVENT_TRIAL_ENDED:
        fold_trial(state, event->ended, false);
        break;
    case EVENT_TRIAL_SEEN:
        fold_trial(state, event->ended, true);
        break;
    case EVENT_BATCHES_EXCLUDED:
        fold_barred(state, event->first_excluded, state->spec->batch_count, FLY_BAR_MEMORY);
        break;
    case EVENT_BATCH_GIVEN_UP:
        fold_barred(state, event->given_up, event->given_up + 1, FLY_BAR_GIVEN_UP);
        break;
    case EVENT_PAST_BROUGHT:
        fold_brought(state, event->brought);
        break;
    }
}

/* Asks once; the answer is the plug-in's own and unchecked. */
static int ask(const struct plugin_state *state, const struct batch_question *question,
               struct fly_batch_decision *out_decision)
{
    const struct plugin_batch_policy *self = state->self;
    const struct trial_random random = {
        {.bits = random_bits, .normal = random_normal}, state->key, question->trial};
    const struct fly_batch_question asked = {.recurrence = question->recurrence,
                                             .try_number = question->try_number,
                                             .trial = question->trial,
                                             .in_flight = question->in_flight,
                                             .random = &random.face,
                                             .recurrences_left = question->recurrences_left,
                                             .explorers = question->explorers};
    int answer;

    *out_decision = (struct fly_batch_decision){.batch = SIZE_MAX, .limit_rule = FLY_LIMIT_PROFILED};
    plugin_enter(&self->plugin, "propose");
    answer = self->table->propose(state->state, &asked, out_decision);
    plugin_leave();
    return answer;
}

static bool has_limit(const struct batch_choice *batch, double limit_w)
{
    for (size_t i = 0; i < batch->limit_count; i++) {
        if (batch->limits_w[i] == limit_w)
            return true;
    }
    return false;
}

/* Which question it was, for messages; users count from 1. */
#define QUESTION_FORMAT "plug-in '%.200s': 'propose' in recurrence %llu, try %u, "
#define QUESTION_ARGUMENTS(state, question) \
    (state)->self->plugin.path, (unsigned long long)(question)->recurrence + 1, (question)->try_number + 1

static int check_decision(const struct plugin_state *state, const struct batch_question *question,
                          const struct fly_batch_decision *decision, struct fly_error *out_error)
{
    const struct job_spec *spec = state->spec;

    if (decision->batch >= spec->batch_count)
        return error_set(out_error, FLY_EDATA,
                         QUESTION_FORMAT "gave batch index %zu of a job with %zu batch sizes; set it to one "
                                         "from 0 to %zu",
                         QUESTION_ARGUMENTS(state, question), decision->batch, spec->batch_count,
                         spec->batch_count - 1);
    if (decision->limit_rule != FLY_LIMIT_PROFILED && decision->limit_rule != FLY_LIMIT_FIXED)
        return error_set(out_error, FLY_EDATA,
                         QUESTION_FORMAT
                         "gave limit rule %d; set it to FLY_LIMIT_PROFILED or FLY_LIMIT_FIXED",
                         QUESTION_ARGUMENTS(state, question), (int)decision->limit_rule);
    if (decision->limit_rule == FLY_LIMIT_FIXED &&
        !has_limit(&spec->batches[decision->batch], decision->limit_w))
        return error_set(
            out_error, FLY_EDATA,
            QUESTION_FORMAT "gave a power limit of %g W, which batch size %u does not have; set it to one of "
                            "its limits_w",
            QUESTION_ARGUMENTS(state, question), decision->limit_w, spec->batches[decision->batch].size);
    return 0;
}

static bool same_decision(const struct fly_batch_decision *one, const struct fly_batch_decision *other)
{
    return one->batch == other->batch && one->limit_rule == other->limit_rule &&
           (one->limit_rule != FLY_LIMIT_FIXED || one->limit_w == other->limit_w);
}

static int plugin_propose(const void *opaque, const struct batch_question *question,
                          struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct plugin_state *state = opaque;
    struct fly_batch_decision decision, again;
    int answer = ask(state, question, &decision);
    int code;

    if (answer == FLY_NOTHING_LEFT)
        return error_set(out_error, FLY_EEXHAUSTED, "plug-in '%.200s' has no batch size left to propose",
                         state->self->plugin.path);
    if (answer != 0)
        return error_set(out_error, FLY_EDATA,
                         QUESTION_FORMAT "failed with %d; mend the plug-in or leave it out",
                         QUESTION_ARGUMENTS(state, question), answer);
    code = check_decision(state, question, &decision, out_error);
    if (code < 0)
        return code;
    if (ask(state, question, &again) != 0 || !same_decision(&decision, &again))
        return error_set(out_error, FLY_EDATA,
                         QUESTION_FORMAT "gave two answers to one question; take random numbers from the "
                                         "question alone and change nothing in 'propose'",
                         QUESTION_ARGUMENTS(state, question));
    *out_proposal =
        (struct proposal){.batch = decision.batch,
                          .limit_rule = decision.limit_rule == FLY_LIMIT_FIXED ? LIMIT_FIXED : LIMIT_PROFILED,
                          .limit_w = decision.limit_w,
                          .reason = REASON_PLUGIN,
                          .policy_version = state->self->policy.version};
    return 0;
}

static uint32_t ask_epochs(const struct plugin_state *state, const struct epoch_question *told,
                           const char *function)
{
    const struct plugin_batch_policy *self = state->self;
    const struct fly_cap_question asked = {
        told->batch,           told->epoch_energy_j,   told->epoch_time_s,
        told->highest_limit_w, told->recurrences_left, told->apart_energy_j,
        told->apart_time_s};
    uint32_t epochs;

    plugin_enter(&self->plugin, function);
    epochs = HAS(self, cap) ? self->table->cap(state->state, &asked)
                            : self->table->epoch_cap(state->state, told->batch, told->epoch_energy_j,
                                                     told->epoch_time_s);
    plugin_leave();
    return epochs;
}

static int plugin_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                            struct fly_error *out_error)
{
    const struct plugin_state *state = opaque;
    const char *function = HAS(state->self, cap) ? "cap" : "epoch_cap";
    uint32_t epochs = ask_epochs(state, question, function);

    if (epochs > state->spec->max_epochs)
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s': '%s' gave %u epochs; return at most max_epochs, which is %u",
                         state->self->plugin.path, function, epochs, state->spec->max_epochs);
    *out_epochs = epochs;
    return 0;
}

/* Fills in what follows from a table that was opened; closes it if it lacks a function. */
static int finish_open(struct plugin_batch_policy *self, const struct plugin_head *head, void *data,
                       struct plugin_batch_policy *out_policy, struct fly_error *out_error)
{
    const struct fly_batch_policy *table = (const struct fly_batch_policy *)head;
    const char *missing = table->create == NULL ? "create" : table->propose == NULL ? "propose" : NULL;

    if (missing != NULL) {
        int code = plugin_lacks(&self->plugin, missing, out_error);

        plugin_close(&self->plugin);
        return code;
    }
    self->table = table;
    self->data = data;
    self->policy = (struct batch_policy){
        .name = self->plugin.name,
        .summary = "a plug-in",
        .version = head->version,
        .content = self->plugin.content,
        .create = plugin_create,
        .destroy = plugin_destroy,
        .fold = plugin_fold,
        .propose = plugin_propose,
        .heeds_past = HAS(self, bring),
        .heeds_window = true,
        .epoch_cap = self->table->epoch_cap != NULL || HAS(self, cap) ? plugin_epoch_cap : NULL,
    };
    *out_policy = *self;
    return 0;
}

int plugin_batch_policy_open(const char *path, struct plugin_batch_policy *out_policy,
                             struct fly_error *out_error)
{
    struct plugin_batch_policy self = {.table = NULL};
    const struct plugin_head *head;
    int code = plugin_open(path, "fly_batch_policy_plugin", offsetof(struct fly_batch_policy, begin),
                           sizeof *self.table, &self.plugin, &head, out_error);

    return code < 0 ? code : finish_open(&self, head, NULL, out_policy, out_error);
}

int plugin_batch_policy_of(const struct fly_batch_policy *table, void *data,
                           struct plugin_batch_policy *out_policy, struct fly_error *out_error)
{
    struct plugin_batch_policy self = {.table = NULL};
    const struct plugin_head *head = (const struct plugin_head *)table;
    int code = plugin_of_table(head, offsetof(struct fly_batch_policy, begin), sizeof *self.table,
                               &self.plugin, out_error);

    return code < 0 ? code : finish_open(&self, head, data, out_policy, out_error);
}

void plugin_batch_policy_close(struct plugin_batch_policy *policy)
{
    plugin_close(&policy->plugin);
}
