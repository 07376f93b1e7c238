/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world, lived through sessions over a log on disk: each decision is the
 * simulator's. Between session and log stands a tap that puts the trace's seconds and
 * joules in the place of those that were measured on the emulated GPU, so that the
 * comparison is exact.
 */
#include "session_scene.h"

#include "job_fixture.h"
#include "sim_tries.h"

enum { RECURRENCES = 25 };

/* The log, and what the trace says of the try under way. */
struct tap {
    struct job_fixture fixture;
    const struct workload *workload;
    size_t batch;
    struct training training;
    double epoch_energy_j, epoch_time_s;
};

static const struct jobs *behind(const struct tap *tap)
{
    return &tap->fixture.jobs;
}

static int tap_define(void *self, const struct fly_job_definition *definition,
                      struct job_registered *out_registered, struct fly_error *out_error)
{
    struct tap *tap = self;
    struct fly_job_definition one = *definition;

    one.one_at_a_time = true; /* as the simulator's are */
    return behind(tap)->backend->define(behind(tap)->self, &one, out_registered, out_error);
}

static int tap_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                       struct fly_error *out_error)
{
    struct tap *tap = self;
    struct job_question asked = *question;
    int code;

    asked.hardware.max_power_w = tap->workload->spec.max_power_w;
    code = behind(tap)->backend->propose(behind(tap)->self, &asked, out_proposal, out_error);
    for (tap->batch = 0;
         code == 0 && tap->workload->spec.batches[tap->batch].size != out_proposal->batch_size;)
        tap->batch++;
    return code;
}

static int tap_profile(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                       struct fly_error *out_error)
{
    struct tap *tap = self;
    struct job_profile exact = *profile;

    assert_true(profile->point_count >= 2);
    check_double(profile->units_per_epoch, 1.0);
    exact.points = tap->workload->batches[tap->batch].points;
    exact.point_count = tap->workload->batches[tap->batch].point_count;
    return behind(tap)->backend->profile(behind(tap)->self, &exact, out_choice, out_error);
}

static int tap_heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    struct tap *tap = self;

    return behind(tap)->backend->heartbeat(behind(tap)->self, beat, out_error);
}

static int tap_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                      struct fly_error *out_error)
{
    struct tap *tap = self;
    double missing = tap->training.epochs - epoch->epoch;
    struct job_epoch exact = *epoch;

    assert_true(epoch->energy_j > 0.0 && epoch->time_s > 0.0);
    exact.energy_j = tap->training.energy_j - missing * tap->epoch_energy_j;
    exact.time_s = tap->training.time_s - missing * tap->epoch_time_s;
    return behind(tap)->backend->report(behind(tap)->self, &exact, out_answered, out_error);
}

static int tap_end(void *self, const struct job_end *end, struct job_ended *out_ended,
                   struct fly_error *out_error)
{
    struct tap *tap = self;
    struct job_end exact = *end;

    exact.energy_j = tap->training.energy_j;
    exact.time_s = tap->training.time_s;
    return behind(tap)->backend->end(behind(tap)->self, &exact, out_ended, out_error);
}

static const struct job_backend tap_backend = {.name = "tap",
                                               .define = tap_define,
                                               .propose = tap_propose,
                                               .profile = tap_profile,
                                               .heartbeat = tap_heartbeat,
                                               .report = tap_report,
                                               .end = tap_end};

/* Steps until the limit is known: the search, and the log's choice of what it found. */
static enum fly_answer find_limit(struct scene *scene)
{
    enum fly_answer answer = FLY_GO_ON;

    fly_session_epoch_begin(scene->session);
    for (int i = 0; i < 5000 && answer == FLY_GO_ON && isnan(scene->session->limit.held_w); i++) {
        answer = fly_session_step_begin(scene->session);
        tuner_bench_work(&scene->bench);
    }
    return answer;
}

