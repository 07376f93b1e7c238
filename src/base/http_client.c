/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests through libcurl, which is loaded at first use. */
#include "base/http_client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/shared_object.h"

/* Numbers of libcurl's interface, which are stable. */
enum {
    CURL_GLOBAL_DEFAULT = 3,
    CURL_ERROR_BYTES = 256,
    CURL_HTTP_AND_HTTPS = 3,
    INFO_STATUS = 0x200002,
    INFO_OS_ERRNO = 0x200019,
    INFO_RETRY_AFTER_S = 0x600039, /* since 7.66 */
    OPTION_WRITE_DATA = 10001,
    OPTION_URL = 10002,
    OPTION_ERROR_BUFFER = 10010,
    OPTION_BODY = 10015,
    OPTION_USER_AGENT = 10018,
    OPTION_HEADERS = 10023,
    OPTION_METHOD = 10036,
    OPTION_AUTHORITY_FILE = 10065,
    OPTION_NO_PROXY = 10177,
    OPTION_UNIX_SOCKET = 10231,
    OPTION_PROTOCOLS_TEXT = 10318, /* since 7.85 */
    OPTION_WRITE_FUNCTION = 20011,
    OPTION_POST = 47,
    OPTION_BODY_BYTES = 60,
    OPTION_NO_SIGNAL = 99,
    OPTION_TIMEOUT_MS = 155,
    OPTION_CONNECT_TIMEOUT_MS = 156,
    OPTION_PROTOCOLS = 181,  /* before that */
    OPTION_QUICK_EXIT = 322, /* since 7.87: ending does not wait for a name server to answer */
};
enum {
    CURL_OK = 0,
    CURL_BAD_URL = 3,
    CURL_NO_SUCH_PROXY = 5,
    CURL_NO_SUCH_HOST = 6,
    CURL_NO_CONNECTION = 7,
    CURL_WRITE_REFUSED = 23,
    CURL_NO_MEMORY = 27,
    CURL_TIMED_OUT = 28,
    CURL_NO_HANDSHAKE = 35,
    CURL_ABANDONED = 42,
    CURL_UNKNOWN_OPTION = 48,
    CURL_NOT_TRUSTED = 60,
    CURL_BAD_AUTHORITY_FILE = 77,
};

/* The names in distributions: over OpenSSL, GnuTLS, NSS. */
static const char *const library_names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

/* X(slot, result, parameters, name). Variadic functions here are variadic in libcurl too. */
#define CURL_CALLS(X)                                                                                    \
    X(global_init, int, (long flags), "curl_global_init")                                                \
    X(easy_init, void *, (void), "curl_easy_init")                                                       \
    X(easy_setopt, int, (void *easy, int option, ...), "curl_easy_setopt")                               \
    X(easy_getinfo, int, (void *easy, int info, ...), "curl_easy_getinfo")                               \
    X(easy_perform, int, (void *easy), "curl_easy_perform")                                              \
    X(easy_reset, void, (void *easy), "curl_easy_reset")                                                 \
    X(easy_cleanup, void, (void *easy), "curl_easy_cleanup")                                             \
    X(easy_strerror, const char *, (int code), "curl_easy_strerror")                                     \
    X(multi_init, void *, (void), "curl_multi_init")                                                     \
    X(multi_cleanup, int, (void *multi), "curl_multi_cleanup")                                           \
    X(multi_add, int, (void *multi, void *easy), "curl_multi_add_handle")                                \
    X(multi_remove, int, (void *multi, void *easy), "curl_multi_remove_handle")                          \
    X(multi_perform, int, (void *multi, int *running), "curl_multi_perform")                             \
    X(multi_wait, int, (void *multi, void *extra, unsigned extra_count, int timeout_ms, int *out_count), \
      "curl_multi_wait")                                                                                 \
    X(multi_read, const struct multi_message *, (void *multi, int *out_left), "curl_multi_info_read")    \
    X(list_append, void *, (void *list, const char *text), "curl_slist_append")                          \
    X(list_free, void, (void *list), "curl_slist_free_all")

/* The layout is libcurl's. */
struct multi_message {
    int kind;
    void *easy;
    union {
        void *whatever;
        int result;
    } data;
};

#define CURL_SLOT(slot, result, parameters, name) result(*slot) parameters;
static struct curl_calls {
    CURL_CALLS(CURL_SLOT)
} call;

struct call_row {
    size_t offset;
    const char *name;
};
#define CURL_ROW(slot, result, parameters, name) {offsetof(struct curl_calls, slot), name},
static const struct call_row call_rows[] = {CURL_CALLS(CURL_ROW)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fly_error load_error; /* of the only attempt; code 0: it succeeded */

/* The library stays loaded until the process ends: it registers exit handlers, so it must not be unloaded. */
static void load(void)
{
    struct shared_object object;
    struct fly_error why = {.code = 0};
    int code = FLY_ENOTFOUND;

    for (size_t i = 0; i < sizeof library_names / sizeof library_names[0] && code < 0; i++)
        code = shared_object_open_library(library_names[i], &object, i == 0 ? &why : NULL);
    if (code < 0) {
        error_set(&load_error, FLY_EUNSUPPORTED,
                  "%.300s; install libcurl (Debian's package is libcurl4) to speak to servers", why.text);
        return;
    }
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const void *found = shared_object_find(&object, call_rows[i].name);

        if (found == NULL) {
            error_set(&load_error, FLY_EUNSUPPORTED,
                      "libcurl lacks the function '%s'; install a newer one to speak to servers",
                      call_rows[i].name);
            return;
        }
        memcpy((char *)&call + call_rows[i].offset, &found, sizeof found);
    }
    if (call.global_init(CURL_GLOBAL_DEFAULT) != CURL_OK)
        error_set(&load_error, FLY_EUNSUPPORTED, "libcurl does not start; see whether 'curl' works");
}

