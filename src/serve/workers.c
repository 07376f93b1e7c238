/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/workers.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"

enum { SHOWN_BYTES = 1 << 20, STACK_BYTES = 2 << 20 };
static const double look_wait_s = 2.0;

static int open_handle(const struct workers *workers, double wait_s, struct jobs *out_jobs,
                       struct fly_error *out_error)
{
    const struct job_options options = {.wait_s = wait_s, .clock = workers->options.clock};
    int code = jobs_open(workers->options.store, &options, out_jobs, out_error);

    if (code == 0 && out_jobs->backend != &job_backend_local) {
        jobs_close(out_jobs);
        code =
            error_set(out_error, FLY_EUSAGE,
                      "a service keeps its jobs in a store; give a file or postgresql://..., not the address "
                      "of another service");
    }
    return code;
}

/* The store's failure as an answer. */
static void answer_failure(struct task *task, const struct fly_error *error)
{
    serve_answer_error(&task->answer, fly_error_http_status(error->code), fly_error_name(error->code),
                       error->text);
}

static void answer_by_family(const struct worker *worker, struct task *task)
{
    struct mono_time start = mono_now();
    for (const struct serve_routes *const *family = worker->of->options.families; *family != NULL; family++) {
        if ((*family)->answer(&worker->jobs, &task->request, &task->answer, &task->note)) {
            worker->jobs.backend->take_expired(worker->jobs.self, &task->note.expired);
            task->family = (*family)->name;
            task->busy_s = mono_elapsed_s(start, mono_now());
            return;
        }
    }
    serve_answer_error(&task->answer, 404, fly_error_name(FLY_EUNSUPPORTED),
                       "the service has nothing at this path");
}

static void *work(void *data)
{
    struct worker *worker = data;
    struct task *task;

    while ((task = task_line_take(&worker->of->line)) != NULL) {
        struct fly_error error;
        int code = 0;

        if (worker->jobs.backend == NULL)
            code = open_handle(worker->of, worker->of->options.wait_s, &worker->jobs, &error);
        if (code < 0)
            answer_failure(task, &error);
        else
            answer_by_family(worker, task);
        /* What failed inside the store may have left its handle of no more use. */
        if (task->answer.status >= 500)
            jobs_close(&worker->jobs);
        task->finish(task);
    }
    jobs_close(&worker->jobs);
    return NULL;
}

/* A job that cannot exist is looked for: the store's answer that there is none is an answer. */
static int look(struct worker *looker, struct fly_error *out_error)
{
    struct job_shown shown;
    struct arena arena;
    int code = 0;

    if (looker->jobs.backend == NULL)
        code = open_handle(looker->of, look_wait_s, &looker->jobs, out_error);
    if (code < 0)
        return code;
    arena_init(&arena, SHOWN_BYTES);
    code = looker->jobs.backend->show(looker->jobs.self, "flyball-healthz-asks-for-no-job", &arena, &shown,
                                      out_error);
    arena_deinit(&arena);
    if (code == FLY_ENOTFOUND)
        code = 0;
    if (code < 0)
        jobs_close(&looker->jobs);
    return code;
}

static void *look_after(void *data)
{
    struct worker *looker = data;

    while (task_line_wait(&looker->of->health)) {
        struct fly_error error = {.code = 0};
        int code = look(looker, &error);

        for (struct task *task = task_line_take_all(&looker->of->health); task != NULL;) {
            struct task *next = task->next;

            /* Where tokens are wanted, a stranger may ask this, and is not told where the store lies. */
            if (code < 0)
                serve_answer_error(&task->answer, 503, fly_error_name(error.code),
                                   task->request.scope > SERVE_NOBODY ? error.text
                                                                      : fly_error_sentence(error.code));
            else
                serve_answer_json(&task->answer, 200, json_pack("{s:s}", "status", "ok"));
            task->finish(task);
            task = next;
        }
    }
    jobs_close(&looker->jobs);
    return NULL;
}

/* Whether a store that fails so at the start may still come to serve. */
static bool may_come(int code)
{
    return code == FLY_EUNREACHABLE || code == FLY_EBUSY || code == FLY_EUNSURE;
}

static int start_threads(struct workers *workers, struct fly_error *out_error)
{
    pthread_attr_t attributes;
    int failed = 0;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    workers->looker.of = workers;
    failed = pthread_create(&workers->looker.thread, &attributes, look_after, &workers->looker);
    workers->looks = failed == 0;
    for (unsigned i = 0; i < workers->options.count && failed == 0; i++) {
        struct worker *worker = &workers->worker[i];

        worker->of = workers;
        failed = pthread_create(&worker->thread, &attributes, work, worker);
        if (failed == 0)
            workers->running++;
    }
    pthread_attr_destroy(&attributes);
    if (failed != 0)
        return error_set(out_error, FLY_ENOMEM, "cannot start %u threads: %s; give fewer with --workers",
                         workers->options.count + 1, strerror(failed));
    return 0;
}

int workers_start(struct workers *workers, const struct workers_options *options,
                  struct fly_error *out_warning, struct fly_error *out_error)
{
    struct fly_error why = {.code = 0};
    int code;

    *workers = (struct workers){.options = *options};
    out_warning->text[0] = '\0';
    code = open_handle(workers, look_wait_s, &workers->looker.jobs, &why);
    if (code < 0 && !may_come(code)) {
        if (out_error != NULL)
            *out_error = why;
        return code;
    }
    if (code < 0)
        *out_warning = why;
    task_line_init(&workers->line);
    task_line_init(&workers->health);
    code = start_threads(workers, out_error);
    if (code < 0) {
        workers_stop(workers);
        workers_deinit(workers);
    }
    return code;
}

void workers_tick(struct workers *workers, struct mono_time now)
{
    task_line_expire(&workers->line, now, "all workers of the service are busy; ask again in a moment");
    task_line_expire(&workers->health, now, "the store has not answered in time");
}

void workers_stop(struct workers *workers)
{
    task_line_close(&workers->line);
    task_line_close(&workers->health);
    for (unsigned i = 0; i < workers->running; i++)
        pthread_join(workers->worker[i].thread, NULL);
    if (workers->looks)
        pthread_join(workers->looker.thread, NULL);
    else
        jobs_close(&workers->looker.jobs);
}

void workers_deinit(struct workers *workers)
{
    task_line_deinit(&workers->line);
    task_line_deinit(&workers->health);
}
