/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_POLICY_BAYES_WORLD_H
#define FLYBALL_TESTS_POLICY_BAYES_WORLD_H

#include <math.h>

#include "test.h"

#include "policy/decider.h"

/* Small worlds in which the policy `bayes` decides, through the decider as live jobs and simulations drive
 * it. */
enum { N = 6, DEFAULT = 2, LIMITS = 2, MAX_EPOCHS = 100, TRIES_MAX = 20 };

static const double limits_w[LIMITS] = {100, 200};
static const struct batch_choice batches[N] = {{16, limits_w, LIMITS},  {32, limits_w, LIMITS},
                                               {64, limits_w, LIMITS},  {128, limits_w, LIMITS},
                                               {256, limits_w, LIMITS}, {512, limits_w, LIMITS}};
static const struct job_spec spec = {.name = "job",
                                     .batches = batches,
                                     .batch_count = N,
                                     .default_batch = DEFAULT,
                                     .max_epochs = MAX_EPOCHS,
                                     .max_power_w = 200.0,
                                     .eta = 0.5};

/* A world: epochs to the target, and seconds of an epoch, by batch size; epochs of 0 never reach it. */
struct world {
    double epochs[N], epoch_s[N];
    double scatter; /* relative, uniform */
    double level;   /* factor of all epochs */
};

static const struct world larger_is_better = {
    .epochs = {20, 20, 20, 20, 22, 60}, .epoch_s = {160, 120, 100, 90, 85, 82}, .level = 1.0};

struct life {
    struct arena arena;
    struct decider decider;
    uint64_t recurrences, random;
};

static inline void begin(struct life *life, double horizon)
{
    struct fly_error error;

    *life = (struct life){.random = 1};
    arena_init(&life->arena, 1 << 20);
    if (decider_init(&life->decider, &spec, &batch_policy_bayes,
                     &(struct policy_parameters){.beta = 2.0, .horizon = horizon}, &life->arena, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void finish(struct life *life)
{
    decider_deinit(&life->decider);
    arena_deinit(&life->arena);
}

static inline void tell(struct life *life, const struct event *event)
{
    assert_int_equal(decider_fold(&life->decider, event, NULL), 0);
}

static inline void propose(struct life *life, uint32_t try_number, struct proposal *out_proposal)
{
    assert_int_equal(decider_propose(&life->decider, life->recurrences, try_number, out_proposal, NULL), 0);
    tell(life, &(struct event){.kind = EVENT_TRIAL_PROPOSED, .proposed = out_proposal});
}

static inline double epoch_energy_j(const struct world *world, size_t batch)
{
    return 200.0 * world->epoch_s[batch];
}

static inline void profile(struct life *life, const struct world *world, size_t batch)
{
    double seconds = world->epoch_s[batch];
    const struct fly_power_point points[LIMITS] = {{100, 100, 3.0 * seconds}, {200, 200, seconds}};

    tell(life,
         &(struct event){.kind = EVENT_PROFILE_MEASURED,
                         .measured = &(struct profile_measured){
                             .batch = batch, .points = points, .count = LIMITS, .units_per_epoch = 1.0}});
}

static inline uint32_t cap(const struct life *life, const struct world *world, size_t batch)
{
    uint32_t epochs = 0;

    assert_int_equal(decider_epoch_cap(&life->decider, batch, epoch_energy_j(world, batch),
                                       world->epoch_s[batch], &epochs, NULL),
                     0);
    assert_true(epochs >= 1 && epochs <= MAX_EPOCHS);
    return epochs;
}

/* As it ends under limits under which it costs so many times as much, which is told. */
static inline void end_dearer(struct life *life, const struct world *world, size_t batch, double epochs,
                              double dearer)
{
    const struct fly_trial ended = {.trial = life->decider.trials - 1,
                                    .recurrence = life->recurrences,
                                    .batch = batch,
                                    .limit_w = 200,
                                    .outcome = TRIAL_REACHED,
                                    .epochs = epochs,
                                    .energy_j = epochs * dearer * epoch_energy_j(world, batch),
                                    .time_s = epochs * dearer * world->epoch_s[batch],
                                    .dearer = dearer};

    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

static inline void end(struct life *life, const struct world *world, size_t batch, double epochs,
                       bool reached)
{
    const struct fly_trial ended = {.trial = life->decider.trials - 1,
                                    .recurrence = life->recurrences,
                                    .batch = batch,
                                    .limit_w = 200,
                                    .outcome = reached ? TRIAL_REACHED : TRIAL_NOT_REACHED,
                                    .epochs = epochs,
                                    .energy_j = epochs * epoch_energy_j(world, batch),
                                    .time_s = epochs * world->epoch_s[batch]};

    tell(life, &(struct event){.kind = EVENT_TRIAL_ENDED, .ended = &ended});
}

/* Runs one recurrence; returns its tries, and the first and the last batch size. */
static inline uint32_t recur(struct life *life, const struct world *world, size_t *out_first,
                             size_t *out_last)
{
    tell(life, &(struct event){.kind = EVENT_RECURRENCE_BEGUN});
    for (uint32_t i = 0; i < TRIES_MAX; i++) {
        struct proposal proposal;
        double needed;
        uint32_t epochs;
        bool reached;

        propose(life, i, &proposal);
        if (decider_wants_profile(&life->decider, &proposal))
            profile(life, world, proposal.batch);
        check_double(decider_limit_w(&life->decider, &proposal), 200.0);
        epochs = proposal.uncapped ? MAX_EPOCHS : cap(life, world, proposal.batch);
        needed = ceil(world->level * world->epochs[proposal.batch] *
                      (1.0 + world->scatter * (test_uniform(&life->random) - 0.5)));
        reached = needed > 0.0 && needed <= epochs;
        end(life, world, proposal.batch, reached ? needed : epochs, reached);
        if (i == 0 && out_first != NULL)
            *out_first = proposal.batch;
        if (reached) {
            if (out_last != NULL)
                *out_last = proposal.batch;
            life->recurrences++;
            return i + 1;
        }
    }
    fail_msg("recurrence %llu did not end", (unsigned long long)life->recurrences);
    return 0;
}

#endif
