/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a server of the test's own, which answers well and badly. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http_client.h"

#define BAD_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"

enum { REQUEST_MAX = 4096 };

static char path[64];
static pid_t server;

/* What the server says to a path of its addresses; NULL: the request itself, as it came. */
static const struct {
    const char *path;
    const char *answer;
} answers[] = {
    {" /echo ", NULL},
    {" /good ", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"},
    {" /empty ", "HTTP/1.1 204 No Content\r\n\r\n"},
    {" /missing ", "HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nnothing"},
    {" /moved ", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"},
    {" /broken ", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"},
    {" /short ", BAD_ANSWER},
    {" /close ", ""},
    {" /nonsense ", "SSH-2.0-OpenSSH_9.2\r\n"},
};

static void say(int client, const char *text)
{
    if (write(client, text, strlen(text)) < 0)
        _exit(1);
}

/* How many requests came over this connection, which stays open; or the answer of the table. */
static void answer(int client, const char *request, unsigned number)
{
    char head[96];

    if (strstr(request, " /count ") != NULL) {
        snprintf(head, sizeof head, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 1\r\n\r\n%u",
                 number % 10);
        say(client, head);
        return;
    }

    for (size_t i = 0; i < COUNT(answers); i++) {
        if (strstr(request, answers[i].path) == NULL)
            continue;
        if (answers[i].answer == NULL) {
            snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(request));
            say(client, head);
        }
        say(client, answers[i].answer != NULL ? answers[i].answer : request);
        _exit(0);
    }
    sleep(600); /* any other path: no answer */
}

static void serve(int listener)
{
    static char request[REQUEST_MAX];

    signal(SIGPIPE, SIG_IGN);
    alarm(60);
    for (;;) {
        int client = accept(listener, NULL, NULL);

        if (client >= 0 && fork() == 0) {
            for (unsigned number = 1;; number++) {
                size_t length = 0;
                ssize_t more = 1;

                memset(request, 0, sizeof request);
                while (more > 0 && strstr(request, "\r\n\r\n") == NULL) {
                    more = read(client, request + length, sizeof request - 1 - length);
                    length += more > 0 ? (size_t)more : 0;
                }
                if (more <= 0)
                    _exit(0);
                answer(client, request, number);
            }
        }
        if (client >= 0)
            close(client);
    }
}

static int start_server(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(path, sizeof path, "/tmp/flyball-test-http-%d", (int)getpid());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    server = fork();
    if (server == 0) {
        setsid();
        signal(SIGCHLD, SIG_IGN);
        serve(listener);
    }
    close(listener);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    kill(-server, SIGKILL);
    waitpid(server, NULL, 0);
    unlink(path);
    return 0;
}

static struct http_request request_of(const char *url)
{
    return (struct http_request){.url = url,
                                 .unix_socket = path,
                                 .answer_maximum = REQUEST_MAX,
                                 .connect_timeout_s = 60,
                                 .total_timeout_s = 120,
                                 .past_proxies = true};
}

/* Skips where there is no libcurl; the text has to say so then. */
static int ask(const struct http_request *request, struct http_answer *out_answer,
               struct fly_error *out_error)
{
    int code = http_ask(request, out_answer, out_error);

    if (code == FLY_EUNSUPPORTED && strstr(out_error->text, "install libcurl") != NULL)
        skip();
    return code;
}

static void test_answers(void **state)
{
    static const struct {
        const char *url;
        int status;
        const char *body;
    } cases[] = {
        {"http://localhost/good", 200, "good"},       {"http://localhost/empty", 204, ""},
        {"http://localhost/missing", 404, "nothing"}, {"http://localhost/broken", 500, ""},
        {"http://localhost/moved", 302, ""},
    };
    struct http_answer got;
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_request request = request_of(cases[i].url);

        if (ask(&request, &got, &error) < 0)
            fail_msg("%s: %s", cases[i].url, error.text);
        assert_int_equal(got.status, cases[i].status);
        assert_string_equal(got.body.data, cases[i].body);
        http_answer_deinit(&got);
    }
}

static void test_what_is_sent(void **state)
{
    static const char *const headers[] = {"Authorization: Bearer abc", "X-Other: 1", NULL};
    static const struct {
        const char *method, *body, *first_line, *length;
    } cases[] = {
        {NULL, NULL, "GET /echo HTTP/1.1\r\n", ""},
        {NULL, "ab", "POST /echo HTTP/1.1\r\n", "Content-Length: 2\r\n"},
        {"POST", NULL, "POST /echo HTTP/1.1\r\n", "Content-Length: 0\r\n"},
        {"DELETE", NULL, "DELETE /echo HTTP/1.1\r\n", ""},
    };
    struct http_answer got;
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_request request = request_of("http://localhost/echo");

        request.method = cases[i].method;
        request.body = cases[i].body;
        request.headers = headers;
        if (ask(&request, &got, &error) < 0)
            fail_msg("%s", error.text);
        assert_true(strncmp(got.body.data, cases[i].first_line, strlen(cases[i].first_line)) == 0);
        check_contains(got.body.data, cases[i].length);
        check_contains(got.body.data, "Authorization: Bearer abc\r\nX-Other: 1\r\n");
        check_contains(got.body.data, "User-Agent: flyball\r\n");
        http_answer_deinit(&got);
    }
}

