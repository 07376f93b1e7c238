/* SPDX-License-Identifier: Apache-2.0 */
/* The back end over a service. */
#include "job/remote/job_remote.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/thread/fork_guard.h"
#include "base/wait.h"
#include "job/core/call_check.h"
#include "job/core/definition.h"

/* ---- how the two prove themselves to each other; no text ever contains a token ---- */

static const char prefix[] = "Authorization: Bearer ";

/* The option, or the variable when it is NULL; NULL for an empty one. */
static const char *given(const char *option, const char *variable)
{
    const char *text = option != NULL ? option : getenv(variable);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Puts a token into its header; blanks around it are ignored. */
static int take_token(struct job_remote *remote, const char *text, const char *from,
                      struct fly_error *out_error)
{
    static const char blanks[] = " \t\r\n";
    size_t length;
    char *header;

    text += strspn(text, blanks);
    length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]) != NULL)
        length--;
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= 0x20 || text[i] == 0x7f)
            return error_set(out_error, FLY_EUSAGE,
                             "the token in %.200s has a blank or another strange character; write it alone",
                             from);
    }
    if (length == 0 || length > REMOTE_TOKEN_MAX)
        return error_set(out_error, FLY_EUSAGE, "the token in %.200s: expected 1 to %d characters", from,
                         REMOTE_TOKEN_MAX);
    header = malloc(sizeof prefix + length);
    if (header == NULL)
        return error_no_memory(out_error);
    snprintf(header, sizeof prefix + length, "%s%.*s", prefix, (int)length, text);
    free(remote->authorization);
    remote->authorization = header;
    return 0;
}

static int read_token(struct job_remote *remote, struct fly_error *out_error)
{
    char text[REMOTE_TOKEN_MAX + 64] = "", from[300];
    FILE *file = fopen(remote->token_file, "re");
    size_t length;

    if (file == NULL)
        return error_set(out_error, errno == EACCES ? FLY_EPERM : FLY_ENOTFOUND,
                         "token file '%.200s' cannot be read: %s; see FLYBALL_TOKEN_FILE", remote->token_file,
                         strerror(errno));
    length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    if (memchr(text, '\0', length) != NULL)
        length = 0;
    text[length] = '\0';
    snprintf(from, sizeof from, "file '%.200s'", remote->token_file);
    return take_token(remote, text, from, out_error);
}

/* Reads the token's file again; returns whether the token has changed. */
static bool remote_renew_token(struct job_remote *remote)
{
    char *before = remote->authorization;
    bool other;

    if (remote->token_file == NULL)
        return false;
    remote->authorization = NULL;
    if (read_token(remote, NULL) < 0 || remote->authorization == NULL) {
        remote->authorization = before;
        return false;
    }
    other = before == NULL || strcmp(before, remote->authorization) != 0;
    free(before);
    return other;
}

/* Takes the token and the authority's certificates from the options or the environment. */
static int remote_credentials(struct job_remote *remote, const struct job_options *options,
                              struct fly_error *out_error)
{
    const char *file = given(options->token_file, "FLYBALL_TOKEN_FILE");
    const char *token = given(options->token, "FLYBALL_TOKEN");
    const char *authority = given(options->authority_file, "FLYBALL_CA_FILE");
    int code = 0;

    if ((file != NULL || token != NULL) && !remote->address.secret)
        return error_set(out_error, FLY_EUSAGE,
                         "service '%.200s': a token would travel in the clear; use https://, or unset "
                         "FLYBALL_TOKEN_FILE and FLYBALL_TOKEN",
                         remote->shown);
    if (authority != NULL) {
        remote->authority_file = strdup(authority);
        if (remote->authority_file == NULL)
            return error_no_memory(out_error);
    }
    if (file != NULL) {
        remote->token_file = strdup(file);
        code = remote->token_file != NULL ? read_token(remote, out_error) : error_no_memory(out_error);
    } else if (token != NULL) {
        code = take_token(remote, token, "FLYBALL_TOKEN", out_error);
    }
    return code;
}

/* ---- asking until there is an answer ---- */

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

/*
 * Sends a request until it is answered, time is up, or nothing answers at the address. `out_repeated` may be
 * NULL.
 */
