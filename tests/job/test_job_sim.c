/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world, lived through a job over a store: each decision is the
 * simulator's, also when the process that asks is a new one each time.
 */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/core/definition.h"
#include "sim_tries.h"

enum { RECURRENCES = 60, SEEDS = 2 };

/* One job of the campaign. */
struct run {
    struct workload workload;
    struct policy_parameters parameters;
    const struct batch_policy *policy;
    uint64_t recurrences;
    bool each_epoch;     /* reports each, not the first and last alone */
    bool new_process;    /* for each recurrence */
    double max_slowdown; /* 0: no bound */
    bool of_grid;        /* counts grams, of a grid whose intensity doubles every other trial */
};

static struct fly_job_definition define(const struct run *run, uint32_t *sizes)
{
    const struct job_spec *spec = &run->workload.spec;
    struct fly_job_definition definition = job_definition_default;

    for (size_t i = 0; i < spec->batch_count; i++)
        sizes[i] = spec->batches[i].size;
    definition.name = spec->name;
    definition.batch_sizes = sizes;
    definition.batch_count = spec->batch_count;
    definition.default_batch_size = sizes[spec->default_batch];
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, spec->eta,
                                                  run->max_slowdown > 0.0 ? run->max_slowdown : INFINITY};
    if (run->of_grid) {
        definition.objective = (struct fly_objective){FLY_OBJECTIVE_CARBON, 0.5, INFINITY};
        definition.grid = "gb:national";
    }
    definition.beta = run->parameters.beta;
    definition.target = FLY_TARGET_AT_LEAST;
    definition.target_metric = 1.0;
    definition.max_epochs = spec->max_epochs;
    definition.policy = run->policy->name;
    definition.seed = run->parameters.seed;
    definition.window = run->parameters.window;
    definition.one_at_a_time = true;
    definition.generator = run->parameters.generator;
    return definition;
}

static size_t find_size(const struct job_spec *spec, uint32_t size)
{
    size_t at = 0;

    while (spec->batches[at].size != size)
        at++;
    return at;
}

/* Reports what the trace says of a training, and checks that the job stops it where the simulator does. */
static void report_training(struct job_fixture *fixture, const struct run *run,
                            const struct job_proposal *proposal, const struct training *training,
                            double epoch_energy_j, double epoch_time_s)
{
    uint32_t last = (uint32_t)training->epochs;

    for (uint32_t epoch = 1; epoch <= last; epoch++) {
        double missing = (double)(last - epoch);
        struct job_answered answered;

        if (!run->each_epoch && epoch > 1 && epoch < last)
            continue;
        answered = job_fixture_report(
            fixture,
            &(struct job_epoch){.job = run->workload.spec.name,
                                .trial = proposal->trial,
                                .attempt = 1,
                                .epoch = epoch,
                                .metric = epoch == last && training->reached ? 1.0 : 0.0,
                                .energy_j = training->energy_j - missing * epoch_energy_j,
                                .time_s = training->time_s - missing * epoch_time_s,
                                .reference_per_kwh =
                                    run->of_grid ? 200.0 + 200.0 * (double)(proposal->trial % 2) : NAN});
        if (epoch < last)
            assert_int_equal(answered.answer, JOB_GO_ON);
        else
            assert_int_equal(answered.answer, training->reached ? JOB_REACHED : JOB_STOP);
    }
}

/* One try through the job; whether it reached its target. */
static bool live_try(struct job_fixture *fixture, const struct run *run, struct environment *environment,
                     uint64_t recurrence, struct sim_tries *out_tries)
{
    const struct workload *workload = &run->workload;
    const struct job_spec *spec = &workload->spec;
    struct job_question question = job_fixture_question(spec->name);
    struct job_proposal proposal;
    struct training training;
    const struct fly_power_point *epoch;
    char submission[32];
    size_t batch, point;
    double target_epoch;
    uint32_t path, cap;
    bool profiling;

    snprintf(submission, sizeof submission, "r%llu", (unsigned long long)recurrence);
    question.submission = submission;
    question.hardware.limits_w = spec->batches[0].limits_w;
    question.hardware.limit_count = spec->batches[0].limit_count;
    proposal = job_fixture_propose(fixture, &question);
    assert_int_equal(proposal.recurrence, recurrence);
    batch = find_size(spec, proposal.batch_size);
    profiling = proposal.wants_profile;
    cap = proposal.epochs;
    if (profiling) {
        struct job_choice choice;
        struct fly_error error;

        check_fine(fixture->jobs.backend->profile(
                       fixture->jobs.self,
                       &(struct job_profile){.job = spec->name,
                                             .trial = proposal.trial,
                                             .points = workload->batches[batch].points,
                                             .point_count = workload->batches[batch].point_count,
                                             .units_per_epoch = 1.0},
                       &choice, &error),
                   error);
        proposal.limit_w = choice.limit_w;
        cap = choice.epochs;
    }
    point = workload_find_limit(&workload->batches[batch], proposal.limit_w);
    assert_true(point < workload->batches[batch].point_count);
    epoch = &workload->batches[batch].points[point];
    target_epoch = environment_target_epoch(
        environment, &(struct training_order){recurrence, proposal.try_number, batch, cap}, &path);
    training = environment_train(workload, batch, point, target_epoch, cap,
                                 environment_profiled(environment, profiling, cap));
    if (!training.ran) {
        job_fixture_end(fixture, &(struct job_end){.job = spec->name,
                                                   .trial = proposal.trial,
                                                   .attempt = 1,
                                                   .outcome = TRIAL_REFUSED,
                                                   .energy_j = training.energy_j,
                                                   .time_s = training.time_s});
        if (!(training.time_s > 0.0))
            return false;
    } else {
        report_training(fixture, run, &proposal, &training, epoch->time_s * epoch->power_w, epoch->time_s);
    }
    sim_tries_keep(out_tries, &(struct try_record){.recurrence = recurrence,
                                                   .number = out_tries->count,
                                                   .batch_size = proposal.batch_size,
                                                   .power_limit_w = proposal.limit_w,
                                                   .path = path,
                                                   .reached = training.reached,
                                                   .energy_j = training.energy_j,
                                                   .time_s = training.time_s});
    return training.reached;
}