static void test_failures(void **state)
{
    static const struct {
        const char *url, *socket;
        size_t maximum;
        int code;
        const char *text;
    } cases[] = {
        {"http://localhost/short", path, 1000, FLY_EREAD, "gave no whole answer"},
        {"http://localhost/close", path, 1000, FLY_EREAD, "gave no whole answer"},
        {"http://localhost/nonsense", path, 1000, FLY_EREAD, "gave no whole answer"},
        {"http://localhost/good", path, 3, FLY_ELIMIT, "longer than 3 bytes"},
        {"http://localhost/hang", path, 1000, FLY_EREAD, "did not answer within 0.3 s"},
        {"http://localhost/good", "/nowhere/socket", 1000, FLY_ENOTFOUND,
         "nobody answers at '/nowhere/socket'"},
        {"http://127.0.0.1:1/good", NULL, 1000, FLY_ENOTFOUND, "nobody answers at 'http://127.0.0.1:1/good'"},
        {"ftp://localhost/good", path, 1000, FLY_EUNSUPPORTED, "http:// or https://"},
        {"file:///etc/passwd", NULL, 1000, FLY_EUNSUPPORTED, "http:// or https://"},
        {"http://local host/", path, 1000, FLY_EUSAGE, "is no address"},
    };
    static const char *const headers[] = {"Authorization: Bearer a-secret", NULL};
    struct http_answer got;
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_request request = request_of(cases[i].url);

        request.unix_socket = cases[i].socket;
        request.answer_maximum = cases[i].maximum;
        request.headers = headers;
        if (strstr(cases[i].url, "hang") != NULL)
            request.total_timeout_s = 0.3;
        if (ask(&request, &got, &error) != cases[i].code)
            fail_msg("%s: %s", cases[i].url, error.text);
        check_contains(error.text, cases[i].text);
        assert_null(strstr(error.text, "a-secret"));
    }
}

/* Requests of a line share its connection, those without one do not; a child leaves it open. */
static void test_line(void **state)
{
    static const char *const expected[] = {"1", "2", "3"};
    struct http_request request = request_of("http://localhost/count");
    struct http_line *line = NULL;
    struct http_answer got;
    struct fly_error error;
    pid_t child;

    (void)state;
    if (http_line_new(&line, &error) == FLY_EUNSUPPORTED)
        skip();
    for (size_t i = 0; i < 2 * COUNT(expected); i++) {
        request.line = i % 2 == 0 ? line : NULL;
        if (ask(&request, &got, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(got.status, 503);
        assert_true(got.retry_after_s == 7.0);
        assert_string_equal(got.body.data, i % 2 == 0 ? expected[i / 2] : "1");
        http_answer_deinit(&got);
    }
    child = fork();
    if (child == 0) {
        http_line_free(line);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    request.line = line;
    assert_int_equal(ask(&request, &got, &error), 0);
    assert_string_equal(got.body.data, "4");
    http_answer_deinit(&got);
    http_line_free(line);
    http_line_free(NULL);
}

static void *set_soon(void *flag)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

/* One that nobody waits for any more ends long before its time; until then it is like any other. */
static void test_abandoned(void **state)
{
    struct http_request request = request_of("http://localhost/good");
    atomic_bool abandon = false;
    struct http_answer got;
    struct fly_error error;
    pthread_t thread;

    (void)state;
    request.abandon = &abandon;
    if (ask(&request, &got, &error) == FLY_EUNSUPPORTED)
        skip();
    assert_string_equal(got.body.data, "good");
    http_answer_deinit(&got);
    request.url = "http://localhost/nobody";
    request.unix_socket = "/tmp/flyball-nobody";
    assert_int_equal(ask(&request, &got, &error), FLY_ENOTFOUND);
    request.url = "http://localhost/silent";
    request.unix_socket = path;
    assert_int_equal(pthread_create(&thread, NULL, set_soon, &abandon), 0);
    assert_int_equal(ask(&request, &got, &error), FLY_EREAD);
    check_contains(error.text, "was not waited for");
    assert_int_equal(ask(&request, &got, &error), FLY_EREAD);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),         cmocka_unit_test(test_answers),
        cmocka_unit_test(test_what_is_sent), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_abandoned),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