static int remote_ask(struct job_remote *remote, const struct remote_call *call, bool *out_repeated,
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

enum { SCRATCH_MAX = 1 << 20 };

static void remote_close(void *self)
{
    struct job_remote *remote = self;

    http_line_free(remote->line);
    free(remote->authority_file);
    free(remote->token_file);
    free(remote->authorization);
    free(remote);
}

static int remote_open(const char *address, const struct job_options *options, void **out_self,
                       struct fly_error *out_error)
{
    struct job_remote *remote = calloc(1, sizeof *remote);
    int code;

    if (remote == NULL)
        return error_no_memory(out_error);
    remote->generation = fork_generation();
    remote->wait_s = options->wait_s > 0.0 ? options->wait_s : STORE_WAIT_DEFAULT_S;
    code = service_address_parse(address, &remote->address, out_error);
    if (code == 0) {
        snprintf(remote->shown, sizeof remote->shown, "%s", address);
        code = remote_credentials(remote, options, out_error);
    }
    if (code < 0) {
        remote_close(remote);
        return code;
    }
    *out_self = remote;
    return 0;
}

/* ---- calls in general ---- */

/* The place of a call; FLY_ENOTFOUND for an impossible job. */
static int place(enum api_operation operation, const char *job, uint64_t trial, struct api_place *out_place,
                 struct fly_error *out_error)
{
    *out_place = (struct api_place){.operation = operation, .trial = trial};
    if (job == NULL || !job_name_fits(job))
        return error_set(out_error, FLY_ENOTFOUND, "no job '%.100s'; register it first",
                         job != NULL ? job : "");
    if (trial > INT64_MAX)
        return error_set(out_error, FLY_ENOTFOUND, "job '%s' has no trial %" PRIu64, job, trial);
    snprintf(out_place->job, sizeof out_place->job, "%s", job);
    return 0;
}

/* Makes a call whose answer has no texts of its own. */
static int ask(void *self, enum api_operation operation, const char *job, uint64_t trial, const void *asks,
               void *out_struct, struct fly_error *out_error)
{
    struct remote_call call = {.asks = asks, .out_struct = out_struct};
    struct arena scratch;
    int code = place(operation, job, trial, &call.place, out_error);

    if (code < 0)
        return code;
    arena_init(&scratch, SCRATCH_MAX);
    call.arena = &scratch;
    code = remote_ask(self, &call, NULL, out_error);
    arena_deinit(&scratch);
    return code;
}

/* ---- changes ---- */

static int remote_define(void *self, const struct fly_job_definition *definition,
                         struct job_registered *out_registered, struct fly_error *out_error)
{
    int code = job_definition_check(definition, out_error);

    return code < 0 ? code
                    : ask(self, API_DEFINE, definition->name, 0, definition, out_registered, out_error);
}

static int remote_set(void *self, const struct job_setting *setting, struct fly_error *out_error)
{
    return ask(self, API_SET, setting->job, 0, setting, NULL, out_error);
}

static int make_request(char text[REMOTE_REQUEST_TEXT], struct fly_error *out_error)
{
    unsigned char bytes[(REMOTE_REQUEST_TEXT - 1) / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(out_error, FLY_EREAD, "the system has no random numbers for a request");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int remote_propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                          struct fly_error *out_error)
{
    struct job_question asked = *question;
    char request[REMOTE_REQUEST_TEXT];
    int code = call_check_question(question, out_error);

    if (code == 0 && (asked.request == NULL || asked.request[0] == '\0')) {
        code = make_request(request, out_error);
        asked.request = request;
    }
    return code < 0 ? code : ask(self, API_PROPOSE, question->job, 0, &asked, out_proposal, out_error);
}

static int remote_profile(void *self, const struct job_profile *profile, struct job_choice *out_choice,
                          struct fly_error *out_error)
{
    int code = call_check_profile(profile, out_error);

    return code < 0 ? code
                    : ask(self, API_PROFILE, profile->job, profile->trial, profile, out_choice, out_error);
}

static int remote_heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    int code = call_check_beat(beat, out_error);

    return code < 0 ? code : ask(self, API_HEARTBEAT, beat->job, beat->trial, beat, NULL, out_error);
}

static int remote_report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                         struct fly_error *out_error)
{
    int code = call_check_epoch(epoch, out_error);

    return code < 0 ? code : ask(self, API_REPORT, epoch->job, epoch->trial, epoch, out_answered, out_error);
}

static int remote_end(void *self, const struct job_end *end, struct job_ended *out_ended,
                      struct fly_error *out_error)
{
    int code = call_check_end(end, out_error);

    return code < 0 ? code : ask(self, API_END, end->job, end->trial, end, out_ended, out_error);
}

static int remote_expire(void *self, const char *job, uint64_t *out_expired, struct fly_error *out_error)
{
    struct job_expired expired;
    int code = ask(self, API_EXPIRE, job, 0, NULL, &expired, out_error);

    if (code == 0)
        *out_expired = expired.expired;
    return code;
}

/* ---- what can be done once ---- */

