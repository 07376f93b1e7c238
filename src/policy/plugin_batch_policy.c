/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the internal policy table with the public table of a plug-in. */
#include "policy/plugin_batch_policy.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include <flyball/cost.h>

#include "base/math/philox.h"
#include "base/math/ziggurat.h"

/* Each draw of a plug-in gets room for the random blocks that rejections use up. */
enum { POLICY_STREAM = 0, DRAW_SHIFT = 16, REASON_MAX = 101 };

struct plugin_state {
    const struct plugin_batch_policy *self;
    const struct job_spec *spec;
    struct fly_batch_job job;
    void *state; /* of the plug-in */
    struct philox_key key;
};

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
static int describe_job(const struct job_spec *spec, const struct policy_parameters *parameters,
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

    if (state == NULL || describe_job(spec, parameters, arena, &state->job) < 0)
        return error_no_memory(out_error);
    state->self = self;
    state->spec = spec;
    state->key = philox_key(parameters->seed, spec->name);
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

static void fold_profile(struct plugin_state *state, const struct profile_measured *measured)
{
    const struct plugin_batch_policy *self = state->self;

    if (self->table->profile == NULL)
        return;
    plugin_enter(&self->plugin, "profile");
    self->table->profile(state->state, measured->batch, measured->points, measured->count);
    plugin_leave();
}

static void fold_ended(struct plugin_state *state, const struct trial_ended *ended)
{
    static const enum fly_trial_outcome outcomes[] = {[TRIAL_REACHED] = FLY_TRIAL_REACHED,
                                                      [TRIAL_NOT_REACHED] = FLY_TRIAL_NOT_REACHED,
                                                      [TRIAL_REFUSED] = FLY_TRIAL_REFUSED,
                                                      [TRIAL_STOPPED] = FLY_TRIAL_STOPPED,
                                                      [TRIAL_OUT_OF_MEMORY] = FLY_TRIAL_OUT_OF_MEMORY,
                                                      [TRIAL_CRASHED] = FLY_TRIAL_CRASHED,
                                                      [TRIAL_EXPIRED] = FLY_TRIAL_EXPIRED};
    const struct plugin_batch_policy *self = state->self;
    const struct fly_trial trial = {
        .recurrence = ended->recurrence,
        .try_number = ended->try_number,
        .batch = ended->batch,
        .limit_w = ended->limit_w,
        .outcome = outcomes[ended->outcome],
        .energy_j = ended->energy_j,
        .time_s = ended->time_s,
        .cost_j = fly_cost(state->spec->eta, state->spec->max_power_w, ended->energy_j, ended->time_s),
        .epochs = ended->epochs,
    };

    if (self->table->observe == NULL)
        return;
    plugin_enter(&self->plugin, "observe");
    self->table->observe(state->state, &trial);
    plugin_leave();
}

static void fold_proposed(struct plugin_state *state, size_t batch)
{
    const struct plugin_batch_policy *self = state->self;

    if (self->table->size < sizeof *self->table || self->table->begin == NULL)
        return;
    plugin_enter(&self->plugin, "begin");
    self->table->begin(state->state, batch);
    plugin_leave();
}

static void plugin_fold(void *opaque, const struct event *event)
{
    struct plugin_state *state = opaque;

    switch (event->kind) {
    case EVENT_RECURRENCE_BEGUN:
    case EVENT_EPOCH_REPORTED:
    case EVENT_TRIAL_SEEN:
    case EVENT_PROFILE_KEPT:
    case EVENT_BATCH_GIVEN_UP:
    case EVENT_PAST_BROUGHT:     /* a plug-in learns from what it is told of trials alone */
    case EVENT_BATCHES_EXCLUDED: /* the job makes sure that these are not run */
        break;
    case EVENT_TRIAL_PROPOSED:
        fold_proposed(state, event->proposed->batch);
        break;
    case EVENT_PROFILE_MEASURED:
        fold_profile(state, event->measured);
        break;
    case EVENT_TRIAL_ENDED:
        fold_ended(state, event->ended);
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
                                             .random = &random.face};
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

static int plugin_epoch_cap(const void *opaque, const struct epoch_question *question, uint32_t *out_epochs,
                            struct fly_error *out_error)
{
    const struct plugin_state *state = opaque;
    const struct plugin_batch_policy *self = state->self;
    uint32_t epochs;

    plugin_enter(&self->plugin, "epoch_cap");
    epochs = self->table->epoch_cap(state->state, question->batch, question->epoch_energy_j,
                                    question->epoch_time_s);
    plugin_leave();
    if (epochs > state->spec->max_epochs)
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s': 'epoch_cap' gave %u epochs, and the job may run %u; return at "
                         "most the job's max_epochs",
                         self->plugin.path, epochs, state->spec->max_epochs);
    *out_epochs = epochs;
    return 0;
}

static const char *missing_function(const struct fly_batch_policy *table)
{
    return table->create == NULL ? "create" : table->propose == NULL ? "propose" : NULL;
}

int plugin_batch_policy_open(const char *path, struct plugin_batch_policy *out_policy,
                             struct fly_error *out_error)
{
    struct plugin_batch_policy self = {.table = NULL};
    const struct plugin_head *head;
    int code = plugin_open(path, "fly_batch_policy_plugin", offsetof(struct fly_batch_policy, begin),
                           sizeof *self.table, &self.plugin, &head, out_error);

    if (code < 0)
        return code;
    self.table = (const struct fly_batch_policy *)head;
    if (missing_function(self.table) != NULL) {
        code = plugin_lacks(&self.plugin, missing_function(self.table), out_error);
        plugin_close(&self.plugin);
        return code;
    }
    self.policy = (struct batch_policy){
        .name = self.plugin.name,
        .summary = "a plug-in",
        .version = head->version,
        .content = self.plugin.content,
        .create = plugin_create,
        .destroy = plugin_destroy,
        .fold = plugin_fold,
        .propose = plugin_propose,
        .epoch_cap = self.table->epoch_cap != NULL ? plugin_epoch_cap : NULL,
    };
    *out_policy = self;
    return 0;
}

void plugin_batch_policy_close(struct plugin_batch_policy *policy)
{
    plugin_close(&policy->plugin);
}
