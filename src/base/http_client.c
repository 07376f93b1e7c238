/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests through libcurl, which is loaded at first use. */
#include "base/http_client.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/http_curl.h"
#include "base/wait.h"

/* libcurl keeps the connections of a handle even when the handle is reset. */
struct http_line {
    void *easy;
    pid_t owner;
};

int http_line_new(struct http_line **out_line, struct fly_error *out_error)
{
    struct http_line *line;
    int code = http_curl_ready(out_error);

    if (code < 0)
        return code;
    line = calloc(1, sizeof *line);
    if (line == NULL)
        return error_no_memory(out_error);
    line->owner = getpid();
    line->easy = http_curl.easy_init();
    if (line->easy == NULL) {
        free(line);
        return error_no_memory(out_error);
    }
    *out_line = line;
    return 0;
}

void http_line_free(struct http_line *line)
{
    if (line == NULL)
        return;
    /*
     * In a child the connection belongs to the parent, and closing it would say goodbye in the
     * parent's name.
     */
    if (line->owner == getpid())
        http_curl.easy_cleanup(line->easy);
    free(line);
}

/* Files need bytes to travel with; servers ignore an empty line in front of a request. */
static const char empty_line[] = "\r\n";

/* The state of a request while it runs. */
struct transfer {
    const struct http_request *request;
    void *easy, *headers;
    bool greets; /* libcurl tells when it has connected */
    int socket;
    struct fly_error unreached; /* why whoever listens is not asked; else code 0 */
    struct http_answer answer;
    char error[CURL_ERROR_BYTES];
};

static size_t take_body(char *bytes, size_t size, size_t count, void *data)
{
    struct buffer *body = data;

    buffer_append(body, bytes, size * count);
    return body->error == 0 ? size * count : 0;
}

/* Before libcurl says anything over the connection that it has made: looks who listens, and passes files. */
static int greet(void *data, const char *its_address, const char *own_address, int its_port, int own_port)
{
    struct transfer *transfer = data;

    (void)its_address;
    (void)own_address;
    (void)its_port;
    (void)own_port;
    return socket_greet(transfer->socket, transfer->request->unix_socket, transfer->request->trust,
                        empty_line, &transfer->unreached) < 0;
}

/* A socket that libcurl connects; one that is connected and greeted already, if it cannot wait for that. */
static int open_socket(void *data, int purpose, const void *address)
{
    struct transfer *transfer = data;
    const struct http_request *request = transfer->request;

    (void)purpose;
    (void)address;
    if (transfer->greets)
        transfer->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    else if (socket_reach(request->unix_socket, request->connect_timeout_s, request->trust, empty_line,
                          &transfer->socket, &transfer->unreached) < 0)
        return -1;
    return transfer->socket;
}

static int tell_connected(void *data, int fd, int purpose)
{
    const struct transfer *transfer = data;

    (void)fd;
    (void)purpose;
    return transfer->greets ? 0 : IS_CONNECTED;
}

/* Converts to whole milliseconds, at least 1, since 0 would mean for ever. */
static long milliseconds(double time_s)
{
    return time_s < 1e-3 ? 1 : time_s > 1e6 ? 1000000000 : (long)(time_s * 1e3);
}

/* Keeps the first error code. */
#define SET(option, value)                                                   \
    do {                                                                     \
        if (code == CURL_OK)                                                 \
            code = http_curl.easy_setopt(transfer->easy, (option), (value)); \
    } while (0)

static int set_protocols(const struct transfer *transfer)
{
    int code = http_curl.easy_setopt(transfer->easy, OPTION_PROTOCOLS_TEXT, "http,https");

    return code == CURL_UNKNOWN_OPTION
               ? http_curl.easy_setopt(transfer->easy, OPTION_PROTOCOLS, (long)CURL_HTTP_AND_HTTPS)
               : code;
}

/*
 * From 7.88 on, some versions of libcurl connect a socket again although it is connected; those before 7.80
 * do not tell when they have connected one.
 */
static int set_trust(struct transfer *transfer)
{
    int code = http_curl.easy_setopt(transfer->easy, OPTION_GREET_FUNCTION, greet);

    transfer->greets = code != CURL_UNKNOWN_OPTION;
    if (!transfer->greets)
        code = CURL_OK;
    else
        SET(OPTION_GREET_DATA, transfer);
    SET(OPTION_FRESH, 1L);
    SET(OPTION_OPEN_FUNCTION, open_socket);
    SET(OPTION_OPEN_DATA, transfer);
    SET(OPTION_CONNECTED_FUNCTION, tell_connected);
    SET(OPTION_CONNECTED_DATA, transfer);
    return code;
}

