/* SPDX-License-Identifier: Apache-2.0 */
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

enum { WAIT_MS = 60000, TICK_MS = 20, SENT_MAX = 64 };

/* ---- the back ---- */

static int start(void *self, struct readiness *readiness, struct troubles *troubles,
                 struct fly_error *out_error)
{
    (void)self;
    (void)readiness;
    (void)troubles;
    (void)out_error;
    return 0;
}

static json_t *tell_peer(const struct serve_request *request)
{
    const struct serve_peer *peer = &request->peer;
    json_t *minors = json_array();

    for (size_t i = 0; i < peer->minor_count; i++)
        json_array_append_new(minors, json_integer(peer->minors[i]));
    return json_pack("{s:I s:b s:I s:I s:I s:b s:o s:s? s:s? s:i s:i s:s}", "connection",
                     (json_int_t)peer->connection, "local", peer->local, "pid", (json_int_t)peer->pid, "uid",
                     (json_int_t)peer->uid, "gid", (json_int_t)peer->gid, "same", peer->same_namespaces,
                     "minors", minors, "bearer", request->bearer, "last", request->last_event_id, "scope",
                     (int)request->scope, "body", (int)request->body_length, "end", "yes");
}

static void put(void *self, struct task *task)
{
    struct talk *talk = self;

    if (strcmp(task->request.path, "/stream") == 0 && talk->stream != NULL)
        task->answer.stream = talk->stream;
    else
        serve_answer_json(&task->answer, 200, tell_peer(&task->request));
    if (strcmp(task->request.path, "/keep") == 0)
        task->answer.keeping = SERVE_KEEP_OPEN;
    if (strcmp(task->request.path, "/limit") == 0)
        task->answer.keeping = SERVE_KEEP_LIMITED;
    task->finish(task);
}

static void count(void *self, const struct task *task)
{
    (void)self;
    (void)task;
}

static void write_figures(void *self, struct buffer *text)
{
    (void)self;
    buffer_puts(text, "talks 1\n");
}

static void closed(void *self, uint64_t connection)
{
    struct talk *talk = self;

    pthread_mutex_lock(&talk->lock);
    if (talk->closed_count < TALK_CLOSED_MAX)
        talk->closed[talk->closed_count++] = connection;
    pthread_mutex_unlock(&talk->lock);
}

static enum serve_scope admit(void *self, const struct serve_request *request)
{
    (void)request;
    return ((struct talk *)self)->admits;
}

static void tick(void *self, struct mono_time now)
{
    (void)self;
    (void)now;
}

static void nothing(void *self)
{
    (void)self;
}

static const char *const header_only[] = {NULL};
static const struct server_back plain = {.tokens = {.command = "talk token", .header_only = header_only},
                                         .start = start,
                                         .put = put,
                                         .count = count,
                                         .write_figures = write_figures,
                                         .closed = closed,
                                         .tick = tick,
                                         .stop = nothing,
                                         .end = nothing};

/* ---- the server ---- */

struct porter talk_porter;

static void *keep_ticking(void *state)
{
    struct talk *talk = state;

    while (!atomic_load(&talk->stops)) {
        server_tick(talk->server);
        poll(NULL, 0, TICK_MS);
    }
    return NULL;
}

void talk_open(struct talk *talk, struct server_options options, bool admits)
{
    const char *const listen[] = {talk->address};
    struct fly_error error = {.text = ""};

    pthread_mutex_init(&talk->lock, NULL);
    snprintf(talk->directory, sizeof talk->directory, "/tmp/flyball-talk-XXXXXX");
    assert_non_null(mkdtemp(talk->directory));
    snprintf(talk->path, sizeof talk->path, "%s/socket", talk->directory);
    snprintf(talk->address, sizeof talk->address, "unix:%s", talk->path);
    if (options.listen == NULL) {
        options.listen = listen;
        options.listen_count = 1;
    }
    talk->back = plain;
    talk->back.admit = admits ? admit : NULL;
    options.back = &talk->back;
    options.back_self = talk;
    options.connections = options.connections > 0 ? options.connections : 16;
    options.connections_per_ip = 16;
    options.body_max = 1024;
    options.request_timeout_s = options.request_timeout_s > 0 ? options.request_timeout_s : 30;
    if (options.porter != NULL &&
        porter_start(options.listen, options.listen_count, options.porter, &error) < 0)
        fail_msg("%s", error.text);
    if (server_open(&options, &talk->server, &error) < 0)
        fail_msg("%s", error.text);
    snprintf(talk->url, sizeof talk->url, "%s", server_address(talk->server, 0));
    atomic_store(&talk->stops, false);
    assert_int_equal(pthread_create(&talk->ticker, NULL, keep_ticking, talk), 0);
}

