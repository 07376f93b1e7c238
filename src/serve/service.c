/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/service.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "job/core/job_owner.h"
#include "serve/metrics.h"
#include "serve/store_readiness.h"

struct service {
    struct service_options options;
    struct served_store store;
    struct store_readiness looking;
    struct workers workers;
    bool works;              /* the workers were started */
    struct metrics *metrics; /* owned */
};

static int start(void *self, struct readiness *readiness, struct troubles *troubles,
                 struct fly_error *out_error)
{
    struct service *service = self;
    double timeout_s = service->options.server.request_timeout_s;
    const struct workers_options work = {.store = &service->store,
                                         .troubles = troubles,
                                         .wait_s = fmin(timeout_s, STORE_WAIT_DEFAULT_S),
                                         .count = service->options.workers,
                                         .families = service->options.families,
                                         .operators = service->options.operators};
    int code = store_readiness_open(&service->looking, readiness, troubles, out_error);

    if (code == 0)
        code = workers_start(&service->workers, &work, out_error);
    service->works = code == 0;
    return code;
}

static void put(void *self, struct task *task)
{
    struct service *service = self;

    workers_put(&service->workers, task);
}

static void count(void *self, const struct task *task)
{
    struct service *service = self;

    metrics_count(service->metrics, task->note, task->busy_s);
}

static void write_figures(void *self, struct buffer *text)
{
    struct service *service = self;

    metrics_write(service->metrics, text);
}

static void tick(void *self, struct mono_time now)
{
    struct service *service = self;

    workers_tick(&service->workers, now);
}

static void stop(void *self)
{
    struct service *service = self;

    workers_stop(&service->workers);
}

static void end(void *self)
{
    struct service *service = self;

    if (service->works)
        workers_deinit(&service->workers);
    store_readiness_deinit(&service->looking);
    metrics_free(service->metrics);
    served_store_deinit(&service->store);
    free(service);
}

static const char *const header_only[] = {"/v1", NULL};

static const struct server_back service_back = {
    .tokens = {.command = "flyball token",
               .path_clients = "clients of the public batch-size server",
               .path_setting = "server_url",
               .path_option = "--compat-zeus",
               .header_only = header_only},
    .note_bytes = sizeof(struct serve_note),
    .start = start,
    .put = put,
    .count = count,
    .write_figures = write_figures,
    .tick = tick,
    .stop = stop,
    .end = end,
};

int service_open(const struct service_options *options, struct server **out_server,
                 struct fly_error *out_error)
{
    struct server_options listening = options->server;
    struct service *service;
    int code = options->operators != NULL ? job_owners_check(options->operators, out_error) : 0;

    if (code < 0)
        return code;
    service = calloc(1, sizeof *service);
    if (service == NULL)
        return error_no_memory(out_error);
    service->options = *options;
    served_store_init(&service->store, options->store, options->clock);
    store_readiness_init(&service->looking, &service->store);
    code = metrics_new(&service->metrics, out_error);
    if (code < 0) {
        end(service);
        return code;
    }
    listening.names_users = listening.tokens == NULL; /* a token counts alone */
    listening.back = &service_back;
    listening.back_self = service;
    return server_open(&listening, out_server, out_error);
}
