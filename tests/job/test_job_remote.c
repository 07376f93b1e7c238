/* SPDX-License-Identifier: Apache-2.0 */
/* A service's client: addresses, tokens, answers of every kind, and what is asked again. */
#include "job_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/service_address.h"
#include "job/remote/remote_answer.h"

/* ---- a service that says what it was told to ---- */

enum { SCRIPT_MAX = 8, HEARD_MAX = 8192 };

static struct {
    char path[64];
    int listener;
    pthread_t thread;
    const char *answers[SCRIPT_MAX + 1]; /* "": hangs up without one; ended by NULL */
    char heard[SCRIPT_MAX][HEARD_MAX];   /* requests, as they came */
    unsigned count;
} service;

static void hear(int client, char heard[HEARD_MAX])
{
    size_t length = 0, wanted = HEARD_MAX;

    while (length < wanted && length < HEARD_MAX - 1) {
        ssize_t more = read(client, heard + length, HEARD_MAX - 1 - length);
        const char *head_end, *said;

        if (more <= 0)
            break;
        length += (size_t)more;
        heard[length] = '\0';
        head_end = strstr(heard, "\r\n\r\n");
        said = strstr(heard, "Content-Length: ");
        if (head_end != NULL)
            wanted = (size_t)(head_end - heard) + 4 +
                     (said != NULL ? strtoul(said + strlen("Content-Length: "), NULL, 10) : 0);
    }
}

static void *serve(void *context)
{
    (void)context;
    for (; service.answers[service.count] != NULL; service.count++) {
        const char *answer = service.answers[service.count];
        int client = accept(service.listener, NULL, NULL);

        hear(client, service.heard[service.count]);
        if (write(client, answer, strlen(answer)) < 0)
            abort();
        close(client);
    }
    close(service.listener);
    return NULL;
}

static void start(const char *const answers[], size_t count)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(&service, 0, sizeof service);
    memcpy(service.answers, answers, count * sizeof answers[0]);
    snprintf(service.path, sizeof service.path, "/tmp/flyball-test-remote-%d", (int)getpid());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", service.path);
    unlink(service.path);
    service.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(service.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(service.listener, 16), 0);
    assert_int_equal(pthread_create(&service.thread, NULL, serve, NULL), 0);
}

static void stop(void)
{
    pthread_join(service.thread, NULL);
    unlink(service.path);
}

static void open_service(const struct job_options *options, struct jobs *out_jobs)
{
    char address[80];
    struct fly_error error;

    snprintf(address, sizeof address, "unix:%s", service.path);
    check_fine(jobs_open(address, options, out_jobs, &error), error);
    assert_string_equal(out_jobs->backend->name, "remote");
}

#define CLOSE "Connection: close\r\n"
#define ANSWER(status, length, body)                                                            \
    "HTTP/1.1 " status "\r\n" CLOSE "Content-Type: application/json\r\nContent-Length: " length \
    "\r\n\r\n" body
#define DONE "HTTP/1.1 204 No Content\r\n" CLOSE "\r\n"
#define SECONDS_1 "Retry-After: 1\r\n"
#define SECONDS_100 "Retry-After: 100\r\n" /* longer than anybody here waits */
#define BUSY(after)                                                  \
    "HTTP/1.1 503 Busy\r\n" CLOSE after "Content-Length: 50\r\n\r\n" \
    "{\"error\":{\"code\":\"FLY_EBUSY\",\"message\":\"locked!\"}}"
#define UNSURE                                                 \
    "HTTP/1.1 503 Busy\r\n" CLOSE "Content-Length: 50\r\n\r\n" \
    "{\"error\":{\"code\":\"FLY_EUNSURE\",\"message\":\"lost!\"}}"
#define MISSING                                                     \
    "HTTP/1.1 404 Not Found\r\n" CLOSE "Content-Length: 55\r\n\r\n" \
    "{\"error\":{\"code\":\"FLY_ENOTFOUND\",\"message\":\"no job j\"}}"
#define REFUSED                                                        \
    "HTTP/1.1 401 Unauthorized\r\n" CLOSE "Content-Length: 50\r\n\r\n" \
    "{\"error\":{\"code\":\"FLY_EPERM\",\"message\":\"expired\"}}"
#define PAGE(after) "HTTP/1.1 502 Bad Gateway\r\n" CLOSE after "Content-Length: 6\r\n\r\n<html>"

static const struct job_beat beat = {.job = "j", .trial = 1, .attempt = 1, .energy_j = NAN, .time_s = NAN};

/* ---- repeating ---- */