void talk_quiesce(struct talk *talk)
{
    atomic_store(&talk->stops, true);
    pthread_join(talk->ticker, NULL);
    server_quiesce(talk->server);
}

void talk_close(struct talk *talk)
{
    if (!atomic_load(&talk->stops))
        talk_quiesce(talk);
    for (int waited_ms = 0; !server_is_idle(talk->server); waited_ms += TICK_MS) {
        if (waited_ms > WAIT_MS)
            fail_msg("the server is not idle");
        server_tick(talk->server);
        poll(NULL, 0, TICK_MS);
    }
    server_close(talk->server);
    pthread_mutex_destroy(&talk->lock);
    assert_int_equal(rmdir(talk->directory), 0);
}

bool talk_has_closed(struct talk *talk, uint64_t connection)
{
    bool found = false;

    pthread_mutex_lock(&talk->lock);
    for (size_t i = 0; i < talk->closed_count; i++)
        found = found || talk->closed[i] == connection;
    pthread_mutex_unlock(&talk->lock);
    return found;
}

void talk_wait_closed(struct talk *talk, uint64_t connection)
{
    for (int waited_ms = 0; !talk_has_closed(talk, connection); waited_ms += TICK_MS) {
        if (waited_ms > WAIT_MS)
            fail_msg("the connection %lu has not ended", (unsigned long)connection);
        poll(NULL, 0, TICK_MS);
    }
}

/* ---- clients ---- */

static int connect_to_port(const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static int connect_to_path(const struct talk *talk)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path, talk->path, strlen(talk->path) + 1);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

int talk_connect(const struct talk *talk)
{
    static const char front[] = "http://127.0.0.1:";

    if (strncmp(talk->url, front, sizeof front - 1) == 0)
        return connect_to_port(talk->url + sizeof front - 1);
    return connect_to_path(talk);
}

int talk_send(int fd, const char *text, const int *sent, size_t sent_count)
{
    union {
        char bytes[CMSG_SPACE(SENT_MAX * sizeof(int))];
        struct cmsghdr aligned;
    } control = {.bytes = {0}};
    struct iovec piece = {.iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    char *copy = strdup(text);
    int failed;

    assert_non_null(copy);
    piece.iov_base = copy;
    if (sent_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sent_count * sizeof(int));
        control.aligned.cmsg_level = SOL_SOCKET;
        control.aligned.cmsg_type = SCM_RIGHTS;
        control.aligned.cmsg_len = CMSG_LEN(sent_count * sizeof(int));
        memcpy(CMSG_DATA(&control.aligned), sent, sent_count * sizeof(int));
    }
    failed = sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)strlen(text) ? 0 : errno;
    free(copy);
    return failed;
}

void talk_get(int fd, const char *path)
{
    char text[256];

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    assert_int_equal(talk_send(fd, text, NULL, 0), 0);
}

/* Returns 0 when the connection has ended. */
static size_t read_some(int fd, char *bytes, size_t maximum)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    ssize_t got;

    if (poll(&polled, 1, WAIT_MS) != 1)
        fail_msg("nothing came for a long time");
    got = recv(fd, bytes, maximum, 0);
    return got > 0 ? (size_t)got : 0;
}

const char *talk_read(int fd, const char *part)
{
    static char text[TALK_BYTES];
    size_t length = 0, from = 0, got;

    text[0] = '\0';
    while (strstr(text + from, part) == NULL) {
        from = length > strlen(part) ? length - strlen(part) : 0;
        got = read_some(fd, text + length, sizeof text - 1 - length);
        if (got == 0)
            fail_msg("the connection ended after '%s', without '%s'", text, part);
        length += got;
        text[length] = '\0';
    }
    return text;
}

size_t talk_end(int fd)
{
    char bytes[4096];
    size_t length = 0, got;

    while ((got = read_some(fd, bytes, sizeof bytes)) > 0)
        length += got;
    close(fd);
    return length;
}

const char *talk_ask(const struct talk *talk, const char *path, const char *part)
{
    int fd = talk_connect(talk);
    const char *answer;

    talk_get(fd, path);
    answer = talk_read(fd, part);
    close(fd);
    return answer;
}

void talk_wait_for_room(const struct talk *talk)
{
    char byte;

    for (int i = 0; i < 1000; i++) {
        int fd = talk_connect(talk);
        bool there = talk_send(fd, "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL, 0) == 0 &&
                     recv(fd, &byte, 1, 0) == 1;

        close(fd);
        if (there)
            return;
        poll(NULL, 0, 50);
    }
    fail_msg("there is no room");
}

long talk_number(const char *answer, const char *name)
{
    char key[64];
    const char *found;

    snprintf(key, sizeof key, "\"%s\":", name);
    found = strstr(answer, key);
    if (found == NULL)
        fail_msg("'%s' lacks %s", answer, key);
    return strtol(found + strlen(key), NULL, 10);
}
