/* SPDX-License-Identifier: Apache-2.0 */
/* A server with something behind it that knows no jobs. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/http_client.h"
#include "http/server.h"

enum { ANSWER_MAX = 1 << 16 };

/* What stands behind: it answers with the path, and counts what it is asked for. */
struct behind {
    int started, put, counted, ticked, stopped, ended;
    int start_code, part_code; /* what these answer */
    struct trouble trouble;
};

struct note {
    int puts;
};

static int look(void *self, struct fly_error *out_error)
{
    const struct behind *behind = self;

    out_error->code = behind->part_code;
    return behind->part_code;
}

static int start(void *self, struct readiness *readiness, struct troubles *troubles,
                 struct fly_error *out_error)
{
    static const struct readiness_reason reasons[] = {{FLY_EBUSY, "it is busy"}, {0, "it is not there"}};
    struct behind *behind = self;
    const struct readiness_part part = {
        .name = "engine", .reasons = reasons, .trouble = &behind->trouble, .look = look, .self = behind};

    (void)troubles;
    readiness_add(readiness, &part);
    behind->started++;
    out_error->code = behind->start_code;
    return behind->start_code;
}

static void put(void *self, struct task *task)
{
    struct behind *behind = self;
    struct note *note = task->note;

    assert_int_equal(note->puts, 0);
    note->puts++;
    behind->put++;
    task->family = "echo";
    serve_answer_json(&task->answer, 200, json_pack("{s:s}", "path", task->request.path));
    task->finish(task);
}

static void count(void *self, const struct task *task)
{
    struct behind *behind = self;

    behind->counted += ((const struct note *)task->note)->puts;
}

static void write_figures(void *self, struct buffer *text)
{
    buffer_printf(text, "behind_answers %d\n", ((const struct behind *)self)->counted);
}

static void tick(void *self, struct mono_time now)
{
    (void)now;
    ((struct behind *)self)->ticked++;
}

static void stop(void *self)
{
    ((struct behind *)self)->stopped++;
}

static void end(void *self)
{
    ((struct behind *)self)->ended++;
}

static const char *const header_only[] = {"/own", NULL};

static const struct server_back back = {
    .tokens = {.command = "behind token",
               .path_clients = "clients of another server",
               .path_setting = "address",
               .path_option = "--others",
               .header_only = header_only},
    .note_bytes = sizeof(struct note),
    .start = start,
    .put = put,
    .count = count,
    .write_figures = write_figures,
    .tick = tick,
    .stop = stop,
    .end = end,
};

static char directory[] = "/tmp/flyball-server-XXXXXX";
static char address[64], tokens[64];

static int open_with(struct behind *behind, struct server_options options, struct server **out_server,
                     struct fly_error *out_error)
{
    const char *const listen[] = {address};

    behind->trouble = (struct trouble){.name = "engine", .meaning = "nothing moves", .over = "it runs"};
    if (options.listen == NULL)
        options.listen = listen;
    if (options.back == NULL)
        options.back = &back;
    options.listen_count = 1;
    options.back_self = behind;
    options.connections = 8;
    options.connections_per_ip = 8;
    options.body_max = 1024;
    options.request_timeout_s = 10;
    return server_open(&options, out_server, out_error);
}

static int open_server(struct behind *behind, struct server **out_server, struct fly_error *out_error)
{
    return open_with(behind, (struct server_options){0}, out_server, out_error);
}

static void close_server(struct server *server)
{
    server_quiesce(server);
    while (!server_is_idle(server))
        server_tick(server);
    server_close(server);
}

static void check_answer(const char *path, int status, const char *part)
{
    char url[128];
    struct http_answer answer;
    struct fly_error error = {.text = ""};
    const struct http_request request = {.url = url,
                                         .unix_socket = address + strlen("unix:"),
                                         .answer_maximum = ANSWER_MAX,
                                         .connect_timeout_s = 60,
                                         .total_timeout_s = 120};

    snprintf(url, sizeof url, "http://localhost%s", path);
    if (http_ask(&request, &answer, &error) < 0)
        fail_msg("%s: %s", path, error.text);
    if (answer.status != status)
        fail_msg("%s: %d, %s", path, answer.status, answer.body.data);
    check_contains(answer.body.data, part);
    http_answer_deinit(&answer);
}

static void test_answers(void **state)
{
    struct behind behind = {0};
    struct fly_error error = {.text = ""};
    struct server *server;

    (void)state;
    if (open_server(&behind, &server, &error) < 0)
        fail_msg("%s", error.text);
    check_answer("/healthz", 200, "\"ok\"");
    check_answer("/readyz", 200, "{\"tokens\":null,\"engine\":\"ok\",\"status\":\"ready\"}");
    check_answer("/any/path", 200, "{\"path\":\"/any/path\"}");
    check_answer("/metrics", 200, "\nbehind_answers 1\n");
    check_answer("/metrics", 200, "\nflyball_http_requests_total{family=\"echo\",status=\"200\"} 1\n");
    server_tick(server);
    close_server(server);
    assert_int_equal(behind.started, 1);
    assert_int_equal(behind.put, 1);
    assert_int_equal(behind.stopped, 1);
    assert_int_equal(behind.ended, 1);
    assert_true(behind.ticked > 0);
}

