/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's way through libmicrohttpd's callbacks: its target, its head, its body piece by
 * piece, and once more when the answer is there. Meanwhile its connection is suspended and costs
 * nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/harmless.h"
#include "http/process_metrics.h"
#include "http/prometheus.h"
#include "http/server_private.h"
#include "http/tcp_user.h"
#include "shapes/shape_rows.h"

enum { ANSWER_MAX = 256 << 20, NUMBER_TEXT = 16 };
static char nothing[1] = "";
static const double ready_wait_s = 5.0;
static const struct mono_time never = {INT64_MAX};

static struct mono_time in_time(const struct server *server)
{
    return mono_after_s(mono_now(), server->options.request_timeout_s);
}

/* The answer is made; the thread that reads the connections sends it. */
static void answered(struct task *task)
{
    struct visit *visit = (struct visit *)task;

    visit->stage = VISIT_ANSWERED;
    MHD_resume_connection(visit->connection);
}

void *server_on_target(void *data, const char *target, struct MHD_Connection *connection)
{
    struct door *door = data;
    struct visit *visit = calloc(1, sizeof *visit + door->server->options.back->note_bytes);

    if (visit == NULL)
        return NULL;
    visit->door = door;
    visit->connection = connection;
    visit->began = mono_now();
    visit->task.family = "none";
    visit->task.finish = answered;
    visit->task.request.caller_name = "";
    visit->task.request.peer = SERVE_PEER_UNKNOWN;
    visit->task.note = visit->note;
    buffer_init(&visit->body, door->server->options.body_max + 1);
    buffer_init(&visit->task.answer.body, ANSWER_MAX);
    visit->target = strdup(target);
    return visit;
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (value != NULL)
        MHD_add_response_header(response, name, value);
}

/*
 * Answers repeat texts of clients. They must not carry control sequences to the terminal of
 * whoever shows them. Plain bytes are shown to nobody.
 */
static void make_harmless(struct serve_answer *answer)
{
    struct buffer shown;

    if (strncmp(answer->type, "application/", strlen("application/")) != 0 ||
        strcmp(answer->type, "application/octet-stream") == 0 ||
        harmless_all(answer->body.data, answer->body.length, true))
        return;
    buffer_init(&shown, ANSWER_MAX);
    harmless_put_json(&shown, answer->body.data, answer->body.length);
    if (shown.error < 0) {
        buffer_deinit(&shown);
        serve_answer_error(answer, 503, fly_error_name(FLY_ENOMEM), "the answer does not fit into memory");
        return;
    }
    buffer_deinit(&answer->body);
    answer->body = shown;
}

static struct MHD_Response *make_body(struct serve_answer *answer)
{
    struct MHD_Response *response;

    if (answer->type != NULL)
        make_harmless(answer);
    if (answer->body.capacity == 0)
        return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    response = MHD_create_response_from_buffer(answer->body.length, answer->body.data, MHD_RESPMEM_MUST_FREE);
    if (response != NULL)
        buffer_init(&answer->body, ANSWER_MAX);
    return response;
}

static struct MHD_Response *make_stream(struct visit *visit)
{
    struct serve_answer *answer = &visit->task.answer;

    answer->status = 200;
    answer->type = "text/event-stream";
    return streams_begin(&visit->door->server->streams, &visit->line, answer->stream, visit->connection,
                         visit->row);
}

static struct MHD_Response *make_response(struct visit *visit)
{
    struct serve_answer *answer = &visit->task.answer;
    struct MHD_Response *response = answer->stream != NULL ? make_stream(visit) : make_body(answer);
    char seconds[NUMBER_TEXT];

    if (response == NULL)
        return NULL;
    add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    add_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
    add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
               answer->challenge != NULL ? answer->challenge : visit->challenge);
    add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, answer->stream != NULL ? "no-cache" : "no-store");
    add_header(response, "X-Content-Type-Options", "nosniff");
    if (answer->retry_after_s > 0) {
        snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s);
        add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    /* The unread rest of a refused request must not be taken for the next request. */
    if (visit->broken || visit->body.length < visit->body_length || answer->status == 411 ||
        answer->status == 413 || atomic_load(&visit->door->server->stopping))
        add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return response;
}

static enum MHD_Result send_answer(struct visit *visit)
{
    struct server *server = visit->door->server;
    struct MHD_Response *response = make_response(visit);
    enum MHD_Result result = MHD_NO;

