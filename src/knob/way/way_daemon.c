/* SPDX-License-Identifier: Apache-2.0 */
/* Turns knobs through the public daemon (zeusd), which runs as root and takes requests over HTTP. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/http_client.h"
#include "knob/way/daemon_answer.h"
#include "knob/way/operation.h"
#include "knob/way/way.h"

enum { ANSWER_MAX = 1 << 18, TOKEN_MAX = 4096, HEADER_MAX = TOKEN_MAX + 64, URL_MAX = SITE_PLACE_MAX + 192 };
enum { HTTP_OK = 200, HTTP_UNAUTHORIZED = 401, HTTP_FORBIDDEN = 403, HTTP_NOT_FOUND = 404 };

static const double connect_timeout_s = 1, total_timeout_s = 2;

static bool daemon_offers(const struct site *site, const struct device *device)
{
    (void)device;
    return site->places[WAY_DAEMON][0] != '\0';
}

static int bad_token(const char *subject, const char *cause, struct fly_error *out_error)
{
    return error_set(out_error, FLY_ECONFIG, "the daemon's token in '%.200s' cannot be used: %s; correct it",
                     subject, cause);
}

/* Reads the token without the blanks around it; "" for none. */
static int read_token_file(const char *path, char token[TOKEN_MAX], struct fly_error *out_error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), cause = errno;
    ssize_t length = -1;

    if (fd >= 0) {
        length = read(fd, token, TOKEN_MAX - 1);
        cause = errno;
        close(fd);
    }
    token[length > 0 ? length : 0] = '\0';
    return length < 0 ? bad_token(path, strerror(cause), out_error) : 0;
}

static int read_token(char token[TOKEN_MAX], struct fly_error *out_error)
{
    const char *path = getenv(SITE_TOKEN_FILE_VARIABLE), *value = getenv("ZEUSD_TOKEN");
    const char *subject = "ZEUSD_TOKEN";
    size_t begin, length;
    int code = 0;

    token[0] = '\0';
    if (path != NULL && path[0] != '\0') {
        subject = path;
        code = read_token_file(path, token, out_error);
    } else if (value != NULL) {
        if (strlen(value) >= TOKEN_MAX)
            return bad_token(subject, "it is too long", out_error);
        memcpy(token, value, strlen(value) + 1);
    }
    if (code < 0)
        return code;
    begin = strspn(token, " \t\r\n");
    length = strcspn(token + begin, " \t\r\n");
    memmove(token, token + begin, strlen(token + begin) + 1);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)token[i] <= ' ' || (unsigned char)token[i] >= 0x7F)
            return bad_token(subject, "it holds what no token does", out_error);
    }
    if (token[length + strspn(token + length, " \t\r\n")] != '\0')
        return bad_token(subject, "it holds more than one word", out_error);
    token[length] = '\0';
    return 0;
}

/* Sends a request; the token is only in its header. */
static int ask(const struct site *site, const char *method, const char *query, const char *header,
               struct http_answer *out_answer, struct fly_error *out_error)
{
    const char *place = site->places[WAY_DAEMON];
    bool is_socket = place[0] == '/';
    const char *const headers[] = {header[0] != '\0' ? header : NULL, NULL};
    char url[URL_MAX];
    const struct http_request request = {
        .method = method,
        .url = url,
        .unix_socket = is_socket ? place : NULL,
        .headers = headers,
        .answer_maximum = ANSWER_MAX,
        .connect_timeout_s = connect_timeout_s,
        .total_timeout_s = total_timeout_s,
        .past_proxies = true,
    };
    size_t length = strlen(place);
    struct fly_error why;
    int code;

    while (!is_socket && length > 0 && place[length - 1] == '/')
        length--;
    snprintf(url, sizeof url, "%.*s%s", is_socket ? 16 : (int)length, is_socket ? "http://localhost" : place,
             query);
    code = http_ask(&request, out_answer, &why);
    if (code == 0)
        return 0;
    /* A bad address is an error of the configuration, not of the command line. */
    code = code == FLY_EUSAGE ? FLY_ECONFIG : code == FLY_ELIMIT ? FLY_EREAD : code;
    return error_set(out_error, code, "the daemon: %.480s", why.text);
}

/* Translates an answer other than "done". */
static int refused(const struct site *site, const struct http_answer *answer, const char *token,
                   struct fly_error *out_error)
{
    char reason[DAEMON_REASON_MAX];
    const char *place = site->places[WAY_DAEMON];