static int set_options(const struct http_request *request, struct transfer *transfer)
{
    int code = set_protocols(transfer);

    SET(OPTION_NO_SIGNAL, 1L);
    SET(OPTION_ERROR_BUFFER, transfer->error);
    SET(OPTION_URL, request->url);
    SET(OPTION_USER_AGENT, "flyball");
    SET(OPTION_WRITE_FUNCTION, take_body);
    SET(OPTION_WRITE_DATA, &transfer->answer.body);
    SET(OPTION_CONNECT_TIMEOUT_MS, milliseconds(request->connect_timeout_s));
    SET(OPTION_TIMEOUT_MS, milliseconds(request->total_timeout_s));
    if (request->abandon != NULL)
        (void)http_curl.easy_setopt(transfer->easy, OPTION_QUICK_EXIT, 1L);
    if (request->unix_socket != NULL)
        SET(OPTION_UNIX_SOCKET, request->unix_socket);
    if (code == CURL_OK && request->unix_socket != NULL && request->trust != NULL)
        code = set_trust(transfer);
    if (request->authority_file != NULL)
        SET(OPTION_AUTHORITY_FILE, request->authority_file);
    if (request->past_proxies)
        SET(OPTION_NO_PROXY, "*");
    if (request->body != NULL || (request->method != NULL && strcmp(request->method, "POST") == 0)) {
        SET(OPTION_POST, 1L);
        SET(OPTION_BODY_BYTES, (long)(request->body != NULL ? strlen(request->body) : 0));
        SET(OPTION_BODY, request->body != NULL ? request->body : "");
    }
    if (request->method != NULL)
        SET(OPTION_METHOD, request->method);
    if (transfer->headers != NULL)
        SET(OPTION_HEADERS, transfer->headers);
    return code;
}

static bool take_headers(const struct http_request *request, struct transfer *transfer)
{
    for (size_t i = 0; request->headers != NULL && request->headers[i] != NULL; i++) {
        void *longer = http_curl.list_append(transfer->headers, request->headers[i]);

        if (longer == NULL)
            return false;
        transfer->headers = longer;
    }
    return true;
}

static int failed(const struct http_request *request, const struct transfer *transfer, int code,
                  struct fly_error *out_error)
{
    const char *what = request->unix_socket != NULL ? request->unix_socket : request->url;
    const char *cause = transfer->error[0] != '\0' ? transfer->error : http_curl.easy_strerror(code);
    long cause_errno = 0;

    if (transfer->unreached.code < 0)
        return error_set(out_error, transfer->unreached.code, "%s", transfer->unreached.text);
    http_curl.easy_getinfo(transfer->easy, INFO_OS_ERRNO, &cause_errno);
    switch (code) {
    case CURL_NO_MEMORY:
        return error_no_memory(out_error);
    case CURL_UNKNOWN_OPTION:
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "'%.200s' cannot be asked: %.200s; install a newer libcurl", what, cause);
    case CURL_BAD_URL:
        return error_set(out_error, FLY_EUSAGE, "'%.200s' is no address: %.200s; correct it", what, cause);
    case CURL_NO_SUCH_PROXY:
    case CURL_NO_SUCH_HOST:
    case CURL_NO_CONNECTION:
        if (cause_errno == EACCES || cause_errno == EPERM)
            return error_set(out_error, FLY_EPERM,
                             "'%.200s' may not be connected to: %.200s; ask for access to it", what, cause);
        return error_set(out_error, FLY_ENOTFOUND,
                         "nobody answers at '%.200s': %.200s; see whether the server runs", what, cause);
    case CURL_NO_HANDSHAKE:
        return error_set(out_error, FLY_ENOTFOUND,
                         "nobody speaks TLS at '%.200s': %.200s; see whether http:// is meant", what, cause);
    case CURL_NOT_TRUSTED:
        return error_set(out_error, FLY_EPERM,
                         "the certificate of '%.200s' is not trusted: %.200s; name the file of its authority",
                         what, cause);
    case CURL_BAD_AUTHORITY_FILE:
        return error_set(out_error, FLY_EUSAGE,
                         "the authority's certificates in '%.200s' cannot be used: %.160s",
                         request->authority_file != NULL ? request->authority_file : "", cause);
    case CURL_TIMED_OUT:
        return error_set(out_error, FLY_EREAD,
                         "'%.200s' did not answer within %g s; see whether the server is well", what,
                         request->total_timeout_s);
    case CURL_ABANDONED:
        return error_set(out_error, FLY_EREAD, "'%.200s' was not waited for", what);
    case CURL_WRITE_REFUSED:
        if (transfer->answer.body.error == FLY_ELIMIT)
            return error_set(out_error, FLY_ELIMIT,
                             "the answer of '%.200s' is longer than %zu bytes; see what listens there", what,
                             request->answer_maximum);
        return error_no_memory(out_error);
    default:
        return error_set(out_error, FLY_EREAD,
                         "'%.200s' gave no whole answer: %.200s; see whether the server is well", what,
                         cause);
    }
}