    visit->stage = VISIT_SENDING;
    if (visit->task.answer.keeping != SERVE_KEEP_AS_BEFORE)
        visit->row->kept_open = visit->task.answer.keeping == SERVE_KEEP_OPEN;
    if (visit->task.answer.status >= 500)
        readiness_doubt(&server->readiness);
    traffic_count(&server->traffic, visit->task.family, visit->task.answer.status);
    server->options.back->count(server->options.back_self, &visit->task);
    connections_set(&server->connections, visit->row, in_time(server));
    /* From here on it is the client who is waited for, but a stream waits for news. */
    if (visit->task.answer.stream == NULL && !visit->row->kept_open)
        door_shares_wait(&visit->door->shares, visit->row);
    if (response != NULL) {
        result = MHD_queue_response(visit->connection, (unsigned)visit->task.answer.status, response);
        MHD_destroy_response(response);
    }
    return result;
}

static enum MHD_Result refuse_method(struct visit *visit)
{
    serve_answer_error(&visit->task.answer, 405, fly_error_name(FLY_EUSAGE), "this is only read, with GET");
    visit->task.answer.allow = "GET, HEAD";
    return send_answer(visit);
}

/* Made at once: it asks nothing that may block. */
static enum MHD_Result send_metrics(struct visit *visit)
{
    struct server *server = visit->door->server;
    struct serve_answer *answer = &visit->task.answer;

    if (visit->task.request.scope < SERVE_READ ||
        (server->options.back->shows_figures != NULL &&
         !server->options.back->shows_figures(server->options.back_self, &visit->task.request))) {
        serve_answer_error(answer, 403, fly_error_name(FLY_EPERM),
                           "metrics take the scope 'read'; send a token that has it");
        return send_answer(visit);
    }
    process_metrics_write_version(&answer->body);
    server->options.back->write_figures(server->options.back_self, &answer->body);
    traffic_write(&server->traffic, connections_count(&server->connections), atomic_load(&server->under_way),
                  &answer->body);
    process_metrics_write(&answer->body);
    answer->status = 200;
    answer->type = PROMETHEUS_TYPE;
    return send_answer(visit);
}

struct health {
    const char *status;
};

static const struct shape_field health_rows[] = {{SHAPE_AT(health, status), SHAPE_IS_TEXT(UINT32_MAX)}};
static const struct shape shape_health = {SHAPE_OF(health, health_rows)};

/* Any answer at all says that the server lives. */
static enum MHD_Result send_health(struct visit *visit)
{
    const struct health health = {.status = "ok"};

    serve_answer_struct(&visit->task.answer, 200, &shape_health, &health);
    return send_answer(visit);
}

/* Returns whether the back had an answer at once. */
static bool answer_now(struct visit *visit)
{
    const struct server_options *options = &visit->door->server->options;

    visit->task.request.body = visit->body.data;
    visit->task.request.body_length = visit->body.length;
    return options->back->answer_now != NULL && options->back->answer_now(options->back_self, &visit->task);
}

/* Passes the request to a thread that may block. */
static enum MHD_Result wait_for_answer(struct visit *visit, bool ready)
{
    struct server *server = visit->door->server;
    struct task *task = &visit->task;

    task->request.body = visit->body.data;
    task->request.body_length = visit->body.length;
    task->deadline = mono_after_s(mono_now(), ready ? ready_wait_s : server->options.request_timeout_s);

    visit->stage = VISIT_WAITING;
    connections_set(&server->connections, visit->row, never);
    MHD_suspend_connection(visit->connection);
    if (ready)
        readiness_ask(&server->readiness, task);
    else
        server->options.back->put(server->options.back_self, task);
    return MHD_YES;
}

static enum MHD_Result wait_for_readiness(struct visit *visit)
{
    return wait_for_answer(visit, true);
}

/* What the server answers itself; all of it is read only. */
static const struct {
    const char *path, *family;
    enum MHD_Result (*answer)(struct visit *visit);
} own_paths[] = {
    {"/healthz", "healthz", send_health},
    {"/readyz", "readyz", wait_for_readiness},
    {"/metrics", "metrics", send_metrics},
};

/* Passes the request on to whoever answers it. */
static enum MHD_Result submit(struct visit *visit)
{
    struct task *task = &visit->task;

    visit->stage = VISIT_WHOLE;
    door_shares_busy(&visit->door->shares, visit->row);
    atomic_fetch_sub(&visit->door->server->reading, 1);
    for (size_t i = 0; i < sizeof own_paths / sizeof own_paths[0]; i++) {
        if (strcmp(task->request.path, own_paths[i].path) != 0)
            continue;
        task->family = own_paths[i].family;
        if (strcmp(task->request.method, "GET") != 0 && strcmp(task->request.method, "HEAD") != 0)
            return refuse_method(visit);
        return own_paths[i].answer(visit);
    }
    return answer_now(visit) ? send_answer(visit) : wait_for_answer(visit, false);
}

