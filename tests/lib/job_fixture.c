/* SPDX-License-Identifier: Apache-2.0 */
#include "job_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "job/core/definition.h"
#include "serve/service.h"

enum { ARENA_MAX = 64 << 20 };

const double job_fixture_limits_w[FIXTURE_LIMITS] = {100, 150, 200};
static const uint32_t batch_sizes[] = {8, 16, 32, 64, 128};

static struct wall_time virtual_date(void *state)
{
    const struct job_fixture *fixture = state;

    return (struct wall_time){fixture->now_us * 1000};
}

static struct mono_time virtual_now(void *state)
{
    const struct job_fixture *fixture = state;

    return (struct mono_time){fixture->now_us * 1000};
}

/* A server's database may have jobs of earlier tests. */
static void remove_all(struct job_fixture *fixture)
{
    struct fly_error error;
    struct job_list list;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    check_fine(fixture->jobs.backend->list(fixture->jobs.self, &arena, &list, &error), error);
    for (size_t i = 0; i < list.count; i++)
        check_fine(fixture->jobs.backend->remove(fixture->jobs.self, list.jobs[i].name, &error), error);
    arena_deinit(&arena);
}

static void start_service(struct job_fixture *fixture)
{
    static const struct serve_routes *const families[] = {&serve_v1, NULL};
    char address[sizeof fixture->path];
    const char *const listen[] = {address};
    struct fly_error error;

    snprintf(address, sizeof address, "unix:%s/socket", fixture->directory);
    check_fine(service_open(&(struct service_options){.server = {.listen = listen,
                                                                 .listen_count = 1,
                                                                 .connections = 64,
                                                                 .connections_per_ip = 64,
                                                                 .body_max = 8 << 20,
                                                                 .request_timeout_s = 60},
                                                      .store = fixture->store,
                                                      .clock = &fixture->clock,
                                                      .families = families,
                                                      .workers = 1},
                            &fixture->server, &error),
               error);
    memcpy(fixture->path, address, sizeof address);
}

static void stop_service(struct job_fixture *fixture)
{
    if (fixture->server == NULL)
        return;
    server_quiesce(fixture->server);
    while (!server_is_idle(fixture->server))
        server_tick(fixture->server);
    server_close(fixture->server);
}

void job_fixture_open(struct job_fixture *fixture)
{
    const char *server = getenv("FLYBALL_TEST_STORE");
    struct fly_error error;

    *fixture = (struct job_fixture){.now_us = 1700000000000000};
    arena_init(&fixture->arena, ARENA_MAX);
    /* In memory where that is a file system: what is tested here is not the disk. */
    snprintf(fixture->directory, sizeof fixture->directory, "%s/flyball-job-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->store, sizeof fixture->store, "%s/store.sqlite", fixture->directory);
    if (server != NULL)
        snprintf(fixture->store, sizeof fixture->store, "%s", server);
    snprintf(fixture->path, sizeof fixture->path, "%s", fixture->store);
    fixture->clock =
        (struct clock){.name = "virtual", .now = virtual_now, .date = virtual_date, .state = fixture};
    fixture->options = (struct job_options){.clock = &fixture->clock};
    if (getenv("FLYBALL_TEST_SERVICE") != NULL)
        start_service(fixture);
    check_fine(jobs_open(fixture->path, &fixture->options, &fixture->jobs, &error), error);
    remove_all(fixture);
}

void job_fixture_reopen(struct job_fixture *fixture)
{
    struct fly_error error;

    jobs_close(&fixture->jobs);
    check_fine(jobs_open(fixture->path, &fixture->options, &fixture->jobs, &error), error);
}

void job_fixture_close(struct job_fixture *fixture)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char path[FIXTURE_PATH_MAX + 32];

    arena_deinit(&fixture->arena);
    jobs_close(&fixture->jobs);
    stop_service(fixture);
    for (size_t i = 0; i < COUNT(endings); i++) {
        snprintf(path, sizeof path, "%s%s", fixture->store, endings[i]);
        unlink(path);
    }
    rmdir(fixture->directory);
}

int job_fixture_setup(void **state)
{
    job_fixture_open(*state);
    return 0;
}

int job_fixture_teardown(void **state)
{
    job_fixture_close(*state);
    return 0;
}

struct fly_job_definition job_fixture_definition(const char *name)
{
    struct fly_job_definition definition = job_definition_default;

    definition.name = name;
    definition.batch_sizes = batch_sizes;
    definition.batch_count = COUNT(batch_sizes);
    definition.default_batch_size = 32;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, 0.5, INFINITY};
    definition.target = FLY_TARGET_AT_LEAST;
    definition.target_metric = 0.9;
    definition.max_epochs = 20;
    definition.policy = "zeus";
    return definition;
}

struct fly_job_definition job_fixture_grid_definition(enum fly_objective_kind kind)
{
    struct fly_job_definition definition = job_fixture_definition("job");

    definition.objective = (struct fly_objective){kind, 0.5, INFINITY};
    definition.grid = "gb:national";
    return definition;
}

struct job_question job_fixture_question(const char *job)
{
    return (struct job_question){.job = job,
                                 .request = "",
                                 .run = "",
                                 .submission = "",
                                 .hardware = {.gpu_model = "Test GPU",
                                              .gpu_count = 1,
                                              .gpu_memory_bytes = (uint64_t)16 << 30,
                                              .world_size = 1,
                                              .limits_w = job_fixture_limits_w,
                                              .limit_count = FIXTURE_LIMITS},
                                 .origin = {"ada", "physics", "node1", "GPU-1"}};
}