/* The result of the only transfer. */
static int result_of(void *multi)
{
    const struct multi_message *message;
    int left, code = CURL_NO_MEMORY;

    while ((message = http_curl.multi_read(multi, &left)) != NULL)
        code = message->data.result;
    return code;
}

/* Does what easy_perform does, and checks the flag twenty times a second. */
static int perform_until(void *easy, const atomic_bool *abandon)
{
    enum { LOOK_MS = 50 };
    void *multi = http_curl.multi_init();
    int running = 1, ready_count, failure = multi == NULL || http_curl.multi_add(multi, easy) != 0;

    while (failure == 0 && running > 0 && !atomic_load(abandon)) {
        failure = http_curl.multi_perform(multi, &running);
        if (failure != 0 || running == 0)
            break;
        failure = http_curl.multi_wait(multi, NULL, 0, LOOK_MS, &ready_count);
        /* While a name is looked up there may be no descriptor to wait for. */
        if (ready_count == 0)
            mono_sleep_s(0.01);
    }
    if (failure == 0)
        failure = running == 0 ? result_of(multi) : CURL_ABANDONED;
    else
        failure = CURL_NO_MEMORY;
    if (multi != NULL) {
        http_curl.multi_remove(multi, easy);
        http_curl.multi_cleanup(multi);
    }
    return failure;
}

/* A server that closes early must not raise a signal; over TLS, libcurl leaves that to its caller. */
static int perform(void *easy, const atomic_bool *abandon)
{
    sigset_t pipe_signal, before, pending;
    int code;

    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    code = abandon != NULL ? perform_until(easy, abandon) : http_curl.easy_perform(easy);
    if (!sigismember(&pending, SIGPIPE)) {
        while (mono_signal(&pipe_signal, NULL, mono_now()) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Returns whole seconds; libcurl understands dates as well. */
static double retry_after(void *easy)
{
    int64_t seconds = 0;

    return http_curl.easy_getinfo(easy, INFO_RETRY_AFTER_S, &seconds) == CURL_OK && seconds > 0
               ? (double)seconds
               : 0.0;
}

static int exchange(const struct http_request *request, struct transfer *transfer,
                    struct fly_error *out_error)
{
    long status = 0;
    int code;

    if (transfer->easy == NULL || !take_headers(request, transfer))
        return error_no_memory(out_error);
    code = set_options(request, transfer);
    if (code == CURL_OK)
        code = perform(transfer->easy, request->abandon);
    if (code == CURL_OK)
        code = http_curl.easy_getinfo(transfer->easy, INFO_STATUS, &status);
    if (code != CURL_OK)
        return failed(request, transfer, code, out_error);
    transfer->answer.status = (int)status;
    transfer->answer.retry_after_s = retry_after(transfer->easy);
    return 0;
}

int http_ask(const struct http_request *request, struct http_answer *out_answer, struct fly_error *out_error)
{
    struct transfer transfer = {.request = request, .socket = -1, .error = ""};
    int code;

    if (strncmp(request->url, "http://", strlen("http://")) != 0 &&
        strncmp(request->url, "https://", strlen("https://")) != 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "'%.200s' cannot be asked; name an address that begins with http:// or https://",
                         request->url);
    code = http_curl_ready(out_error);
    if (code < 0)
        return code;
    buffer_init(&transfer.answer.body, request->answer_maximum);
    transfer.easy = request->line != NULL ? request->line->easy : http_curl.easy_init();
    code = exchange(request, &transfer, out_error);
    if (request->line != NULL)
        http_curl.easy_reset(transfer.easy);
    else if (transfer.easy != NULL)
        http_curl.easy_cleanup(transfer.easy);
    http_curl.list_free(transfer.headers);
    if (code == 0)
        *out_answer = transfer.answer;
    else
        buffer_deinit(&transfer.answer.body);
    return code;
}

void http_answer_deinit(struct http_answer *answer)
{
    buffer_deinit(&answer->body);
}