static enum MHD_Result begin(struct visit *visit, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    visit->row = info != NULL ? info->socket_context : NULL;
    visit->task.request.method = method;
    /* Not earlier: a client that has sent half a head must not delay the server's end. */
    visit->under_way = true;
    atomic_fetch_add(&visit->door->server->under_way, 1);
    if (visit->row == NULL || visit->target == NULL)
        return MHD_NO;
    visit->task.request.peer = visit->row->peer;
    if (!gate_lets_in(visit, version))
        return send_answer(visit);
    visit->stage = VISIT_READING;
    atomic_fetch_add(&visit->door->server->reading, 1);
    return MHD_YES;
}

static enum MHD_Result take_body(struct visit *visit, const char *upload, size_t *upload_size)
{
    buffer_append(&visit->body, upload, *upload_size);
    *upload_size = 0;
    if (visit->body.error == 0)
        return MHD_YES;
    /* Longer than announced, or no memory: it is too late for an answer. */
    return MHD_NO;
}

enum MHD_Result server_on_request(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    struct visit *visit = *request;

    (void)data;
    (void)connection;
    (void)url;
    if (visit == NULL)
        return MHD_NO;
    switch (visit->stage) {
    case VISIT_NEW:
        return begin(visit, method, version);
    case VISIT_READING:
        return *upload_size > 0 ? take_body(visit, upload, upload_size) : submit(visit);
    case VISIT_ANSWERED:
        return send_answer(visit);
    case VISIT_WHOLE:
    case VISIT_WAITING:
    case VISIT_SENDING:
        break;
    }
    *upload_size = 0;
    return MHD_YES;
}

static void log_visit(const struct visit *visit)
{
    const struct server_options *options = &visit->door->server->options;
    const struct serve_request *request = &visit->task.request;
    char line[512];

    if (options->log == NULL)
        return;
    snprintf(line, sizeof line, "%s: %.16s %.300s: %d in %.1f ms%s%s", visit->door->url,
             request->method != NULL ? request->method : "?", request->path != NULL ? request->path : "?",
             visit->task.answer.status, 1e3 * mono_elapsed_s(visit->began, mono_now()),
             request->caller_name[0] != '\0' ? ", for " : "", request->caller_name);
    options->log(options->log_state, line);
}

void server_on_completed(void *data, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode how)
{
    struct visit *visit = *request;
    struct server *server;
    bool under_way;

    (void)data;
    (void)connection;
    (void)how;
    if (visit == NULL)
        return;
    server = visit->door->server;
    log_visit(visit);
    if (visit->row != NULL) {
        connections_set(&server->connections, visit->row, visit->row->kept_open ? never : in_time(server));
        if (!visit->row->kept_open)
            door_shares_wait(&visit->door->shares, visit->row);
    }
    gate_forget_body(visit);
    if (visit->stage == VISIT_READING)
        atomic_fetch_sub(&server->reading, 1);
    under_way = visit->under_way;
    if (visit->task.answer.stream != NULL)
        streams_end(&visit->line, visit->task.answer.stream);
    buffer_deinit(&visit->body);
    buffer_deinit(&visit->task.answer.body);
    free(visit->target);
    free(visit);
    *request = NULL;
    if (under_way)
        atomic_fetch_sub(&server->under_way, 1);
}

/* Finds out who connected, and gives the connection its number. */
static void look_at_peer(const struct door *door, struct connection *row)
{
    struct server *server = door->server;
    bool over_unix = door->listener.bound.at.ss_family == AF_UNIX;
    uint64_t number = atomic_fetch_add(&server->connection_numbers, 1) + 1;

    if (over_unix && server->peers != NULL)
        peers_claim(server->peers, row->fd, number, &row->peer);
    else if (over_unix && server->options.names_users)
        peer_look(row->fd, &row->peer);
    else if (server->options.names_users)
        row->peer.uid = tcp_user_of(row->fd);
    row->peer.connection = number;
}

static void begin_connection(struct door *door, struct MHD_Connection *connection, void **socket)
{
    struct server *server = door->server;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *row;

    if (info == NULL)
        return;
    row = connections_add(&server->connections, info->connect_fd, in_time(server), server);
    *socket = row;
    if (row == NULL)
        return;
    if (door->shared && !door_shares_add(&door->shares, row))
        shutdown(row->fd, SHUT_RDWR);
    look_at_peer(door, row);
}

static void end_connection(struct door *door, struct connection *row)
{
    struct server *server = door->server;
    const struct server_options *options = &server->options;
    uint64_t number = row->peer.connection;

    door_shares_remove(&door->shares, row);
    connections_remove(&server->connections, row);
    if (server->peers != NULL)
        peers_forget(server->peers, number);
    if (options->back->closed != NULL)
        options->back->closed(options->back_self, number);
}

void server_on_connection(void *data, struct MHD_Connection *connection, void **socket,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        begin_connection(data, connection, socket);
    } else if (*socket != NULL) {
        end_connection(data, *socket);
        *socket = NULL;
    }
}