/* libcurl keeps the connections of a handle even when the handle is reset. */
struct http_line {
    void *easy;
    pid_t owner;
};

static int ready(struct fly_error *out_error)
{
    pthread_once(&once, load);
    return load_error.code < 0 ? error_set(out_error, load_error.code, "%s", load_error.text) : 0;
}

int http_line_new(struct http_line **out_line, struct fly_error *out_error)
{
    struct http_line *line;
    int code = ready(out_error);

    if (code < 0)
        return code;
    line = calloc(1, sizeof *line);
    if (line == NULL)
        return error_no_memory(out_error);
    line->owner = getpid();
    line->easy = call.easy_init();
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
        call.easy_cleanup(line->easy);
    free(line);
}

/* The state of a request while it runs. */
struct transfer {
    void *easy, *headers;
    struct http_answer answer;
    char error[CURL_ERROR_BYTES];
};

static size_t take_body(char *bytes, size_t size, size_t count, void *data)
{
    struct buffer *body = data;

    buffer_append(body, bytes, size * count);
    return body->error == 0 ? size * count : 0;
}

/* Converts to whole milliseconds, at least 1, since 0 would mean for ever. */
static long milliseconds(double time_s)
{
    return time_s < 1e-3 ? 1 : time_s > 1e6 ? 1000000000 : (long)(time_s * 1e3);
}

/* Keeps the first error code. */
#define SET(option, value)                                              \
    do {                                                                \
        if (code == CURL_OK)                                            \
            code = call.easy_setopt(transfer->easy, (option), (value)); \
    } while (0)

static int set_protocols(const struct transfer *transfer)
{
    int code = call.easy_setopt(transfer->easy, OPTION_PROTOCOLS_TEXT, "http,https");

    return code == CURL_UNKNOWN_OPTION
               ? call.easy_setopt(transfer->easy, OPTION_PROTOCOLS, (long)CURL_HTTP_AND_HTTPS)
               : code;
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
        (void)call.easy_setopt(transfer->easy, OPTION_QUICK_EXIT, 1L);
    if (request->unix_socket != NULL)
        SET(OPTION_UNIX_SOCKET, request->unix_socket);
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
        void *longer = call.list_append(transfer->headers, request->headers[i]);

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
    const char *cause = transfer->error[0] != '\0' ? transfer->error : call.easy_strerror(code);
    long cause_errno = 0;

    call.easy_getinfo(transfer->easy, INFO_OS_ERRNO, &cause_errno);
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

    while ((message = call.multi_read(multi, &left)) != NULL)
        code = message->data.result;
    return code;
}

/* Does what easy_perform does, and checks the flag twenty times a second. */
static int perform_until(void *easy, const atomic_bool *abandon)
{
    enum { LOOK_MS = 50 };
    const struct timespec pause = {.tv_nsec = 10000000};
    void *multi = call.multi_init();
    int running = 1, ready_count, failure = multi == NULL || call.multi_add(multi, easy) != 0;

    while (failure == 0 && running > 0 && !atomic_load(abandon)) {
        failure = call.multi_perform(multi, &running);
        if (failure != 0 || running == 0)
            break;
        failure = call.multi_wait(multi, NULL, 0, LOOK_MS, &ready_count);
        /* While a name is looked up there may be no descriptor to wait for. */
        if (ready_count == 0)
            nanosleep(&pause, NULL);
    }
    if (failure == 0)
        failure = running == 0 ? result_of(multi) : CURL_ABANDONED;
    else
        failure = CURL_NO_MEMORY;
    if (multi != NULL) {
        call.multi_remove(multi, easy);
        call.multi_cleanup(multi);
    }
    return failure;
}

/* A server that closes early must not raise a signal; over TLS, libcurl leaves that to its caller. */
static int perform(void *easy, const atomic_bool *abandon)
{
    const struct timespec at_once = {0};
    sigset_t pipe_signal, before, pending;
    int code;

    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    code = abandon != NULL ? perform_until(easy, abandon) : call.easy_perform(easy);
    if (!sigismember(&pending, SIGPIPE)) {
        while (sigtimedwait(&pipe_signal, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Returns whole seconds; libcurl understands dates as well. */
static double retry_after(void *easy)
{
    int64_t seconds = 0;

    return call.easy_getinfo(easy, INFO_RETRY_AFTER_S, &seconds) == CURL_OK && seconds > 0 ? (double)seconds
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
        code = call.easy_getinfo(transfer->easy, INFO_STATUS, &status);
    if (code != CURL_OK)
        return failed(request, transfer, code, out_error);
    transfer->answer.status = (int)status;
    transfer->answer.retry_after_s = retry_after(transfer->easy);
    return 0;
}

int http_ask(const struct http_request *request, struct http_answer *out_answer, struct fly_error *out_error)
{
    struct transfer transfer = {.error = ""};
    int code;

    if (strncmp(request->url, "http://", strlen("http://")) != 0 &&
        strncmp(request->url, "https://", strlen("https://")) != 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "'%.200s' cannot be asked; name an address that begins with http:// or https://",
                         request->url);
    code = ready(out_error);
    if (code < 0)
        return code;
    buffer_init(&transfer.answer.body, request->answer_maximum);
    transfer.easy = request->line != NULL ? request->line->easy : call.easy_init();
    code = exchange(request, &transfer, out_error);
    if (request->line != NULL)
        call.easy_reset(transfer.easy);
    else if (transfer.easy != NULL)
        call.easy_cleanup(transfer.easy);
    call.list_free(transfer.headers);
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