static void test_not_ready(void **state)
{
    struct behind behind = {.part_code = FLY_EBUSY};
    struct fly_error error = {.text = ""};
    struct server *server;

    (void)state;
    if (open_server(&behind, &server, &error) < 0)
        fail_msg("%s", error.text);
    check_answer("/readyz", 503, "{\"tokens\":null,\"engine\":\"it is busy\",\"status\":\"not ready\"");
    close_server(server);
}

/* Who is refused reads the words of the program behind the server. */
static void check_refusals(struct server_options options, const char *stranger, const char *in_path,
                           int status, const char *own_path)
{
    struct behind behind = {0};
    struct fly_error error = {.text = ""};
    struct server *server;

    options.tokens = tokens;
    if (open_with(&behind, options, &server, &error) < 0)
        fail_msg("%s", error.text);
    check_answer("/any/path", 401, stranger);
    check_answer("/token/any/path", status, in_path);
    check_answer("/token/any/own/path", own_path != NULL ? 403 : 404, own_path != NULL ? own_path : in_path);
    close_server(server);
}

static void test_words_of_refusals(void **state)
{
    static const struct server_token_words plain = {.command = "behind token", .header_only = header_only};
    struct server_back without = back;
    const struct server_options shorter = {.back = &without};

    (void)state;
    check_refusals(
        (struct server_options){.tokens_in_path = true},
        "\"this service wants a token: 'Authorization: Bearer ...', or for clients of another server "
        "the address https://HOST:PORT/token/TOKEN as address; who runs it makes one with 'behind "
        "token'\"",
        "not one of this service's", 401,
        "\"a token in the path is for clients of another server; send it as 'Authorization: Bearer "
        "...' here\"");
    check_refusals(
        (struct server_options){0},
        "\"this service wants a token: 'Authorization: Bearer ...'; who runs it makes one with "
        "'behind token'\"",
        "\"this service takes tokens as 'Authorization: Bearer ...' alone; who runs it allows them "
        "in the path with --others\"",
        404, NULL);
    without.tokens = plain;
    check_refusals(shorter, "makes one with 'behind token'\"",
                   "\"this service takes tokens as 'Authorization: Bearer ...' alone\"", 404, NULL);
}

static void check_outside(bool tokens_in_path, const char *text)
{
    static const char *const outside[] = {"0.0.0.0:0"};
    struct behind behind = {0};
    struct fly_error error = {.text = ""};
    struct server *server;

    assert_int_equal(open_with(&behind,
                               (struct server_options){.listen = outside, .tokens_in_path = tokens_in_path},
                               &server, &error),
                     FLY_EUSAGE);
    assert_string_equal(error.text, text);
    assert_int_equal(behind.ended, 1);
}

static void test_words_without_tokens(void **state)
{
    (void)state;
    check_outside(false, "'0.0.0.0:0' can be reached from other machines, so that it takes tokens: make one "
                         "with 'behind token NAME --tokens FILE' and start with --tokens FILE, or listen on "
                         "127.0.0.1, [::1] or unix:PATH");
    check_outside(true,
                  "'0.0.0.0:0' can be reached from other machines, so that it takes tokens: make one "
                  "with 'behind token NAME --tokens FILE' and start with --tokens FILE and TLS; clients "
                  "of another server then get https://HOST:PORT/token/TOKEN as their address, or listen "
                  "on 127.0.0.1, [::1] or unix:PATH");
}

/* What cannot be opened ends what stands behind it all the same, and stops only what was started. */
static void test_not_opened(void **state)
{
    struct behind behind = {.start_code = FLY_ESTATE};
    char before[sizeof address];
    struct fly_error error;
    struct server *server;

    (void)state;
    assert_int_equal(open_server(&behind, &server, &error), FLY_ESTATE);
    assert_int_equal(behind.stopped, 0);
    assert_int_equal(behind.ended, 1);
    memcpy(before, address, sizeof before);
    snprintf(address, sizeof address, "127.0.0.1:port");
    behind = (struct behind){0};
    assert_int_equal(open_server(&behind, &server, &error), FLY_EUSAGE);
    memcpy(address, before, sizeof before);
    assert_int_equal(behind.started, 0);
    assert_int_equal(behind.ended, 1);
}

static int make_directory(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(address, sizeof address, "unix:%s/socket", directory);
    snprintf(tokens, sizeof tokens, "%s/tokens", directory);
    return close(open(tokens, O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static int remove_directory(void **state)
{
    char lock[80];

    (void)state;
    snprintf(lock, sizeof lock, "%s.lock", address + strlen("unix:"));
    unlink(lock);
    unlink(tokens);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),           cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_words_of_refusals), cmocka_unit_test(test_words_without_tokens),
        cmocka_unit_test(test_not_opened),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
