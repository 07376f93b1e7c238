/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_back.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread/pool.h"
#include "node/node_devices.h"
#include "node/node_figures.h"
#include "node/node_log.h"

enum { STACK_BYTES = 1 << 20, ROOT_CONNECTIONS = 16 };

struct back {
    struct daemon *daemon;
    struct node_devices devices;
    struct task_line line;
    struct pool workers;
    struct trouble audit_trouble;
};

static void answer(struct back *back, struct task *task)
{
    struct mono_time start = mono_now();

    if (node_v1_is_below(task->request.path)) {
        task->family = "v1";
        node_v1_answer(back->daemon->v1, &task->request, &task->answer);
    } else if (node_public_is_below(task->request.path)) {
        task->family = "public";
        node_public_answer(back->daemon->public, &task->request, &task->answer);
    } else {
        serve_answer_error(&task->answer, 404, fly_error_name(FLY_ENOTFOUND),
                           "the daemon has nothing at this path; see flyballd(8)");
    }
    task->busy_s = mono_elapsed_s(start, mono_now());
}

static void *work(void *self)
{
    struct back *back = self;
    struct task *task;

    while ((task = task_line_take(&back->line)) != NULL) {
        answer(back, task);
        task_line_finish(&back->line, task);
    }
    return NULL;
}

/* What asks no driver is answered by the thread that reads the connections. */
static bool answer_now(void *self, struct task *task)
{
    if (node_v1_waits(&task->request) || node_public_waits(&task->request))
        return false;
    answer(self, task);
    return true;
}

static void put(void *self, struct task *task)
{
    struct back *back = self;

    task_line_put(&back->line, task);
}

static void stop(void *self)
{
    struct back *back = self;

    task_line_close(&back->line);
    pool_join(&back->workers);
}

static int look_at_audit(void *self, struct fly_error *out_error)
{
    struct back *back = self;

    return audit_look(back->daemon->audit, out_error);
}

static void add_audit(struct back *back, struct readiness *readiness)
{
    static const struct readiness_reason reasons[] = {{0, "lines of the audit log cannot be written"}};
    const struct readiness_part part = {.name = "audit",
                                        .reasons = reasons,
                                        .trouble = &back->audit_trouble,
                                        .look = look_at_audit,
                                        .self = back};

    back->audit_trouble = (struct trouble){.name = "audit",
                                           .meaning = audit_is_required(back->daemon->audit)
                                                          ? "nothing is leased until they can"
                                                          : "what is leased meanwhile is not on record",
                                           .over = "it is written again"};
    if (back->daemon->audit != NULL)
        readiness_add(readiness, &part);
}

static int start(void *self, struct readiness *readiness, struct troubles *troubles,
                 struct fly_error *out_error)
{
    struct back *back = self;
    size_t count = (size_t)config_integer(back->daemon->config, KEY_WORKERS);
    int failed = 0;

    (void)troubles;
    add_audit(back, readiness);
    for (size_t i = 0; i < count && failed == 0; i++)
        failed = pool_add(&back->workers, STACK_BYTES, work, back);
    if (failed == 0)
        return 0;
    stop(back);
    return error_set(out_error, FLY_ENOMEM, "cannot start %zu threads: %s; set fewer 'server.workers'", count,
                     strerror(failed));
}

static enum serve_scope admit(void *self, const struct serve_request *request)
{
    struct back *back = self;

    return admit_scope(back->daemon->admit, request);
}

static bool shows_figures(void *self, const struct serve_request *request)
{
    struct back *back = self;

    return admit_shows_figures(back->daemon->admit, request);
}

static void count_nothing(void *self, const struct task *task)
{
    (void)self;
    (void)task;
}

static void write_figures(void *self, struct buffer *text)
{
    struct back *back = self;

    watch_write_metrics(back->daemon->watch, text);
    if (back->daemon->share != NULL)
        share_write_metrics(back->daemon->share, text);
    node_figures_write(back->daemon, text);
}

static void closed(void *self, uint64_t connection)
{
    struct back *back = self;

    leases_connection_closed(back->daemon->leases, connection);
}

static void tick(void *self, struct mono_time now)
{
    struct back *back = self;

    task_line_expire(&back->line, now, "all workers wait for GPUs that do not answer; ask again in a moment");
    daemon_tick(back->daemon);
}

static void end(void *self)
{
    struct back *back = self;

    task_line_deinit(&back->line);
    free(back);
}

static const char *const header_only[] = {"/v1", "/gpu", "/cpu", "/auth", NULL};

static const struct server_back node_back = {
    .tokens = {.command = "flyball token", .header_only = header_only},
    .start = start,
    .admit = admit,
    .answer_now = answer_now,
    .put = put,
    .count = count_nothing,
    .shows_figures = shows_figures,
    .write_figures = write_figures,
    .closed = closed,
    .tick = tick,
    .stop = stop,
    .end = end,
};

static void tell_request(void *state, const char *line)
{
    (void)state;
    log_request(line);
}

static void tell(void *state, const char *line)
{
    (void)state;
    log_say(SAY_WARNING, "%s", line);
}

int node_back_open(struct daemon *daemon, const struct node_listen *listen, struct porter *porter,
                   struct server **out_server, struct fly_error *out_error)
{
    const struct config *config = daemon->config;
    struct back *back = calloc(1, sizeof *back);
    struct server_options options = {
        .listen = listen->words,
        .listen_count = listen->count,
        .socket_owner = config_text(config, KEY_SOCKET_OWNER),
        .socket_group = config_text(config, KEY_SOCKET_GROUP),
        .socket_mode = (unsigned)strtoul(config_text(config, KEY_SOCKET_MODE), NULL, 8),
        .tokens = config_text(config, KEY_TOKENS),
        .signing_key = config_text(config, KEY_SIGNING_KEY),
        .certificate = config_text(config, KEY_TLS_CERTIFICATE),
        .key = config_text(config, KEY_TLS_KEY),
        .insecure_plain_http = config_flag(config, KEY_INSECURE_PLAIN_HTTP),
        .back = &node_back,
        .back_self = back,
        .connections = (unsigned)config_integer(config, KEY_CONNECTIONS),
        .connections_per_ip = (unsigned)config_integer(config, KEY_CONNECTIONS_PER_HOST),
        .porter = porter,
        .proofs = true,
        .connections_per_user = (unsigned)config_integer(config, KEY_CONNECTIONS_PER_USER),
        .root_connections = ROOT_CONNECTIONS,
        .body_max = (size_t)config_integer(config, KEY_BODY_MAX),
        .request_timeout_s = config_real(config, KEY_REQUEST_TIMEOUT),
        .log = tell_request,
        .tell = tell,
    };

    if (back == NULL)
        return error_no_memory(out_error);
    back->daemon = daemon;
    node_devices_find(config_text(config, KEY_SYSFS_ROOT), &back->devices);
    options.device_directory = back->devices.directory[0] != '\0' ? back->devices.directory : NULL;
    options.device_major = back->devices.major;
    task_line_init(&back->line);
    task_line_share(&back->line, (size_t)config_integer(config, KEY_WORKERS));
    return server_open(&options, out_server, out_error);
}
