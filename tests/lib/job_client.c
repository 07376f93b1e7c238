/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a store with a job that was submitted again and again, in virtual time:
 *
 *     job_client STORE JOB RECURRENCES [KEY=VALUE...]
 *
 *     control=N     control_every          noise=SHARE   spread of a trial's energy and time
 *     target=0      no target              gpu=NAME      its model ("Test GPU")
 *     tries=N       of a recurrence (0: no end)          crash=N   each so many trials crash
 *     apart=1       one at a time          seed=N        eta=WEIGHT         policy=NAME
 *     open=1        the last trial goes on        scale=FACTOR  of each time and energy
 *     slow=SIZE     an epoch of that batch size takes a hundred times as long
 *     profile=0     nobody measures a profile      limits=0      nor can set limits
 *     power=WATTS   of all GPUs, where limits do not say it
 *     like=JOB      whose past comes along         revision=TEXT      day=N    begins so many days later
 *     grid=SOURCE   least carbon, of a grid whose intensity doubles at the 12th trial; each third is unknown
 *
 * Batch sizes 8 to 128, default 32, one GPU of 100, 150 or 200 W. Prints a line for each
 * trial that trained: recurrence, try, batch size, limit, whether it reached the target.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/philox.h"
#include "base/math/ziggurat.h"
#include "job/core/definition.h"
#include "job/jobs.h"

enum { SIZES = 5, LIMITS = 3, NEVER = 1000 };

static const uint32_t sizes[SIZES] = {8, 16, 32, 64, 128};
static const uint32_t needed[SIZES] = {9, 7, 6, 5, NEVER};
static const double limits_w[LIMITS] = {100, 150, 200};
static const struct fly_power_point unit[LIMITS] = {{100, 95, 1.4}, {150, 130, 1.05}, {200, 185, 1.0}};

static const int64_t DAY_US = INT64_C(86400000000);
static int64_t now_us = 1700000000000000;
static struct jobs jobs;
static struct fly_error error;
static struct philox_key key;
static double noise, scale, slow_size;
static bool of_grid, profiles;

static struct wall_time date(void *state)
{
    (void)state;
    return (struct wall_time){now_us * 1000};
}

static struct mono_time now(void *state)
{
    (void)state;
    return (struct mono_time){now_us * 1000};
}

static void check(int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "job_client: %s\n", error.text);
    exit(1);
}

static const char *setting(char **settings, const char *name, const char *otherwise)
{
    size_t length = strlen(name);

    for (; *settings != NULL; settings++) {
        if (strncmp(*settings, name, length) == 0 && (*settings)[length] == '=')
            return *settings + length + 1;
    }
    return otherwise;
}

static double number(char **settings, const char *name, double otherwise)
{
    const char *text = setting(settings, name, NULL);

    return text != NULL ? strtod(text, NULL) : otherwise;
}

static void define(const char *name, char **settings)
{
    struct fly_job_definition definition = job_definition_default;
    struct job_registered registered;

    definition.name = name;
    definition.batch_sizes = sizes;
    definition.batch_count = SIZES;
    definition.policy = "zeus";
    definition.default_batch_size = 32;
    definition.objective = (struct fly_objective){FLY_OBJECTIVE_COST, number(settings, "eta", 0.5), INFINITY};
    definition.grid = setting(settings, "grid", NULL);
    if (definition.grid != NULL)
        definition.objective.kind = FLY_OBJECTIVE_CARBON;
    definition.target = number(settings, "target", 1) > 0 ? FLY_TARGET_AT_LEAST : FLY_TARGET_NONE;
    definition.target_metric = definition.target == FLY_TARGET_NONE ? 0.0 : 0.9;
    definition.max_epochs = definition.target == FLY_TARGET_NONE ? 6 : 20;
    definition.control_every = (uint32_t)number(settings, "control", 0);
    definition.seed = (uint32_t)number(settings, "seed", 1);
    definition.one_at_a_time = number(settings, "apart", 0) > 0;
    definition.policy = setting(settings, "policy", definition.policy);
    definition.like = setting(settings, "like", NULL);
    definition.revision = setting(settings, "revision", NULL);
    check(jobs.backend->define(jobs.self, &definition, &registered, &error));
}

static double reference_of(uint64_t trial)
{
    return !of_grid || trial % 3 == 0 ? NAN : trial < 12 ? 200.0 : 400.0;
}

/* One trial of the world. */
struct life {
    const char *job;
    struct job_proposal proposal;
    struct fly_power_point points[LIMITS];
    double epoch_s, epoch_j; /* under its limit */
    double first_s, first_j; /* what the first epoch takes */
    uint32_t reaches_at;
};

static void live(struct life *life)
{
    struct philox stream;
    size_t size = 0, limit = LIMITS - 1;
    double luck;

    while (sizes[size] != life->proposal.batch_size)
        size++;
    stream = philox_open(key, sizes[size], life->proposal.trial, 0);
    life->reaches_at = needed[size] + philox_below(&stream, 3);
    luck = 1.0 + noise * ziggurat_normal(ziggurat_tables(), philox_u64(&stream), philox_source, &stream);
    for (size_t i = 0; i < LIMITS; i++) {
        life->points[i] = unit[i];
        life->points[i].time_s *=
            scale * 10.0 * sqrt(32.0 / sizes[size]) * (sizes[size] == slow_size ? 100.0 : 1.0);
        life->first_s += life->points[i].time_s / LIMITS;
        life->first_j += life->points[i].time_s * life->points[i].power_w / LIMITS;
    }
    if (life->proposal.wants_profile && profiles) {
        const struct job_profile profile = {.job = life->job,
                                            .trial = life->proposal.trial,
                                            .points = life->points,
                                            .point_count = LIMITS,
                                            .units_per_epoch = 1.0};
        struct job_choice choice;

        check(jobs.backend->profile(jobs.self, &profile, &choice, &error));
        life->proposal.limit_w = choice.limit_w;
        life->proposal.epochs = choice.epochs;
    }
    while (limit > 0 && !isnan(life->proposal.limit_w) && limits_w[limit] != life->proposal.limit_w)
        limit--;
    life->epoch_s = life->points[limit].time_s * luck;
    life->epoch_j = life->epoch_s * life->points[limit].power_w;
    if (!life->proposal.wants_profile || !profiles) {
        life->first_s = life->epoch_s;
        life->first_j = life->epoch_j;
    }
}