static void test_repeats(void **state)
{
    static const struct {
        const char *answers[SCRIPT_MAX];
        size_t count;
        double wait_s;
        int code;
        const char *words;
    } rows[] = {
        {{DONE}, 1, 60, 0, ""},
        {{"", "", DONE}, 3, 60, 0, ""},
        {{PAGE(""), DONE}, 2, 60, 0, ""},
        {{UNSURE, DONE}, 2, 60, 0, ""},
        {{BUSY(SECONDS_1), DONE}, 2, 60, 0, ""},
        {{BUSY(SECONDS_100)}, 1, 60, FLY_EBUSY, "locked!"},
        {{MISSING}, 1, 60, FLY_ENOTFOUND, "no job j"},
        {{""}, 1, 0.01, FLY_EUNSURE, "it may have been done at 'unix:"},
        {{PAGE(SECONDS_100)}, 1, 60, FLY_EUNSURE, "status 502"},
        {{"", MISSING}, 2, 60, FLY_ENOTFOUND, "no job j"},
        {{ANSWER("200 OK", "5", "hello")}, 1, 60, FLY_EUNREACHABLE, "is not the service"},
        {{ANSWER("302 Found", "0", "")}, 1, 60, FLY_EUNREACHABLE, "status 302"},
        {{ANSWER("404 Not Found", "6", "<html>")}, 1, 60, FLY_EUNREACHABLE, "status 404"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct job_options options = {.wait_s = rows[i].wait_s};
        struct fly_error error = {.text = ""};
        struct jobs jobs;
        int code;

        start(rows[i].answers, rows[i].count);
        open_service(&options, &jobs);
        code = jobs.backend->heartbeat(jobs.self, &beat, &error);
        stop();
        if (code != rows[i].code || strstr(error.text, rows[i].words) == NULL)
            fail_msg("row %zu: %d: %s", i, code, error.text);
        for (size_t k = 0; k < rows[i].count; k++) {
            assert_ptr_equal(strstr(service.heard[k], "POST /v1/jobs/j/trials/1/heartbeats HTTP/1.1\r\n"),
                             service.heard[k]);
            check_contains(service.heard[k], "{\"attempt\":1,\"energy_j\":null,\"time_s\":null}");
        }
        jobs_close(&jobs);
    }
}

/* A question without a request gets one, and keeps it when it is asked again. */
static void test_request(void **state)
{
    static const char *const answers[] = {"", "", REFUSED};
    const struct job_options options = {.wait_s = 60};
    const struct job_question question = job_fixture_question("j");
    struct job_proposal proposal;
    struct fly_error error;
    const char *requests[COUNT(answers)];
    struct jobs jobs;

    (void)state;
    start(answers, COUNT(answers));
    open_service(&options, &jobs);
    check_fails(jobs.backend->propose(jobs.self, &question, &proposal, &error), FLY_EPERM, error, "expired");
    stop();
    for (size_t i = 0; i < COUNT(answers); i++) {
        requests[i] = strstr(service.heard[i], "\"request\":\"");
        assert_non_null(requests[i]);
        assert_memory_equal(requests[i], requests[0], strlen("\"request\":\"") + 33);
    }
    assert_int_equal(requests[0][strlen("\"request\":\"") + 32], '"');
    jobs_close(&jobs);
}

/* What was removed is not there when it is removed again. */
static void test_remove_and_import(void **state)
{
    static const char *const removes[] = {"", MISSING};
    static const char *const imports[] = {"",
                                          "HTTP/1.1 409 Conflict\r\n" CLOSE "Content-Length: 52\r\n\r\n"
                                          "{\"error\":{\"code\":\"FLY_ECONFLICT\",\"message\":\"there\"}}"};
    const struct job_options options = {.wait_s = 60};
    struct fly_error error;
    struct jobs jobs;

    (void)state;
    start(removes, COUNT(removes));
    open_service(&options, &jobs);
    check_fine(jobs.backend->remove(jobs.self, "j", &error), error);
    stop();
    start(removes + 1, 1);
    check_fails(jobs.backend->remove(jobs.self, "j", &error), FLY_ENOTFOUND, error, "no job j");
    stop();
    start(imports, COUNT(imports));
    check_fails(jobs.backend->import(jobs.self, "j", "{}\n", 3, &error), FLY_EUNSURE, error, "look at it");
    stop();
    check_contains(service.heard[1], "application/x-ndjson");
    jobs_close(&jobs);
}

static void test_nobody(void **state)
{
    struct fly_error error;
    struct arena arena;
    struct job_list list;
    struct jobs jobs;

    (void)state;
    arena_init(&arena, 1 << 16);
    check_fine(jobs_open("unix:/nowhere/socket", NULL, &jobs, &error), error);
    check_fails(jobs.backend->list(jobs.self, &arena, &list, &error), FLY_EUNREACHABLE, error,
                "nobody answers at '/nowhere/socket'");
    check_fails(jobs.backend->show(jobs.self, "no/job", &arena, NULL, &error), FLY_ENOTFOUND, error,
                "no/job");
    jobs_close(&jobs);
    arena_deinit(&arena);
}

static void test_fork(void **state)
{
    struct fly_error error;
    struct jobs jobs;
    int status = 0;
    pid_t child;

    (void)state;
    check_fine(jobs_open("unix:/nowhere/socket", NULL, &jobs, &error), error);
    child = fork();
    if (child == 0) {
        int code = jobs.backend->heartbeat(jobs.self, &beat, &error);

        jobs_close(&jobs);
        _exit(code == FLY_ESTATE ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    jobs_close(&jobs);
}

/* ---- tokens ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A token that is refused is read again, once; it stands in no text. */
static void test_tokens(void **state)
{
    static const char *const answers[] = {REFUSED, DONE, REFUSED};
    char path[64];
    const struct job_options options = {.wait_s = 60, .token_file = path};
    struct fly_error error;
    struct jobs jobs;

    (void)state;
    snprintf(path, sizeof path, "/tmp/flyball-test-token-%d", (int)getpid());
    write_file(path, "  first-secret\n");
    start(answers, COUNT(answers));
    open_service(&options, &jobs);
    write_file(path, "second-secret");
    check_fine(jobs.backend->heartbeat(jobs.self, &beat, &error), error);
    check_fails(jobs.backend->heartbeat(jobs.self, &beat, &error), FLY_EPERM, error, "expired");
    assert_null(strstr(error.text, "secret"));
    stop();
    check_contains(service.heard[0], "Authorization: Bearer first-secret\r\n");
    check_contains(service.heard[1], "Authorization: Bearer second-secret\r\n");
    jobs_close(&jobs);
    unlink(path);
}

static void test_refused_tokens(void **state)
{
    static const struct {
        const char *address, *token, *file;
        int code;
        const char *words;
    } rows[] = {
        {"http://example.org", "abc", "", FLY_EUSAGE, "in the clear; use https://"},
        {"http://127.0.0.2.example.org", "abc", "", FLY_EUSAGE, "in the clear"},
        {"http://10.0.0.1:80", "", "/nowhere", FLY_EUSAGE, "in the clear"},
        {"https://example.org", "a-secret with blanks", "", FLY_EUSAGE, "blank"},
        {"https://example.org", "a-secret\x01", "", FLY_EUSAGE, "strange character"},
        {"https://example.org", "", "/nowhere/token", FLY_ENOTFOUND, "FLYBALL_TOKEN_FILE"},
        {"https://example.org", "", "/dev/null", FLY_EUSAGE, "expected 1 to 4096 characters"},
        {"https://example.org", "   ", "", FLY_EUSAGE, "expected 1 to 4096 characters"},
        {"http://example.org", "", "", 0, ""},
        {"http://127.1.2.3:80/x", "abc", "", 0, ""},
        {"http://[::1]:80", "abc", "", 0, ""},
        {"http://localhost", "abc", "", 0, ""},
        {"unix:/run/x", "abc", "", 0, ""},
        {"https://example.org", "abc", "", 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct job_options options = {
            .token = rows[i].token, .token_file = rows[i].file, .authority_file = ""};
        struct fly_error error = {.text = ""};
        struct jobs jobs = {0};
        int code = jobs_open(rows[i].address, &options, &jobs, &error);

        if (code != rows[i].code || strstr(error.text, rows[i].words) == NULL)
            fail_msg("%s: %d: %s", rows[i].address, code, error.text);
        assert_null(strstr(error.text, "a-secret"));
        jobs_close(&jobs);
    }
}

/* ---- addresses ---- */

static void test_addresses(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *shown; /* the URL, or words of the error */
    } rows[] = {
        {"http://127.0.0.1:7470", 0, "http://127.0.0.1:7470"},
        {"https://flyball.example.org/team/a//", 0, "https://flyball.example.org/team/a"},
        {"https://[2001:db8::1]:8443", 0, "https://[2001:db8::1]:8443"},
        {"unix:/run/flyball.sock", 0, "http://localhost"},
        {"unix:///run/flyball.sock", 0, "http://localhost"},
        {"/run/flyball.sock", 0, "http://localhost"},
        {"127.0.0.1:7470", 0, "http://127.0.0.1:7470"},
        {"[::1]:7470", 0, "http://[::1]:7470"},
        {"host:65536", FLY_EUSAGE, "begins with http://"},
        {"user:a-secret@host:80", FLY_EUSAGE, "begins with http://"},
        {"unix:", FLY_EUSAGE, "name the socket"},
        {"http://", FLY_EUSAGE, "expected http://HOST:PORT"},
        {"http:///jobs", FLY_EUSAGE, "expected http://HOST:PORT"},
        {"http://host:0", FLY_EUSAGE, "expected http://HOST:PORT"},
        {"http://host:65536", FLY_EUSAGE, "expected"},
        {"http://host:x", FLY_EUSAGE, "expected"},
        {"http://ho st", FLY_EUSAGE, "blank"},
        {"http://[::1", FLY_EUSAGE, "expected"},
        {"http://a_b^", FLY_EUSAGE, "expected"},
        {"https://user:a-secret@host", FLY_EUSAGE, "FLYBALL_TOKEN_FILE"},
        {"https://host/?token=a-secret", FLY_EUSAGE, "FLYBALL_TOKEN_FILE"},
        {"ftp://host", FLY_EUSAGE, "begins with http://"},
    };
    char long_path[SERVICE_SOCKET_MAX + 7];
    struct service_address address;
    struct fly_error error;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int code = service_address_parse(rows[i].text, &address, &error);

        if (code != rows[i].code)
            fail_msg("%s: %d", rows[i].text, code);
        if (code == 0)
            assert_string_equal(address.url, rows[i].shown);
        else
            check_contains(error.text, rows[i].shown);
        assert_true(code == 0 || strstr(error.text, "a-secret") == NULL);
    }
    memset(long_path, 'x', sizeof long_path - 1);
    memcpy(long_path, "unix:", strlen("unix:"));
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(service_address_parse(long_path, &address, &error), FLY_ELIMIT);
}

/* Which of them are services, where a file or a database may be meant too. */
static void test_forms(void **state)
{
    static const struct {
        const char *text;
        enum address_form form;
        const char *rest;
    } rows[] = {
        {"unix:/run/x.sock", ADDRESS_SOCKET, "/run/x.sock"},
        {"unix:///run/x.sock", ADDRESS_SOCKET, "/run/x.sock"},
        {"http://host", ADDRESS_HTTP, "host"},
        {"https://host:1/x", ADDRESS_HTTPS, "host:1/x"},
        {"localhost:7470", ADDRESS_HOST, "localhost:7470"},
        {"[::1]:7470", ADDRESS_HOST, "[::1]:7470"},
        {"", ADDRESS_PATH, ""},
        {"store.sqlite", ADDRESS_PATH, "store.sqlite"},
        {"/a:80", ADDRESS_PATH, "/a:80"},
        {"./a:80", ADDRESS_PATH, "./a:80"},
        {"postgresql://host:5432/x", ADDRESS_PATH, "postgresql://host:5432/x"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *rest;

        if (address_split(rows[i].text, &rest) != rows[i].form || strcmp(rest, rows[i].rest) != 0)
            fail_msg("%s: '%s'", rows[i].text, rest);
    }
}

/* ---- pages of a log ---- */

static int count_event(void *state, const struct store_event *event, struct fly_error *out_error)
{
    unsigned *count = state;

    (void)out_error;
    ++*count;
    return event->number == 5 ? 1 : 0;
}

static void test_pages(void **state)
{
    static const struct {
        const char *body;
        unsigned count;
        int code;
        const char *words;
    } rows[] = {
        {"", 0, 0, ""},
#define LINE(number)                                                                                        \
    "{\"number\":" number ",\"time_us\":1,\"kind\":\"set\",\"trial\":0,\"key\":\"\",\"body\":{},\"new\":1}" \
    "\n"
        {LINE("3") LINE("4"), 2, 0, ""},
        {LINE("3") LINE("5") LINE("6"), 2, 1, ""},
        {LINE("2"), 0, FLY_EDATA, "comes after"},
        {LINE("4") LINE("4"), 1, FLY_EDATA, "comes after"},
        {LINE("3") "{", 1, FLY_EDATA, "no JSON"},
        {LINE("3") "{\"number\":4}", 1, FLY_EDATA, "'time_us' is missing"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct remote_reply reply = {"x", 200, rows[i].body, strlen(rows[i].body)};
        struct fly_error error = {.text = ""};
        uint64_t after = 2, told = 0;
        unsigned count = 0;
        int code = remote_page_read(&reply, &after, &told, count_event, &count, &error);

        if (code != rows[i].code || count != rows[i].count || strstr(error.text, rows[i].words) == NULL)
            fail_msg("row %zu: %d, %u events: %s", i, code, count, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_remove_and_import),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_refused_tokens),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
