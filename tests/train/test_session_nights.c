/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Night after night with everything that goes wrong: batch sizes that do not fit or never
 * get there, crashes, preemption, a log that does not answer. Every night ends with a
 * model, and nothing that was reported is lost. FLYBALL_SOAK_NIGHTS says how many nights.
 */
#include "session_scene.h"

#include "job_fixture.h"

enum { NIGHTS_USUAL = 50, TRIES = 30, STARTS_MAX = 60 };

/* A log that does not answer now and then. */
struct shaky {
    struct job_fixture fixture;
    uint64_t luck;
    bool deaf, quiet; /* for the rest of this start, of all */
    uint64_t sent;    /* reports that the session was given, of trials in the log */
};

static const struct jobs *behind(const struct shaky *shaky)
{
    return &shaky->fixture.jobs;
}

/* The log fails before or after it has written. */
static int shake(struct shaky *shaky, struct fly_error *out_error)
{
    if (shaky->quiet || (!shaky->deaf && test_uniform(&shaky->luck) > 0.03))
        return 0;
    return error_set(out_error, FLY_EUNREACHABLE, "nobody answers");
}

static int shaky_define(void *self, const struct fly_job_definition *definition,
                        struct job_registered *out_registered, struct fly_error *out_error)
{
    int code = shake(self, out_error);

    return code < 0
               ? code
               : behind(self)->backend->define(behind(self)->self, definition, out_registered, out_error);
}

static int shaky_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                         struct fly_error *out_error)
{
    return behind(self)->backend->propose(behind(self)->self, question, out_proposal, out_error);
}

static int shaky_profile(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                         struct fly_error *out_error)
{
    int code = shake(self, out_error);

    return code < 0 ? code
                    : behind(self)->backend->profile(behind(self)->self, profile, out_choice, out_error);
}

static int shaky_heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    return behind(self)->backend->heartbeat(behind(self)->self, beat, out_error);
}

static int shaky_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                        struct fly_error *out_error)
{
    struct shaky *shaky = self;
    int code = shake(shaky, out_error);

    if (code < 0 && test_uniform(&shaky->luck) < 0.5)
        return code;
    if (code < 0) { /* it was written all the same */
        struct job_answered lost;

        (void)behind(self)->backend->report(behind(self)->self, epoch, &lost, NULL);
        return code;
    }
    code = behind(self)->backend->report(behind(self)->self, epoch, out_answered, out_error);
    if (code < 0)
        fail_msg("report of epoch %u: %s", epoch->epoch, out_error->text);
    return code;
}

static int shaky_end(void *self, const struct job_end *end, struct job_ended *out_ended,
                     struct fly_error *out_error)
{
    struct shaky *shaky = self;
    int code = shake(shaky, out_error);

    if (code == 0)
        code = behind(self)->backend->end(behind(self)->self, end, out_ended, out_error);
    return code;
}

static const struct job_backend shaky_backend = {.name = "shaky",
                                                 .define = shaky_define,
                                                 .propose = shaky_propose,
                                                 .profile = shaky_profile,
                                                 .heartbeat = shaky_heartbeat,
                                                 .report = shaky_report,
                                                 .end = shaky_end};

enum start_end { START_MODEL, START_CRASHED, START_PREEMPTED };

/* Trains with one batch size. */
static enum start_end train(struct scene *scene, struct shaky *shaky, uint32_t *checkpoint)
{
    uint32_t batch_size = fly_session_batch_size(scene->session);
    uint32_t needed = batch_size == 16 ? 1000 : batch_size == 32 ? 3 : 2;
    enum fly_answer answer = FLY_GO_ON;

    fly_session_resumed(scene->session, *checkpoint);
    for (uint32_t epoch = *checkpoint + 1; answer == FLY_GO_ON; epoch++) {
        double fate = test_uniform(&shaky->luck);

        if (batch_size == 64 && epoch == 1) {
            fly_session_step_begin(scene->session);
            fly_session_out_of_memory(scene->session);
            return START_CRASHED; /* a program does not get far after it */
        }
        answer = train_epoch(scene, 3, fate < 0.06 ? NAN : (double)epoch / needed);
        shaky->sent += scene->session->known || scene->session->unasked;
        *checkpoint = epoch;
        if (fate > 0.85 && answer == FLY_GO_ON)
            return fate > 0.93 ? START_CRASHED : START_PREEMPTED;
    }
    *checkpoint = 0;
    return START_MODEL;
}

/* A process of this night; whether there is a model now. */
static bool start(struct scene *scene, struct shaky *shaky, uint32_t *checkpoint)
{
    enum start_end end;
    bool reached;

    shaky->deaf = test_uniform(&shaky->luck) < 0.05;
    scene_open(scene);
    if (status_of(scene).attempt == 1)
        *checkpoint = 0; /* another trial begins anew */
    do
        end = train(scene, shaky, checkpoint);
    while (end == START_MODEL && fly_session_try_again(scene->session));
    reached = end == START_MODEL && status_of(scene).answer == FLY_REACHED;
    fly_session_close(scene->session, end == START_CRASHED     ? FLY_SESSION_CRASHED
                                      : end == START_PREEMPTED ? FLY_SESSION_INTERRUPTED
                                                               : FLY_SESSION_FINISHED);
    scene->session = NULL;
    if (end != START_PREEMPTED)
        *checkpoint = 0;
    return reached;
}

static void test_every_night_a_model(void **state)
{
    const char *text = getenv("FLYBALL_SOAK_NIGHTS");
    unsigned long nights = text != NULL ? strtoul(text, NULL, 10) : NIGHTS_USUAL, starts = 0;
    struct shaky *shaky = calloc(1, sizeof *shaky);
    struct scene scene;

    (void)state;
    assert_non_null(shaky);
    shaky->luck = 20261121;
    job_fixture_open(&shaky->fixture);
    scene_begin(&scene);
    scene.jobs = (struct jobs){&shaky_backend, shaky};
    scene.options.tries = TRIES;
    scene.options.max_epochs = 12;
    scene.options.leave_limits = true;
    scene.options.default_batch_size = 32;
    for (unsigned long night = 0; night < nights; night++) {
        uint32_t checkpoint = 0;
        unsigned count = 0;
        char run[32];
        bool model;

        snprintf(run, sizeof run, "night %lu", night);
        scene.options.run = run;
        do {
            shaky->fixture.now_us += 3600 * (int64_t)1000000;
            model = start(&scene, shaky, &checkpoint);
            count++;
        } while (!model && count < STARTS_MAX);
        if (!model)
            fail_msg("night %lu has no model after %u starts", night, count);
        starts += count;
    }
    /* One more night in quiet: what was kept is delivered. */
    shaky->quiet = true;
    scene.options.run = "";
    scene_open(&scene);
    fly_session_close(scene.session, FLY_SESSION_INTERRUPTED);
    scene.session = NULL;
    assert_int_equal(spool_files(".refused"), 0);
    assert_int_equal(spool_files(".calls"), 0);
    print_message("# %lu nights, %lu starts, %lu reports\n", nights, starts, (unsigned long)shaky->sent);
    assert_true(starts > nights);
    assert_int_equal(job_fixture_count(&shaky->fixture, "job", "epoch", 0), shaky->sent);
    scene_end(&scene);
    job_fixture_close(&shaky->fixture);
    free(shaky);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_every_night_a_model, forget),
    };

    scene_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