    daemon_reason(answer->body.data, answer->body.length, reason);
    if (token[0] != '\0' && strstr(reason, token) != NULL)
        reason[0] = '\0'; /* keeps the token out of logs */
    if (answer->status == HTTP_UNAUTHORIZED || answer->status == HTTP_FORBIDDEN)
        return error_set(
            out_error, FLY_EPERM,
            "the daemon at '%.150s' does not let this user (HTTP %d): %.150s; put the path of a file "
            "with a token for 'gpu-control' into FLYBALL_KNOB_TOKEN_FILE",
            place, answer->status, reason[0] != '\0' ? reason : "it does not say why");
    if (answer->status == HTTP_NOT_FOUND)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "the daemon at '%.150s' does not offer it (HTTP 404): %.150s; start it with 'gpu-control'", place,
            reason[0] != '\0' ? reason : "it does not say why");
    return error_set(out_error, FLY_EREAD, "the daemon at '%.150s' failed (HTTP %d): %.150s; see its log",
                     place, answer->status, reason[0] != '\0' ? reason : "it does not say why");
}

/* Gives the number by which the daemon knows the GPU. */
static int discover(const struct site *site, const struct device *device, const char *token,
                    const char *header, unsigned *out_id, struct fly_error *out_error)
{
    struct http_answer answer;
    struct fly_error why;
    int code = ask(site, "GET", "/discover", header, &answer, out_error);

    if (code < 0)
        return code;
    if (answer.status != HTTP_OK)
        code = refused(site, &answer, token, out_error);
    else if (daemon_find_gpu(answer.body.data, answer.body.length, &device->info, token[0] != '\0', out_id,
                             &why) < 0)
        code = error_set(out_error, why.code == FLY_EDATA ? FLY_EREAD : why.code,
                         "the daemon at '%.150s' does not turn GPU %u: %.250s", site->places[WAY_DAEMON],
                         device->info.index, why.text);
    http_answer_deinit(&answer);
    return code;
}

static void write_query(const struct operation_call *call, unsigned id, char query[URL_MAX])
{
    int length =
        snprintf(query, URL_MAX, "/gpu/%s?gpu_ids=%u&block=true", operation_facts[call->operation].name, id);

    switch (operation_facts[call->operation].parameter) {
    case PARAMETER_LIMIT:
        snprintf(query + length, URL_MAX - (size_t)length, "&power_limit_mw=%" PRId64, call->limit_mw);
        break;
    case PARAMETER_ENABLED:
        snprintf(query + length, URL_MAX - (size_t)length, "&enabled=%s",
                 call->enabled != 0 ? "true" : "false");
        break;
    case PARAMETER_CLOCKS:
        snprintf(query + length, URL_MAX - (size_t)length,
                 "&min_clock_mhz=%" PRId64 "&max_clock_mhz=%" PRId64, call->min_clock_mhz,
                 call->max_clock_mhz);
        break;
    case PARAMETER_NONE:
        break;
    }
}

static int post(const struct site *site, const struct operation_call *call, unsigned id, const char *token,
                const char *header, bool *out_uncertain, struct fly_error *out_error)
{
    char query[URL_MAX];
    struct http_answer answer;
    int code;

    write_query(call, id, query);
    code = ask(site, "POST", query, header, &answer, out_error);
    if (code < 0) {
        *out_uncertain = code == FLY_EREAD;
        return code;
    }
    if (answer.status != HTTP_OK)
        code = refused(site, &answer, token, out_error);
    http_answer_deinit(&answer);
    return code;
}

static int daemon_set(struct site *site, const struct device *device, enum quantity quantity,
                      const struct setting *value, bool *out_uncertain, struct fly_error *out_error)
{
    char token[TOKEN_MAX], header[HEADER_MAX] = "";
    struct operation_call call;
    unsigned id = 0;
    int code = operation_for(device, quantity, value, &call, out_error);

    if (code < 0)
        return code;
    code = read_token(token, out_error);
    if (code == 0 && token[0] != '\0')
        snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    if (code == 0)
        code = discover(site, device, token, header, &id, out_error);
    if (code == 0)
        code = post(site, &call, id, token, header, out_uncertain, out_error);
    explicit_bzero(token, sizeof token);
    explicit_bzero(header, sizeof header);
    return code;
}

const struct way_calls way_daemon = {
    .offers = daemon_offers,
    .set = daemon_set,
};