static void end(const struct life *life, enum trial_outcome outcome)
{
    struct job_ended ended;

    check(jobs.backend->end(jobs.self,
                            &(struct job_end){.job = life->job,
                                              .trial = life->proposal.trial,
                                              .attempt = 1,
                                              .outcome = outcome,
                                              .energy_j = NAN,
                                              .time_s = NAN,
                                              .reference_per_kwh = NAN,
                                              .text = outcome == TRIAL_CRASHED ? "signal 11" : ""},
                            &ended, &error));
}

/* Whether the recurrence has its model. */
static bool train(const struct life *life, uint32_t at_most, bool targeted)
{
    struct job_answered answered = {.answer = JOB_GO_ON};
    bool reached = false;

    for (uint32_t epoch = 1; epoch <= at_most && answered.answer == JOB_GO_ON; epoch++) {
        struct job_epoch report = {.job = life->job,
                                   .trial = life->proposal.trial,
                                   .attempt = 1,
                                   .epoch = epoch,
                                   .reference_per_kwh = reference_of(life->proposal.trial)};

        reached = targeted && epoch >= life->reaches_at;
        report.metric = reached ? 0.91 : 0.5;
        report.energy_j = life->first_j + (epoch - 1) * life->epoch_j;
        report.time_s = life->first_s + (epoch - 1) * life->epoch_s;
        now_us += (int64_t)(1e6 * life->epoch_s);
        check(jobs.backend->report(jobs.self, &report, &answered, &error));
    }
    if (answered.answer == JOB_STOP && answered.stop == JOB_STOP_EPOCHS && !targeted)
        return true;
    return reached;
}

static bool run_try(const char *job, uint64_t recurrence, char **settings)
{
    static uint64_t trials;
    uint64_t crash = (uint64_t)number(settings, "crash", 0);
    struct life life = {.job = job};
    char submission[32];
    struct job_question question = {
        .job = job,
        .request = "",
        .run = "",
        .submission = submission,
        .tries = (uint32_t)number(settings, "tries", 0),
        .hardware = {.gpu_model = setting(settings, "gpu", "Test GPU"),
                     .gpu_count = 1,
                     .gpu_memory_bytes = UINT64_C(16) << 30,
                     .world_size = 1,
                     .max_power_w = number(settings, "power", 0.0),
                     .limits_w = limits_w,
                     .limit_count = number(settings, "limits", 1) > 0 ? LIMITS : 0},
        .origin = {"ada", "physics", "node1", "GPU-1"}};
    bool targeted = number(settings, "target", 1) > 0, reached;

    snprintf(submission, sizeof submission, "%" PRIu64, recurrence);
    check(jobs.backend->propose(jobs.self, &question, &life.proposal, &error));
    live(&life);
    if (crash > 0 && ++trials % crash == 0) {
        train(&life, 1, targeted);
        end(&life, TRIAL_CRASHED);
        return false;
    }
    if (life.proposal.epochs == 0) {
        end(&life, TRIAL_REFUSED);
        return false;
    }
    reached = train(&life, NEVER, targeted);
    printf("%" PRIu64 " %u %u %g %d\n", life.proposal.recurrence, life.proposal.try_number,
           life.proposal.batch_size, life.proposal.limit_w, reached);
    return reached;
}

int main(int count, char **words)
{
    static const struct clock clock = {.name = "virtual", .now = now, .date = date};
    const struct job_options options = {.clock = &clock};
    char **settings = words + 4;
    uint64_t recurrences, tries;

    if (count < 4)
        return 2;
    recurrences = strtoull(words[3], NULL, 10);
    tries = (uint64_t)number(settings, "tries", 20);
    now_us += (int64_t)number(settings, "day", 0.0) * DAY_US;
    noise = number(settings, "noise", 0.0);
    scale = number(settings, "scale", 1.0);
    slow_size = number(settings, "slow", 0.0);
    profiles = number(settings, "profile", 1) > 0;
    of_grid = setting(settings, "grid", NULL) != NULL;
    key = philox_key((uint32_t)number(settings, "seed", 1), "world");
    check(jobs_open(words[1], &options, &jobs, &error));
    define(words[2], settings);
    for (uint64_t i = 0; i < recurrences; i++) {
        bool done = false;

        for (uint64_t attempt = 0; attempt < tries && !done; attempt++)
            done = run_try(words[2], i, settings);
        now_us += DAY_US;
    }
    if (number(settings, "open", 0) > 0) {
        struct life life = {.job = words[2]};
        const struct job_question question = {.job = words[2],
                                              .request = "",
                                              .run = "",
                                              .submission = "open",
                                              .hardware = {.gpu_model = "Test GPU",
                                                           .gpu_count = 1,
                                                           .gpu_memory_bytes = UINT64_C(16) << 30,
                                                           .world_size = 1,
                                                           .limits_w = limits_w,
                                                           .limit_count = LIMITS}};

        check(jobs.backend->propose(jobs.self, &question, &life.proposal, &error));
    }
    jobs_close(&jobs);
    return 0;
}