static void live(struct job_fixture *fixture, const struct run *run, size_t tries,
                 struct sim_tries *out_tries)
{
    uint32_t sizes[JOB_BATCHES_MAX] = {0};
    const struct fly_job_definition definition = define(run, sizes);
    struct environment environment;

    environment_init(&environment, &run->workload, run->workload.spec.name, run->parameters.seed,
                     run->parameters.generator);
    environment.profile_window = run->parameters.profile_window;
    job_fixture_define(fixture, &definition);
    for (uint64_t recurrence = 0; out_tries->count < tries; recurrence++) {
        if (run->new_process)
            job_fixture_reopen(fixture);
        for (bool reached = false; !reached && out_tries->count < tries;)
            reached = live_try(fixture, run, &environment, recurrence, out_tries);
    }
}

static void check_run(const struct run *run)
{
    struct sim_tries *simulated = calloc(1, sizeof *simulated), *lived = calloc(1, sizeof *lived);
    struct job_fixture fixture;
    struct fly_error error;
    char name[128];
    int code;

    job_fixture_open(&fixture);
    code = sim_tries_run(&run->workload, run->policy, &run->parameters, run->recurrences, simulated, &error);
    assert_true(code == 0 || code == FLY_EEXHAUSTED);
    assert_true(simulated->count > 0);
    live(&fixture, run, simulated->count, lived);
    snprintf(name, sizeof name, "%s, seed %u", run->workload.spec.name, run->parameters.seed);
    sim_tries_compare(name, simulated, lived);
    job_fixture_close(&fixture);
    free(simulated);
    free(lived);
}

static void test_known_jobs(void **state)
{
    (void)state;
    for (size_t job = 0; job < known_job_count; job++) {
        struct run run = {.policy = &batch_policy_zeus, .recurrences = RECURRENCES};

        sim_tries_workload("v100", job, &run.workload);
        for (uint32_t seed = 1; seed <= SEEDS; seed++) {
            run.parameters = (struct policy_parameters){
                .beta = 2.0,
                .seed = seed,
                .guard = GUARD_ON,
                .window = seed == 2 ? 4 : 0,
                .generator = seed == 1 ? GENERATOR_PHILOX : GENERATOR_NUMPY,
            };
            run.each_epoch = seed == 1 && run.workload.spec.max_epochs < 20;
            run.new_process = seed == 1;
            check_run(&run);
        }
        workload_close(&run.workload);
    }
}

/*
 * A policy that learns from epochs, and leaves a batch size after its profile: a job's log tells it as the
 * simulator does.
 */
static void test_bayes(void **state)
{
    (void)state;
    for (size_t job = 0; job < known_job_count; job++) {
        struct run run = {.policy = &batch_policy_bayes,
                          .recurrences = RECURRENCES,
                          .parameters = {.beta = 2.0, .seed = 5, .guard = GUARD_ON, .profile_window = 0.1},
                          .new_process = job % 2 == 0};

        sim_tries_workload("v100", job, &run.workload);
        check_run(&run);
        workload_close(&run.workload);
    }
}

/* A bound on the slowdown, kept by the policy or for it, is kept in the same way in both. */
static void test_bounds(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_bayes, &batch_policy_zeus,
                                                          &batch_policy_grid};

    (void)state;
    for (size_t job = 0; job < known_job_count; job++) {
        for (size_t i = 0; i < COUNT(policies); i++) {
            struct run run = {
                .policy = policies[i],
                .recurrences = RECURRENCES,
                .parameters = {.beta = 2.0, .seed = 6, .guard = GUARD_ON, .profile_window = 0.1},
                .max_slowdown = 1.03,
                .new_process = job % 2 == 1};
            const struct fly_objective objective = {FLY_OBJECTIVE_COST, 0.5, run.max_slowdown};

            sim_tries_workload("v100", job, &run.workload);
            run.workload.spec.objective = &objective;
            check_run(&run);
            workload_close(&run.workload);
        }
    }
}

/* A trace has no words for a grid, and needs none: the simulator of energy decides the same. */
static void test_grid(void **state)
{
    struct run run = {.policy = &batch_policy_zeus,
                      .recurrences = RECURRENCES,
                      .parameters = {.beta = 2.0, .seed = 4, .guard = GUARD_ON},
                      .new_process = true,
                      .of_grid = true};

    (void)state;
    sim_tries_workload("v100", 1, &run.workload);
    run.workload.spec.eta = 1.0;
    check_run(&run);
    workload_close(&run.workload);
}

static void test_policies(void **state)
{
    static const struct batch_policy *const policies[] = {&batch_policy_default, &batch_policy_grid};

    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        struct run run = {.policy = policies[i],
                          .recurrences = RECURRENCES,
                          .parameters = {.beta = 2.0, .seed = 3, .guard = GUARD_ON},
                          .new_process = true};

        sim_tries_workload("p100", 2, &run.workload);
        check_run(&run);
        workload_close(&run.workload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_jobs), cmocka_unit_test(test_bayes), cmocka_unit_test(test_policies),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
