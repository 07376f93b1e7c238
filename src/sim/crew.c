/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/crew.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/thread/pool.h"
#include "base/wait.h"

static const double progress_s = 0.1;

struct crew {
    const struct crew_plan *plan;
    struct ordered_output output;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    uint64_t next, done;   /* of units */
    unsigned working;      /* threads that are working */
    bool alone;            /* there are no worker threads */
    struct mono_time told; /* alone: when progress was last told */
    int code;              /* the first error */
    struct fly_error error;
};

/* Takes in that a unit, or the caller, has failed; the first error counts. */
static void fail(struct crew *crew, int code, const struct fly_error *error)
{
    pthread_mutex_lock(&crew->lock);
    if (crew->code == 0) {
        crew->code = code;
        crew->error = *error;
    }
    pthread_mutex_unlock(&crew->lock);
}

/* Tells the progress on the caller's thread. */
static void tell_progress(struct crew *crew, uint64_t done)
{
    struct fly_error error;
    bool over;

    pthread_mutex_lock(&crew->lock);
    over = crew->code < 0;
    pthread_mutex_unlock(&crew->lock);
    if (over || crew->plan->progress == NULL ||
        crew->plan->progress(crew->plan->progress_context, done, crew->plan->units) == 0)
        return;
    fail(crew, error_set(&error, FLY_ESTATE, "the simulation was given up"), &error);
}

static void tell_alone(struct crew *crew)
{
    if (!crew->alone || mono_elapsed_s(crew->told, mono_now()) < progress_s)
        return;
    crew->told = mono_now();
    tell_progress(crew, crew->done);
}

bool crew_given_up(void *unit)
{
    struct crew *crew = ((struct crew_unit *)unit)->crew;
    bool failed;

    tell_alone(crew);
    pthread_mutex_lock(&crew->lock);
    failed = crew->code < 0;
    pthread_mutex_unlock(&crew->lock);
    return failed || ordered_output_failed(&crew->output);
}

/* Takes the next unit. Returns false if there is none or the crew has failed. */
static bool take_unit(struct crew *crew, uint64_t *out_number)
{
    bool taken;

    pthread_mutex_lock(&crew->lock);
    taken = crew->code == 0 && crew->next < crew->plan->units;
    if (taken)
        *out_number = crew->next++;
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

static void finish_unit(struct crew *crew, int code, const struct fly_error *error)
{
    if (code < 0)
        fail(crew, code, error);
    pthread_mutex_lock(&crew->lock);
    crew->done++;
    pthread_mutex_unlock(&crew->lock);
}

static void *work(void *context)
{
    struct crew *crew = context;
    struct crew_unit unit = {.crew = crew};

    if (crew->plan->thread_begun != NULL)
        crew->plan->thread_begun();
    while (take_unit(crew, &unit.number)) {
        struct fly_error error = {0};
        int code;

        ordered_part_begin(&unit.part, &crew->output, unit.number);
        code = crew->plan->run(crew->plan->context, &unit, &error);
        finish_unit(crew, code, &error);
        ordered_part_end(&unit.part);
        tell_alone(crew);
    }
    pthread_mutex_lock(&crew->lock);
    crew->working--;
    pthread_cond_signal(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Starts up to plan->threads workers. Returns how many run. */
static size_t start_workers(struct crew *crew, struct pool *pool)
{
    size_t count;

    pthread_mutex_lock(&crew->lock);
    while (pool->count < crew->plan->threads && pool->count < crew->plan->units &&
           pool_add(pool, 0, work, crew) == 0)
        ;
    count = crew->working = (unsigned)pool->count;
    pthread_mutex_unlock(&crew->lock);
    return count;
}

/* Reports progress until the last worker is done. */
static void wait_workers(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->working > 0) {
        uint64_t done = crew->done;

        pthread_mutex_unlock(&crew->lock);
        tell_progress(crew, done);
        pthread_mutex_lock(&crew->lock);
        if (crew->working > 0)
            mono_wait(&crew->changed, &crew->lock, mono_after_s(mono_now(), progress_s));
    }
    pthread_mutex_unlock(&crew->lock);
}

static int discard(void *context, const char *bytes, size_t count, struct fly_error *out_error)
{
    (void)context;
    (void)bytes;
    (void)count;
    (void)out_error;
    return 0;
}

int crew_run(const struct crew_plan *plan, struct fly_error *out_error)
{
    struct crew crew = {.plan = plan, .alone = plan->threads == 0, .told = mono_now()};
    struct pool pool = {.count = 0};

    if (plan->threads > CREW_THREADS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%u threads; expected 1 to %d", plan->threads,
                         CREW_THREADS_MAX);
    ordered_output_init(&crew.output, plan->sink != NULL ? plan->sink : discard, plan->sink_context);
    pthread_mutex_init(&crew.lock, NULL);
    mono_cond_init(&crew.changed);
    if (start_workers(&crew, &pool) == 0) {
        crew.alone = true;
        crew.working = 1;
        work(&crew);
    }
    wait_workers(&crew);
    pool_join(&pool);
    pthread_cond_destroy(&crew.changed);
    pthread_mutex_destroy(&crew.lock);
    ordered_output_deinit(&crew.output);
    if (crew.output.code < 0) {
        crew.code = crew.output.code;
        crew.error = crew.output.error;
    }
    if (crew.code < 0 && out_error != NULL)
        *out_error = crew.error;
    return crew.code;
}