void job_fixture_define(struct job_fixture *fixture, const struct fly_job_definition *definition)
{
    struct job_registered registered;
    struct fly_error error;

    check_fine(fixture->jobs.backend->define(fixture->jobs.self, definition, &registered, &error), error);
}

void job_fixture_begin(struct job_fixture *fixture, const char *policy)
{
    struct fly_job_definition definition = job_fixture_definition("job");

    definition.policy = policy;
    job_fixture_define(fixture, &definition);
}

struct job_proposal job_fixture_propose(struct job_fixture *fixture, const struct job_question *question)
{
    struct job_proposal proposal;
    struct fly_error error;

    check_fine(fixture->jobs.backend->propose(fixture->jobs.self, question, &proposal, &error), error);
    return proposal;
}

struct job_choice job_fixture_profile(struct job_fixture *fixture, const char *job, uint64_t trial)
{
    static const struct fly_power_point points[FIXTURE_LIMITS] = {
        {100, 95, 14}, {150, 130, 10.5}, {200, 185, 10}};
    const struct job_profile profile = {
        .job = job, .trial = trial, .points = points, .point_count = FIXTURE_LIMITS, .units_per_epoch = 1.0};
    struct job_choice choice;
    struct fly_error error;

    check_fine(fixture->jobs.backend->profile(fixture->jobs.self, &profile, &choice, &error), error);
    return choice;
}

struct job_answered job_fixture_report(struct job_fixture *fixture, const struct job_epoch *epoch)
{
    struct job_answered answered;
    struct fly_error error;

    check_fine(fixture->jobs.backend->report(fixture->jobs.self, epoch, &answered, &error), error);
    return answered;
}

struct job_ended job_fixture_end(struct job_fixture *fixture, const struct job_end *end)
{
    struct job_ended ended;
    struct fly_error error;

    check_fine(fixture->jobs.backend->end(fixture->jobs.self, end, &ended, &error), error);
    return ended;
}

struct job_answered job_fixture_epoch(struct job_fixture *fixture, uint64_t trial, uint32_t attempt,
                                      uint32_t epoch, double energy_j, double time_s, double metric)
{
    return job_fixture_report(fixture, &(struct job_epoch){.job = "job",
                                                           .trial = trial,
                                                           .attempt = attempt,
                                                           .epoch = epoch,
                                                           .metric = metric,
                                                           .energy_j = energy_j,
                                                           .time_s = time_s});
}

struct job_ended job_fixture_over(struct job_fixture *fixture, uint64_t trial, uint32_t attempt,
                                  enum trial_outcome outcome)
{
    return job_fixture_end(fixture, &(struct job_end){.job = "job",
                                                      .trial = trial,
                                                      .attempt = attempt,
                                                      .outcome = outcome,
                                                      .energy_j = NAN,
                                                      .time_s = NAN});
}

struct job_answered job_fixture_train(struct job_fixture *fixture, const struct job_question *question,
                                      uint32_t epochs, double epoch_j, double epoch_s, double metric,
                                      struct job_proposal *out_proposal)
{
    struct job_proposal proposal = job_fixture_propose(fixture, question);
    struct job_answered answered = {0};

    if (proposal.wants_profile)
        job_fixture_profile(fixture, question->job, proposal.trial);
    for (uint32_t i = 1; i <= epochs && answered.answer == JOB_GO_ON; i++) {
        fixture->now_us += (int64_t)(1e6 * epoch_s);
        answered = job_fixture_report(fixture, &(struct job_epoch){.job = question->job,
                                                                   .trial = proposal.trial,
                                                                   .attempt = proposal.attempt,
                                                                   .epoch = proposal.epochs_done + i,
                                                                   .metric = i == epochs ? metric : 0.0,
                                                                   .energy_j = epoch_j * i,
                                                                   .time_s = epoch_s * i});
    }
    if (out_proposal != NULL)
        *out_proposal = proposal;
    return answered;
}

struct job_history job_fixture_history(struct job_fixture *fixture, struct arena *arena)
{
    struct job_history read;
    struct fly_error error;

    check_fine(job_history_read(&fixture->jobs, "job", arena, &read, &error), error);
    return read;
}

struct counting {
    const char *kind;
    size_t count;
};

static int count_event(void *context, const struct store_event *event, struct fly_error *out_error)
{
    struct counting *counting = context;

    (void)out_error;
    counting->count += strcmp(event->kind, counting->kind) == 0;
    return 0;
}

size_t job_fixture_count(struct job_fixture *fixture, const char *job, const char *kind, uint64_t trial)
{
    const struct store_query query = {.trial = trial};
    struct counting counting = {.kind = kind};
    struct fly_error error;

    check_fine(fixture->jobs.backend->read(fixture->jobs.self, job, &query, count_event, &counting, &error),
               error);
    return counting.count;
}

enum trial_outcome job_fixture_outcome(struct job_fixture *fixture, const char *job, uint64_t trial)
{
    const struct store_query query = {.trial = trial};
    struct trial_past past = trial_past_empty;
    enum trial_outcome outcome;
    struct fly_error error;

    check_fine(fixture->jobs.backend->read(fixture->jobs.self, job, &query, trial_past_visit, &past, &error),
               error);
    assert_true(past.ended || past.expired);
    outcome = past.how.outcome;
    trial_past_deinit(&past);
    return outcome;
}
