/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_HTTP_CURL_H
#define FLYBALL_BASE_HTTP_CURL_H

#include <flyball/error.h>

/* What http_client.c uses of libcurl, which is loaded at first use. */

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
    OPTION_CONNECTED_DATA = 10149,
    OPTION_OPEN_DATA = 10164,
    OPTION_NO_PROXY = 10177,
    OPTION_UNIX_SOCKET = 10231,
    OPTION_GREET_DATA = 10313,
    OPTION_PROTOCOLS_TEXT = 10318, /* since 7.85 */
    OPTION_WRITE_FUNCTION = 20011,
    OPTION_CONNECTED_FUNCTION = 20148,
    OPTION_OPEN_FUNCTION = 20163,
    OPTION_GREET_FUNCTION = 20312, /* since 7.80: called before a request is sent */
    OPTION_POST = 47,
    OPTION_FRESH = 74,
    OPTION_BODY_BYTES = 60,
    OPTION_NO_SIGNAL = 99,
    OPTION_TIMEOUT_MS = 155,
    OPTION_CONNECT_TIMEOUT_MS = 156,
    OPTION_PROTOCOLS = 181,  /* before that */
    OPTION_QUICK_EXIT = 322, /* since 7.87: ending does not wait for a name server to answer */
    IS_CONNECTED = 2,
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
struct curl_calls {
    CURL_CALLS(CURL_SLOT)
};

/* Loads it once; FLY_EUNSUPPORTED says what to install. Afterwards `http_curl` has its functions.
 * Thread-safe. */
int http_curl_ready(struct fly_error *out_error);
extern struct curl_calls http_curl;

#endif
