/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to a service until they are answered. */
#include "job/remote/remote_ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/fork_guard.h"
#include "base/wait.h"
#include "job/remote/remote_credentials.h"

enum { TRIES_MAX = 20, UNAUTHORISED = 401, FORBIDDEN = 403 };

static const double connect_timeout_s = 5.0;
static const double answer_grace_s = 2.0; /* beyond wait_s, for a service that waits for a lock as long */
static const double pause_least_s = 0.05, pause_most_s = 1.0;

/* The parts of the request that stay the same. */
struct prepared {
    const struct api_route *route;
    struct buffer url;
    char *body; /* owned; NULL: none, or the call's lines */
};

static void prepared_deinit(struct prepared *prepared)
{
    buffer_deinit(&prepared->url);
    free(prepared->body);
}

static int prepare(const struct job_remote *remote, const struct remote_call *call, struct prepared *prepared,
                   struct fly_error *out_error)
{
    prepared->route = &api_routes[call->place.operation];
    prepared->body = NULL;
    buffer_init(&prepared->url, SERVICE_ADDRESS_MAX + API_PATH_MAX + 3 * STORE_KEY_MAX);
    buffer_puts(&prepared->url, remote->address.url);
    api_put_path(&call->place, &prepared->url);
    if (call->query != NULL)
        api_put_query(call->query, &prepared->url);
    if (prepared->url.error < 0)
        return error_no_memory(out_error);
    return prepared->route->asks_by == API_JSON
               ? shape_write_text(prepared->route->asks, call->asks, &prepared->body, out_error)
               : 0;
}

/* ---- one request ---- */

/* The request was not sent, or its answer did not come back. */
static int not_answered(const struct job_remote *remote, int code, const struct fly_error *why,
                        enum remote_fate *out_fate, struct fly_error *out_error)
{
    *out_fate = code == FLY_EREAD ? REMOTE_LOST : REMOTE_ANSWERED;
    if (code == FLY_EREAD || code == FLY_ENOTFOUND)
        return error_set(out_error, FLY_EUNREACHABLE, "service '%.160s': %.300s", remote->shown, why->text);
    if (code == FLY_ELIMIT)
        return error_set(out_error, FLY_EDATA, "service '%.160s': %.300s", remote->shown, why->text);
    return error_set(out_error, code, "%s", why->text);
}

static int take_answer(const struct job_remote *remote, const struct remote_call *call,
                       const struct prepared *prepared, const struct http_answer *answer,
                       enum remote_fate *out_fate, struct fly_error *out_error)
{
    const struct remote_reply reply = {.from = remote->shown,
                                       .status = answer->status,
                                       .body = answer->body.data,
                                       .length = answer->body.length};
    int code = remote_reply_read(&reply, prepared->route, call->arena, call->out_struct, out_fate, out_error);

    if (code == 0 && call->out_lines != NULL) {
        buffer_append(call->out_lines, reply.body, reply.length);
        if (call->out_lines->error < 0)
            code = error_no_memory(out_error);
    }
    return code;
}

struct outcome {
    enum remote_fate fate;
    int status; /* 0: none */
    double retry_after_s;
};

static int ask_once(struct job_remote *remote, const struct remote_call *call,
                    const struct prepared *prepared, double timeout_s, struct outcome *out_outcome,
                    struct fly_error *out_error)
{
    static const char json_type[] = "Content-Type: " API_JSON_TYPE;
    static const char lines_type[] = "Content-Type: " API_LINES_TYPE;
    const char *headers[] = {"Expect:", prepared->body != NULL ? json_type : lines_type,
                             remote->authorization, NULL};
    const struct http_request request = {
        .method = prepared->route->method,
        .url = prepared->url.data,
        .unix_socket = remote->address.socket[0] != '\0' ? remote->address.socket : NULL,
        .headers = headers,
        .body = prepared->body != NULL ? prepared->body : call->lines,
        .answer_maximum = API_ANSWER_MAX,
        .connect_timeout_s = fmin(connect_timeout_s, timeout_s),
        .total_timeout_s = timeout_s,
        .past_proxies = remote->address.local,
        .authority_file = remote->authority_file,
        .line = call->once ? NULL : remote->line,
    };
    struct fly_error why = {.text = ""};
    struct http_answer answer;
    int code = http_ask(&request, &answer, &why);

    *out_outcome = (struct outcome){.fate = REMOTE_ANSWERED};
    if (code < 0)
        return not_answered(remote, code, &why, &out_outcome->fate, out_error);
    code = take_answer(remote, call, prepared, &answer, &out_outcome->fate, out_error);
    out_outcome->status = answer.status;
    out_outcome->retry_after_s = answer.retry_after_s;
    http_answer_deinit(&answer);
    return code;
}

/* ---- until it is answered ---- */

static int unsure(const struct job_remote *remote, struct fly_error *out_error)
{
    char why[FLY_ERROR_TEXT_MAX] = "";

    if (out_error != NULL)
        memcpy(why, out_error->text, sizeof why);
    return error_set(out_error, FLY_EUNSURE, "it may have been done at '%.160s', but %.300s", remote->shown,
                     why);
}

static int ask_until(struct job_remote *remote, const struct remote_call *call,
                     const struct prepared *prepared, bool *out_repeated, struct fly_error *out_error)
{
    struct mono_time start = mono_now();
    bool changes = prepared->route->right != API_TO_READ, lost = false, renewed = false;
    double pause_s = pause_least_s;
    struct outcome outcome;
    int code;

    for (int tries = 1;; tries++) {
        double left_s = remote->wait_s - mono_elapsed_s(start, mono_now()), wait_s;

        code = ask_once(remote, call, prepared, fmax(left_s, 0.0) + answer_grace_s, &outcome, out_error);
        if (outcome.status == UNAUTHORISED && !renewed && remote_renew_token(remote)) {
            renewed = true;
            continue;
        }
        /* An error that nothing answers is final, unless something answered a moment ago. */
        if (outcome.fate == REMOTE_ANSWERED && !(lost && outcome.status == 0 && code == FLY_EUNREACHABLE))
            break;
        lost |= outcome.fate == REMOTE_LOST;
        wait_s = fmax(outcome.retry_after_s, pause_s);
        left_s = remote->wait_s - mono_elapsed_s(start, mono_now());
        if (tries == TRIES_MAX || wait_s > left_s)
            return lost && changes ? unsure(remote, out_error) : code;
        mono_sleep_s(wait_s);
        pause_s = fmin(2.0 * pause_s, pause_most_s);
    }
    *out_repeated = lost;
    return code;
}

int remote_ask(struct job_remote *remote, const struct remote_call *call, bool *out_repeated,
               struct fly_error *out_error)
{
    struct prepared prepared;
    struct fly_error error = {.text = ""};
    bool repeated = false;
    int code;

    if (remote->generation != fork_generation())
        return error_set(out_error, FLY_ESTATE,
                         "service '%.200s' was opened before this process was forked; open it anew here",
                         remote->shown);
    code = prepare(remote, call, &prepared, out_error);
    if (code == 0 && remote->line == NULL)
        code = http_line_new(&remote->line, out_error);
    if (code == 0) {
        code = ask_until(remote, call, &prepared, &repeated, &error);
        if (code < 0)
            error_set(out_error, code, "%s", error.text);
    }
    if (out_repeated != NULL)
        *out_repeated = repeated;
    prepared_deinit(&prepared);
    return code;
}
