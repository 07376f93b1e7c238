/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/workers.h"

#include <string.h>

#include "base/error.h"
#include "job/local/job_local.h"
#include "serve/caller.h"

/* A store that is away or cannot be opened is never the caller's mistake, whatever the cause. */
static void answer_failure(struct task *task, const struct fly_error *error)
{
    int status = fly_error_http_status(error->code);

    serve_answer_error(&task->answer, status < 500 ? 503 : status, fly_error_name(error->code),
                       "the service's store is away or cannot be opened; its log says why");
}

static void answer_by_family(const struct worker *worker, struct task *task)
{
    struct mono_time start = mono_now();
    struct serve_note *note = task->note;
    struct job_caller caller;

    caller_find(&task->request, worker->of->options.operators, &caller);
    local_act_for(worker->jobs.self, &caller);
    for (const struct serve_routes *const *family = worker->of->options.families; *family != NULL; family++) {
        if ((*family)->answer(&worker->jobs, &task->request, &task->answer, note)) {
            worker->jobs.backend->take_expired(worker->jobs.self, &note->expired);
            task->family = (*family)->name;
            task->busy_s = mono_elapsed_s(start, mono_now());
            return;
        }
    }
    serve_answer_error(&task->answer, 404, fly_error_name(FLY_EUNSUPPORTED),
                       "the service has nothing at this path");
}

/* Answers with the worker's own handle. A failure within the store may have made that handle useless. */
static void answer_by_store(struct worker *worker, struct task *task)
{
    const struct workers_options *options = &worker->of->options;
    struct fly_error error;
    int code = 0;

    if (worker->jobs.backend == NULL)
        code = served_store_open(options->store, options->wait_s, &worker->jobs, &error);
    if (code == 0) {
        answer_by_family(worker, task);
    } else {
        answer_failure(task, &error);
        task->answer.untold = error;
    }
    troubles_untold(options->troubles, &task->answer.untold);
    if (task->answer.status >= 500)
        jobs_close(&worker->jobs);
}

/*
 * A file that was removed still answers through an open handle, but such an answer does not
 * count. The handle stays good.
 */
static void answer(struct worker *worker, struct task *task)
{
    struct served_store *store = worker->of->options.store;
    struct fly_error error;
    int away = served_store_check(store, &error);

    if (away == 0) {
        answer_by_store(worker, task);
        away = task->answer.status >= 500 ? served_store_check(store, &error) : 0;
    }
    if (away < 0)
        answer_failure(task, &error);
}

static void *work(void *data)
{
    struct worker *worker = data;
    const struct workers_options *options = &worker->of->options;
    struct task *task;

    /*
     * All handles of a file share its log, which may be removed while the file is away. A handle that
     * is opened after that does not work together with older ones.
     */
    if (served_store_in_file(options->store))
        (void)served_store_open(options->store, options->wait_s, &worker->jobs, NULL);
    while ((task = task_line_take(&worker->of->line)) != NULL) {
        answer(worker, task);
        task_line_finish(&worker->of->line, task);
    }
    jobs_close(&worker->jobs);
    return NULL;
}

static int start_threads(struct workers *workers, struct fly_error *out_error)
{
    int failed = 0;

    for (unsigned i = 0; i < workers->options.count && failed == 0; i++) {
        struct worker *worker = &workers->worker[i];

        worker->of = workers;
        failed = pool_add(&workers->pool, WORKERS_STACK_BYTES, work, worker);
    }
    if (failed != 0)
        return error_set(out_error, FLY_ENOMEM, "cannot start %u threads: %s; give fewer with --workers",
                         workers->options.count, strerror(failed));
    return 0;
}

int workers_start(struct workers *workers, const struct workers_options *options, struct fly_error *out_error)
{
    int code;

    *workers = (struct workers){.options = *options};
    task_line_init(&workers->line);
    task_line_share(&workers->line, options->count);
    code = start_threads(workers, out_error);
    if (code < 0) {
        workers_stop(workers);
        workers_deinit(workers);
    }
    return code;
}

void workers_put(struct workers *workers, struct task *task)
{
    task_line_put(&workers->line, task);
}

void workers_tick(struct workers *workers, struct mono_time now)
{
    task_line_expire(&workers->line, now, "all workers of the service are busy; ask again in a moment");
}

void workers_stop(struct workers *workers)
{
    task_line_close(&workers->line);
    pool_join(&workers->pool);
}

void workers_deinit(struct workers *workers)
{
    task_line_deinit(&workers->line);
}
