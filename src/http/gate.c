/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a request before anything of its body is read. */
#include <stdio.h>
#include <string.h>

#include <strings.h>
#include <time.h>

#include "base/harmless.h"
#include "base/number.h"
#include "http/head.h"
#include "http/server_private.h"
#include "http/target.h"

/* All requests' bodies together, and those of one caller, may take this many times the limit of one. */
enum { BODIES_AT_ONCE = 16, BODIES_OF_ONE = 4, MESSAGE_MAX = 300 };

static bool refuse(struct visit *visit, int status, int code, const char *message)
{
    serve_answer_error(&visit->task.answer, status, fly_error_name(code), message);
    return false;
}

static const char *header(const struct visit *visit, const char *name)
{
    return MHD_lookup_connection_value(visit->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result check_header(void *data, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                    const char *value, size_t value_length)
{
    (void)kind;
    head_check_line(data, name, name_length, value != NULL ? value : "", value_length);
    return MHD_YES;
}

/*
 * Before 1.0 the library leaves a head in place, with 0 bytes between its pieces; later versions
 * are strict themselves.
 */
bool gate_sees_heads(void)
{
    return strncmp(MHD_get_version(), "0.", 2) == 0;
}

static bool head_is_good(struct visit *visit, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t target_length = strlen(visit->target);
    struct head_check check;
    const char *fault;

    if (target_length > SERVER_TARGET_MAX)
        return refuse(visit, 414, FLY_ELIMIT, "the request's address is longer than 8192 bytes");
    head_check_begin(&check, method, visit->target, target_length, version,
                     gate_sees_heads() && info != NULL);
    MHD_get_connection_values_n(visit->connection, MHD_HEADER_KIND, check_header, &check);
    if (check.bytes > SERVER_HEADERS_MAX)
        return refuse(visit, 431, FLY_ELIMIT, "the request's headers are longer than 16384 bytes");
    fault = head_check_end(&check, info != NULL ? info->header_size : 0);
    visit->broken = fault != NULL;
    return fault == NULL || refuse(visit, 400, FLY_EUSAGE, fault);
}

/*
 * A body must announce its length, so that one that is too long is refused before it is sent.
 * Callers without a token get no share of the memory for bodies.
 */
static bool body_is_small(struct visit *visit)
{
    const char *length = header(visit, MHD_HTTP_HEADER_CONTENT_LENGTH);
    struct server *server = visit->door->server;
    char message[MESSAGE_MAX];
    size_t most = visit->task.request.scope > SERVE_NOBODY ? server->options.body_max : 0;
    uint64_t bytes = 0;
    size_t own, all;

    if (header(visit, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL)
        return refuse(visit, 411, FLY_EUNSUPPORTED,
                      "a body without Content-Length is not taken; send it in one piece");
    if (length != NULL && !number_parse_u64(length, UINT64_MAX, &bytes))
        return refuse(visit, 400, FLY_EUSAGE, "Content-Length is no number");
    if (bytes > most && most == 0)
        return refuse(
            visit, 413, FLY_EPERM,
            "a body is taken from nobody who may not ask; send a token that holds, or leave it out");
    if (bytes > most) {
        snprintf(message, sizeof message, "the request's body is longer than %zu bytes", most);
        return refuse(visit, 413, FLY_ELIMIT, message);
    }
    visit->body_length = (size_t)bytes;
    visit->place = serve_caller_place(&visit->task.request);
    own = atomic_fetch_add(&server->body_bytes_of[visit->place], visit->body_length) + visit->body_length;
    all = atomic_fetch_add(&server->body_bytes, visit->body_length) + visit->body_length;
    if (own <= BODIES_OF_ONE * server->options.body_max && all <= BODIES_AT_ONCE * server->options.body_max)
        return true;
    gate_forget_body(visit);
    return refuse(visit, 503, FLY_EBUSY, "the service is busy with other requests' bodies; ask again");
}

void gate_forget_body(struct visit *visit)
{
    struct server *server = visit->door->server;

    atomic_fetch_sub(&server->body_bytes, visit->body_length);
    atomic_fetch_sub(&server->body_bytes_of[visit->place], visit->body_length);
    visit->body_length = 0;
}

/*
 * Without tokens anybody on this machine may ask, but not a web page in a browser on this
 * machine. Such a request says which site it comes from, or uses a host name that only resolves
 * to this machine.
 */
static bool is_no_web_page(struct visit *visit)
{
    const struct listen_address *at = &visit->door->listener.bound;
    const char *host = header(visit, MHD_HTTP_HEADER_HOST);
    const char *site = header(visit, "Sec-Fetch-Site");

    /*
     * A page's links, pictures and plain forms come without Origin. Sec-Fetch-Site "none": somebody
     * typed the address.
     */
    if (header(visit, MHD_HTTP_HEADER_ORIGIN) != NULL || (site != NULL && strcmp(site, "none") != 0))
        return refuse(visit, 403, FLY_EPERM, "a service without tokens answers no web pages");
    if (at->at.ss_family != AF_UNIX && at->here && host != NULL && !listen_host_is_here(host))
        return refuse(
            visit, 421, FLY_EPERM,
            "a service without tokens is asked as localhost, 127.0.0.1 or [::1], and by no other name");
    return true;
}

/* Returns what the client sent behind "Authorization: Bearer", or NULL. */
static const char *find_bearer(const struct visit *visit)
{
    static const char scheme[] = "Bearer ";
    const char *value = header(visit, MHD_HTTP_HEADER_AUTHORIZATION);

    if (value == NULL || strncasecmp(value, scheme, sizeof scheme - 1) != 0)
        return NULL;
    value += sizeof scheme - 1;
    return value + strspn(value, " ");
}

/*
 * Takes a token out of the path, so that no later code sees or logs it. If the address that
 * clients were given ends with a slash, and they add their own, there are two.
 */
static void take_path_secret(struct visit *visit)
{
    struct serve_request *request = &visit->task.request;
    size_t front = strlen(SERVE_TOKEN_PATH), length;
    char *secret = visit->target + front, *kept = secret - 1;

    if (strncmp(request->path, SERVE_TOKEN_PATH, front) != 0)
        return;
    length = strcspn(secret, "/");
    request->path = secret[length] == '\0' ? "/" : secret + length + (secret[length + 1] == '/');
    /* Moved forward by one byte: that makes room for the ending 0, and the path keeps its slash. */
    memmove(kept, secret, length);
    kept[length] = '\0';
    visit->path_secret = kept;
}

static const struct server_token_words *token_words(const struct visit *visit)
{
    return &visit->door->server->options.back->tokens;
}

static bool takes_header_only(const struct server_token_words *words, const char *path)
{
    for (const char *const *front = words->header_only; *front != NULL; front++)
        if (strncmp(path, *front, strlen(*front)) == 0)
            return true;
    return strcmp(path, "/metrics") == 0;
}

/*
 * Proxies and logs record paths, so a token in the path is accepted only from clients that can do
 * no better.
 */
static bool path_secret_may(struct visit *visit)
{
    const struct server_token_words *words = token_words(visit);
    char message[MESSAGE_MAX];

    if (!visit->door->server->options.tokens_in_path) {
        snprintf(message, sizeof message,
                 "this service takes tokens as 'Authorization: Bearer ...' alone%s%s",
                 words->path_clients != NULL ? "; who runs it allows them in the path with " : "",
                 words->path_clients != NULL ? words->path_option : "");
        return refuse(visit, 404, FLY_EUNSUPPORTED, message);
    }
    if (takes_header_only(words, visit->task.request.path)) {
        snprintf(message, sizeof message,
                 "a token in the path is for %s; send it as 'Authorization: Bearer ...' here",
                 words->path_clients);
        return refuse(visit, 403, FLY_EPERM, message);
    }
    return true;
}

static bool refuse_stranger(struct visit *visit)
{
    const struct server_token_words *words = token_words(visit);
    char path_way[MESSAGE_MAX] = "", message[2 * MESSAGE_MAX];

    if (visit->door->server->options.tokens_in_path)
        snprintf(path_way, sizeof path_way,
                 ", or for %s the address https://HOST:PORT" SERVE_TOKEN_PATH "TOKEN as %s",
                 words->path_clients, words->path_setting);
    snprintf(message, sizeof message,
             "this service wants a token: 'Authorization: Bearer ...'%s; who runs it makes one with '%s'",
             path_way, words->command);
    visit->challenge = "Bearer";
    return refuse(visit, 401, FLY_EPERM, message);
}

static void take_token(struct visit *visit, const struct token *token)
{
    memcpy(visit->caller, token->name, sizeof visit->caller);
    visit->task.request.scope = token->scope;
    visit->task.request.caller_name = visit->caller;
}

static bool has_token(struct visit *visit)
{
    const char *secret = visit->path_secret != NULL ? visit->path_secret : find_bearer(visit);
    struct fly_error error;
    struct token token;
    int code;

    if (visit->path_secret != NULL && !path_secret_may(visit))
        return false;
    if (secret == NULL)
        return refuse_stranger(visit);
    code = token_file_ask(&visit->door->server->tokens, secret, time(NULL), &token, &error);
    if (code == FLY_EPERM)
        visit->challenge = "Bearer error=\"invalid_token\"";
    if (code != FLY_EPERM && code < 0)
        readiness_doubt(&visit->door->server->readiness);
    if (code < 0)
        return refuse(visit, code == FLY_EPERM ? 401 : 503, code, error.text);
    take_token(visit, &token);
    return true;
}

/* Monitoring needs no token for these paths, which say only whether the service works. */
static bool is_for_anybody(const char *path)
{
    return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0;
}

/* What a signed token lets its bearer do where scopes of GPUs and CPUs are not told apart. */
static enum serve_scope scope_of(const struct signed_token *token)
{
    if ((token->scopes & 1U << SIGNED_SCOPE_GPU_CONTROL) != 0)
        return SERVE_TRAIN;
    return (token->scopes & 1U << SIGNED_SCOPE_GPU_READ) != 0 ? SERVE_READ : SERVE_NOBODY;
}

/* The daemon whose tokens these are knows "Bearer " in this spelling alone. */
static bool is_spelt_plainly(const struct visit *visit)
{
    const char *value = header(visit, MHD_HTTP_HEADER_AUTHORIZATION);

    return value != NULL && strncmp(value, "Bearer ", strlen("Bearer ")) == 0;
}

/* Returns whether the bearer is a token that the key has signed. */
static bool take_signed_token(struct visit *visit)
{
    struct serve_request *request = &visit->task.request;
    struct server *server = visit->door->server;

    if (!server->with_signing_key || !is_spelt_plainly(visit) ||
        signing_key_ask(&server->signing_key, request->bearer, time(NULL), &visit->signed_token, NULL) < 0)
        return false;
    signed_token_name(&visit->signed_token, visit->caller);
    request->caller_name = visit->caller;
    request->scope = scope_of(&visit->signed_token);
    request->signed_token = &visit->signed_token;
    return true;
}

/* Returns whether the back lets the bearer do more than somebody without one. */
static bool bearer_counts(const struct visit *visit)
{
    const struct server_options *options = &visit->door->server->options;
    struct serve_request without = visit->task.request;

    if (without.bearer == NULL)
        return false;
    without.bearer = NULL;
    without.scope = SERVE_NOBODY;
    return visit->task.request.scope > options->back->admit(options->back_self, &without);
}

/*
 * The back may know the bearer where the file of tokens does not, or cannot be read. One that counts for
 * nothing is none: a web page whose name resolves to this machine can send any.
 */
static bool ask_back(struct visit *visit)
{
    const struct server_options *options = &visit->door->server->options;
    struct serve_request *request = &visit->task.request;
    struct token token;
    bool known;

    if (visit->path_secret != NULL && !path_secret_may(visit))
        return false;
    request->bearer = visit->path_secret != NULL ? visit->path_secret : find_bearer(visit);
    known = request->bearer != NULL && visit->door->server->with_tokens &&
            token_file_ask(&visit->door->server->tokens, request->bearer, time(NULL), &token, NULL) == 0;
    if (known)
        take_token(visit, &token);
    else
        known = request->bearer != NULL && take_signed_token(visit);
    request->scope = options->back->admit(options->back_self, request);
    return known || bearer_counts(visit) || is_no_web_page(visit);
}

static bool caller_may(struct visit *visit)
{
    if (visit->door->server->options.back->admit != NULL)
        return is_for_anybody(visit->task.request.path) || ask_back(visit);
    if (!visit->door->server->with_tokens) {
        visit->task.request.scope = SERVE_MANAGE;
        return is_no_web_page(visit);
    }
    return is_for_anybody(visit->task.request.path) || has_token(visit);
}

/* One that may not be shown is not one that a back has given out, nor a name. */
static void take_words(struct visit *visit)
{
    const char *id = header(visit, "Last-Event-ID"), *agent = header(visit, MHD_HTTP_HEADER_USER_AGENT);

    if (id != NULL && harmless_all(id, strlen(id), false))
        visit->task.request.last_event_id = id;
    if (agent != NULL && harmless_all(agent, strlen(agent), false))
        visit->task.request.agent = agent;
}

bool gate_lets_in(struct visit *visit, const char *version)
{
    struct fly_error error;
    int code;

    if (!head_is_good(visit, visit->task.request.method, version))
        return false;
    code = serve_target_parse(visit->target, &visit->task.request, &error);
    if (code < 0)
        return refuse(visit, 400, code, error.text);
    take_path_secret(visit);
    take_words(visit);
    return caller_may(visit) && body_is_small(visit);
}