/* One try of the session; whether it reached its target. */
static bool live_try(struct scene *scene, struct tap *tap, struct environment *environment,
                     uint64_t recurrence, struct sim_tries *out_tries)
{
    const struct workload *workload = tap->workload;
    struct fly_session *session = scene->session;
    bool profiling = session->proposal.wants_profile;
    const struct fly_power_point *epoch;
    enum fly_answer answer;
    uint32_t path, last;
    double target_epoch;
    size_t point;

    assert_int_equal(session->proposal.recurrence, recurrence);
    tap->training = (struct training){.ran = false};
    if (find_limit(scene) == FLY_STOP)
        return false;
    point = workload_find_limit(&workload->batches[tap->batch], session->limit.held_w);
    assert_true(point < workload->batches[tap->batch].point_count);
    epoch = &workload->batches[tap->batch].points[point];
    target_epoch = environment_target_epoch(
        environment,
        &(struct training_order){recurrence, session->proposal.try_number, tap->batch, session->epochs},
        &path);
    tap->training = environment_train(workload, tap->batch, point, target_epoch, session->epochs, profiling);
    tap->epoch_energy_j = epoch->time_s * epoch->power_w;
    tap->epoch_time_s = epoch->time_s;
    assert_true(tap->training.ran);
    last = (uint32_t)tap->training.epochs;
    for (uint32_t i = 1; i <= last; i += i == 1 && last > 1 ? last - 1 : 1) {
        bool final = i == last;

        tuner_bench_pass(&scene->bench, 1.0);
        assert_true(session_set_epoch(session, i));
        answer = fly_session_report(session, final && tap->training.reached ? 1.0 : 0.0);
        assert_string_equal(post_look(session->post).text, "");
        assert_int_equal(answer, !final ? FLY_GO_ON : tap->training.reached ? FLY_REACHED : FLY_STOP);
    }
    sim_tries_keep(out_tries, &(struct try_record){.recurrence = recurrence,
                                                   .batch_size = session->proposal.batch_size,
                                                   .power_limit_w = session->limit.held_w,
                                                   .path = path,
                                                   .reached = tap->training.reached,
                                                   .energy_j = tap->training.energy_j});
    return tap->training.reached;
}

static void live(const struct workload *workload, const struct policy_parameters *parameters,
                 struct sim_tries *out_tries)
{
    const struct job_spec *spec = &workload->spec;
    struct tap *tap = calloc(1, sizeof *tap);
    uint32_t sizes[JOB_BATCHES_MAX];
    struct environment environment;
    struct scene scene;

    assert_non_null(tap);
    tap->workload = workload;
    job_fixture_open(&tap->fixture);
    scene_begin(&scene);
    scene.jobs = (struct jobs){&tap_backend, tap};
    for (size_t i = 0; i < spec->batch_count; i++)
        sizes[i] = spec->batches[i].size;
    scene.options.job_name = spec->name;
    scene.options.objective = (struct fly_objective){FLY_OBJECTIVE_COST, spec->eta, INFINITY};
    scene.options.batch_sizes = sizes;
    scene.options.batch_count = spec->batch_count;
    scene.options.default_batch_size = sizes[spec->default_batch];
    scene.options.target_metric = 1.0;
    scene.options.max_epochs = spec->max_epochs;
    scene.options.beta = parameters->beta;
    scene.options.policy = batch_policy_zeus.name;
    scene.options.seed = parameters->seed;
    scene.options.run = "";
    scene.options.tries = FLY_SESSION_ALWAYS;
    scene.options.samples_per_epoch = 1;
    scene.options.limits_w = spec->batches[0].limits_w;
    scene.options.limit_count = spec->batches[0].limit_count;
    environment_init(&environment, workload, spec->name, parameters->seed, parameters->generator);
    for (uint64_t recurrence = 0; recurrence < RECURRENCES; recurrence++) {
        bool reached;

        scene_open(&scene);
        do
            reached = live_try(&scene, tap, &environment, recurrence, out_tries);
        while (fly_session_try_again(scene.session));
        assert_true(reached);
        fly_session_close(scene.session, FLY_SESSION_FINISHED);
        scene.session = NULL;
    }
    scene_end(&scene);
    job_fixture_close(&tap->fixture);
    free(tap);
}

static void test_decisions(void **state)
{
    (void)state;
    for (size_t job = 0; job < known_job_count; job++) {
        const struct policy_parameters parameters = {
            .beta = 2.0, .seed = 1, .generator = GENERATOR_PHILOX, .guard = GUARD_ON};
        struct sim_tries *simulated, *lived;
        struct workload workload;
        struct fly_error error;

        sim_tries_workload("v100", job, &workload);
        simulated = calloc(1, sizeof *simulated);
        lived = calloc(1, sizeof *lived);
        check_fine(sim_tries_run(&workload, &batch_policy_zeus, &parameters, RECURRENCES, simulated, &error),
                   error);
        live(&workload, &parameters, lived);
        sim_tries_compare(workload.spec.name, simulated, lived);
        print_message("# %s: %zu tries\n", workload.spec.name, lived->count);
        workload_close(&workload);
        free(simulated);
        free(lived);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_decisions, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