static int remote_remove(void *self, const char *job, struct fly_error *out_error)
{
    struct remote_call call = {.once = true};
    bool repeated = false;
    int code = place(API_REMOVE, job, 0, &call.place, out_error);

    if (code < 0)
        return code;
    code = remote_ask(self, &call, &repeated, out_error);
    return repeated && code == FLY_ENOTFOUND ? 0 : code;
}

static int remote_import(void *self, const char *job, const char *text, size_t length,
                         struct fly_error *out_error)
{
    struct remote_call call = {.once = true};
    bool repeated = false;
    char *lines;
    int code = place(API_IMPORT, job, 0, &call.place, out_error);

    if (code < 0)
        return code;
    if (length > 0 && memchr(text, '\0', length) != NULL)
        return error_set(out_error, FLY_EDATA, "import of job '%s': the lines have a 0 byte", job);
    lines = malloc(length + 1);
    if (lines == NULL)
        return error_no_memory(out_error);
    if (length > 0)
        memcpy(lines, text, length);
    lines[length] = '\0';
    call.lines = lines;
    code = remote_ask(self, &call, &repeated, out_error);
    free(lines);
    return repeated && code == FLY_ECONFLICT
               ? error_set(out_error, FLY_EUNSURE,
                           "job '%s' is there, and maybe by this import, whose answer was lost; look at it",
                           job)
               : code;
}

/* ---- looking ---- */

static int remote_list(void *self, struct arena *arena, struct job_list *out_list,
                       struct fly_error *out_error)
{
    const struct remote_call call = {
        .place = {.operation = API_LIST}, .arena = arena, .out_struct = out_list};

    return remote_ask(self, &call, NULL, out_error);
}

static int remote_show(void *self, const char *job, struct arena *arena, struct job_shown *out_shown,
                       struct fly_error *out_error)
{
    struct remote_call call = {.arena = arena, .out_struct = out_shown};
    int code = place(API_SHOW, job, 0, &call.place, out_error);

    return code < 0 ? code : remote_ask(self, &call, NULL, out_error);
}

/* Reads one page; `out_count`: how many of its events were visited. */
static int read_page(struct job_remote *remote, const struct api_place *place, struct store_query *query,
                     store_visit *visit, void *state, uint64_t *out_count, struct fly_error *out_error)
{
    struct remote_reply reply = {.from = remote->shown};
    struct buffer lines;
    const struct remote_call call = {.place = *place, .query = query, .out_lines = &lines};
    int code;

    buffer_init(&lines, API_ANSWER_MAX);
    code = remote_ask(remote, &call, NULL, out_error);
    reply.body = lines.data;
    reply.length = lines.length;
    if (code == 0)
        code = remote_page_read(&reply, &query->after, out_count, visit, state, out_error);
    buffer_deinit(&lines);
    return code;
}

static int remote_read(void *self, const char *job, const struct store_query *query, store_visit *visit,
                       void *state, struct fly_error *out_error)
{
    struct store_query page = *query;
    struct api_place where;
    uint64_t count = 0;
    int code = place(API_READ, job, 0, &where, out_error);

    do {
        if (code == 0)
            code = read_page(self, &where, &page, visit, state, &count, out_error);
        if (code != 0 || (query->limit > 0 && count >= page.limit))
            break;
        if (query->limit > 0)
            page.limit -= count;
    } while (count > 0 && query->key == NULL);
    return code < 0 ? code : 0;
}

static int remote_digest(void *self, const char *job, uint64_t trials, struct buffer *out_bytes,
                         struct fly_error *out_error)
{
    const struct store_query query = {.limit = trials};
    struct remote_call call = {.query = &query, .out_lines = out_bytes};
    int code = place(API_DIGEST, job, 0, &call.place, out_error);

    return code < 0 ? code : remote_ask(self, &call, NULL, out_error);
}

/* The service counts them itself. */
static void remote_take_expired(void *self, struct job_expiries *out_expiries)
{
    (void)self;
    out_expiries->count = 0;
}

static bool remote_takes(const char *address)
{
    const char *rest;

    return address_split(address, &rest) != ADDRESS_PATH;
}

const struct job_backend job_backend_remote = {
    .name = "remote",
    .takes = remote_takes,
    .open = remote_open,
    .close = remote_close,
    .define = remote_define,
    .set = remote_set,
    .propose = remote_propose,
    .profile = remote_profile,
    .heartbeat = remote_heartbeat,
    .report = remote_report,
    .end = remote_end,
    .expire = remote_expire,
    .list = remote_list,
    .show = remote_show,
    .read = remote_read,
    .digest = remote_digest,
    .import = remote_import,
    .remove = remote_remove,
    .take_expired = remote_take_expired,
};
