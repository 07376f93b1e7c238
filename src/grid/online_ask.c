/* SPDX-License-Identifier: Apache-2.0 */
/* Puts one question to a service, and reads its answer. */
#include "grid/online.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/harmless.h"
#include "base/http_client.h"
#include "base/number.h"
#include "base/text/iso_time.h"

/* ---- rows ---- */

int online_read_body(const struct shape *shape, json_t *body, struct arena *arena, void *out_answer,
                     struct fly_error *out_error)
{
    struct shape_fault fault;
    int code = shape_read_as(shape, body, SHAPE_BORROWING, arena, out_answer, &fault, NULL);

    if (code == 0)
        return 0;
    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (fault.path[0] != '\0')
        return online_refuse(fault.path, fault.expected, out_error);
    /* A text that is not an object has no first member. */
    return shape->bare ? error_set(out_error, FLY_EDATA, "expected %s", fault.expected)
                       : online_refuse(shape->fields[0].name, shape->fields[0].expected, out_error);
}

bool online_time(const char *text, int64_t *out_s)
{
    return iso_time_parse_utc(text, true, out_s);
}

double online_value(double value, enum grid_unit unit)
{
    return isnan(value) ? NAN : grid_unit_convert(unit, value);
}

int online_refuse(const char *member, const char *expected, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA, "'%s': expected %s", member, expected);
}

int online_same(const char *name, const char *text, const char *word, struct fly_error *out_error)
{
    if (strcasecmp(text, word) == 0)
        return 0;
    return error_set(out_error, FLY_EDATA, "'%s' is '%.40s' where '%.40s' was asked for", name, text, word);
}

char *online_minute(int64_t s, char *text)
{
    iso_time_format(s - ((s % 60) + 60) % 60, text);
    /* Removes the seconds of "2026-11-22T07:30:00Z". */
    if (strlen(text) == strlen("2026-11-22T07:30:00Z"))
        memcpy(text + strlen("2026-11-22T07:30"), "Z", 2);
    return text;
}

/* ---- address and key ---- */

static const char timeout_variable[] = "FLYBALL_CARBON_TIMEOUT";
static const double usual_timeout_s = 20.0, longest_timeout_s = 600.0;

static const char *given(const char *variable)
{
    const char *value = variable != NULL ? getenv(variable) : NULL;

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Returns whether an address is at `host`. */
static bool is_at(const char *base, const char *host)
{
    const char *begin = strstr(base, "://");
    size_t length = strlen(host);

    return begin != NULL && strncasecmp(begin + 3, host, length) == 0 &&
           strchr(":/", begin[3 + length]) != NULL; /* the end of the text counts too */
}

/* Returns whether the host is a name of this machine, as in "http://127.0.0.1:8090/v3", and nothing else. */
static bool is_within_machine(const char *base)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (is_at(base, hosts[i]))
            return true;
    }
    return false;
}

static int find_key_header(const struct grid_provider *provider, struct online_account *account,
                           struct fly_error *out_error)
{
    const char *header = given(provider->header_variable);

    if (header != NULL &&
        (strlen(header) >= sizeof account->key_header ||
         strspn(header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
             strlen(header)))
        return error_set(out_error, FLY_ECONFIG,
                         "bad value for %s: expected a header's name of letters, digits, '-' and '_'",
                         provider->header_variable);
    if (header == NULL)
        header = provider->gateway != NULL && is_at(account->base, provider->gateway)
                     ? provider->gateway_header
                     : provider->key_header;
    snprintf(account->key_header, sizeof account->key_header, "%s", header != NULL ? header : "");
    return 0;
}

static int find_timeout(struct online_account *account, struct fly_error *out_error)
{
    const char *text = given(timeout_variable);

    account->timeout_s = usual_timeout_s;
    if (text == NULL)
        return 0;
    if (!number_parse_double(text, &account->timeout_s) || account->timeout_s < 0.1 ||
        account->timeout_s > longest_timeout_s)
        return error_set(out_error, FLY_ECONFIG, "bad value '%.40s' for %s: expected 0.1 to 600 s", text,
                         timeout_variable);
    return 0;
}

int online_account_find(const struct grid_provider *provider, struct online_account *out_account,
                        struct fly_error *out_error)
{
    struct online_account account = {.base = ""};
    const char *base = given(provider->base_variable);
    size_t length;
    int code;

    if (base == NULL)
        base = provider->base;
    if (base == NULL)
        return error_set(out_error, FLY_ECONFIG,
                         "the address of %s is not known; set %s to it, as http://HOST:PORT", provider->name,
                         provider->base_variable);
    length = strlen(base);
    while (length > 0 && base[length - 1] == '/')
        length--;
    if ((strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0) ||
        length >= sizeof account.base || strpbrk(base, " @?#\"\\\r\n\t") != NULL)
        return error_set(
            out_error, FLY_ECONFIG,
            "bad value for %s: expected http://HOST:PORT or https://HOST, without a user's name, "
            "'?' or '#'",
            provider->base_variable);
    memcpy(account.base, base, length);
    account.base[length] = '\0';
    account.within_machine = is_within_machine(account.base);
    code = find_timeout(&account, out_error);
    if (code == 0)
        code = find_key_header(provider, &account, out_error);
    if (code == 0)
        *out_account = account;
    return code;
}

static bool is_header_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || (unsigned char)*text == 0x7F)
            return false;
    }
    return true;
}

static int take_key(const char *text, const char *from, char key[ACCOUNT_KEY_MAX],
                    struct fly_error *out_error)
{
    size_t length = strlen(text);

    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length == 0 || length >= ACCOUNT_KEY_MAX)
        return error_set(out_error, FLY_ECONFIG, "%s holds no key: expected a line of 1 to %d bytes", from,
                         ACCOUNT_KEY_MAX - 1);
    memcpy(key, text, length);
    key[length] = '\0';
    if (!is_header_text(key))
        return error_set(out_error, FLY_ECONFIG, "%s holds no key: expected one line of text", from);
    return 0;
}

static int read_key_file(const char *path, char key[ACCOUNT_KEY_MAX], struct fly_error *out_error)
{
    char text[ACCOUNT_KEY_MAX + 1], from[ACCOUNT_KEY_MAX];
    FILE *file = fopen(path, "re");
    size_t length;

    if (file == NULL)
        return error_set(out_error,
                         errno == ENOENT   ? FLY_ENOTFOUND
                         : errno == EACCES ? FLY_EPERM
                                           : FLY_EREAD,
                         "the key's file '%.200s' cannot be read: %s", path, strerror(errno));
    length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[memchr(text, '\0', length) != NULL ? 0 : length] = '\0';
    snprintf(from, sizeof from, "the file '%.200s'", path);
    return take_key(text, from, key, out_error);
}

int online_account_unlock(const struct grid_provider *provider, struct online_account *account,
                          struct fly_error *out_error)
{
    const char *file = given(provider->key_file_variable), *key = given(provider->key_variable);
    const char *user = given(provider->user_variable);

    if (provider->secret == ONLINE_OPEN)
        return 0;
    if (strncmp(account->base, "http://", 7) == 0 && !account->within_machine)
        return error_set(out_error, FLY_ECONFIG,
                         "the key of %s would travel in the clear; set %s to an address with https://",
                         provider->name, provider->base_variable);
    if (provider->secret == ONLINE_LOGIN && user == NULL)
        return error_set(out_error, FLY_ECONFIG, "%s wants an account; set %s and %s", provider->name,
                         provider->user_variable, provider->key_file_variable);
    if (user != NULL && (strlen(user) >= sizeof account->user || !is_header_text(user)))
        return error_set(out_error, FLY_ECONFIG, "%s holds no name", provider->user_variable);
    if (user != NULL)
        snprintf(account->user, sizeof account->user, "%s", user);
    if (file != NULL)
        return read_key_file(file, account->key, out_error);
    if (key != NULL)
        return take_key(key, provider->key_variable, account->key, out_error);
    return error_set(out_error, FLY_ECONFIG, "%s wants a key; set %s to the file that holds it",
                     provider->name, provider->key_file_variable);
}

/* ---- a question ---- */

enum {
    URL_MAX = 1024,
    ANSWER_MAX = 2 << 20, /* a month of five-minute periods takes a third; parsed it takes many times that */
    HEADER_MAX = ACCOUNT_TOKEN_MAX + 64,
    BASIC_MAX = 2 * ACCOUNT_KEY_MAX + 2,
};

static const double connect_timeout_s = 5.0;

/* The reason for a refusal, if the service states one: a text, or that of an object's member. */
struct inside {
    const char *message; /* NULL: none */
};
static const struct shape_field inside_rows[] = {
    {SHAPE_AT(inside, message), ONLINE_TEXT, .null = SHAPE_OR_NULL}};
static const struct shape inside_shape = {SHAPE_OF(inside, inside_rows)};
struct said {
    const char *text; /* NULL: none */
    struct inside inside;
};

struct refusal {
    struct said error, message, detail, title;
};
#define REASON_ROWS(member)                                                           \
    {SHAPE_AT_AS(#member, refusal, member.text), ONLINE_TEXT, .null = SHAPE_OR_NULL}, \
    {                                                                                 \
        SHAPE_AT_AS(#member, refusal, member.inside), SHAPE_IS_STRUCT(&inside_shape), \
            .need = SHAPE_OPTIONAL, .loose = true                                     \
    }
static const struct shape_field refusal_rows[] = {REASON_ROWS(error), REASON_ROWS(message),
                                                  REASON_ROWS(detail), REASON_ROWS(title)};
static const struct shape refusal_shape = {SHAPE_OF(refusal, refusal_rows)};

struct login {
    const char *token;
};
static const struct shape_field login_rows[] = {{SHAPE_AT(login, token), ONLINE_TEXT}};
static const struct shape login_shape = {SHAPE_OF(login, login_rows)};

static const char *find_reason(const struct refusal *refusal)
{
    const struct said *const all[] = {&refusal->error, &refusal->message, &refusal->detail, &refusal->title};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->text != NULL || all[i]->inside.message != NULL)
            return all[i]->text != NULL ? all[i]->text : all[i]->inside.message;
    }
    return "";
}

void online_reason(const char *text, size_t length, char out_reason[ONLINE_REASON_MAX])
{
    struct refusal refusal = {.error = {.text = NULL}};
    struct arena arena;

    arena_init(&arena, ONLINE_ARENA_MAX);
    (void)shape_read_text(&refusal_shape, text, length, SHAPE_FOREIGN, &arena, &refusal, NULL, NULL);
    snprintf(out_reason, ONLINE_REASON_MAX, "%s", find_reason(&refusal));
    harmless_make_ascii(out_reason);
    arena_deinit(&arena);
}

enum remedy { NO_REMEDY, RIGHT_KEY, OTHER_ADDRESS, REMEDIES };

/* What a status other than 200 means; the first row that matches counts. */
static const struct {
    int from, to; /* both included */
    enum ask_outcome outcome;
    int code;
    const char *text;
    enum remedy remedy;
} meanings[] = {
    {204, 204, ASK_ANSWERED, 0, "", NO_REMEDY},
    {200, 299, ASK_FAILED, FLY_EDATA, "answers in a way that is not understood", NO_REMEDY},
    {300, 399, ASK_REFUSED, FLY_EDATA, "has moved", OTHER_ADDRESS},
    {401, 401, ASK_REFUSED, FLY_EPERM, "refuses the key", RIGHT_KEY},
    {403, 403, ASK_REFUSED, FLY_EPERM, "does not give this to this key", NO_REMEDY},
    {404, 404, ASK_REFUSED, FLY_ENOTFOUND, "knows no such place, or has no data of it", NO_REMEDY},
    {408, 408, ASK_FAILED, FLY_EUNREACHABLE, "is too slow", NO_REMEDY},
    {410, 410, ASK_REFUSED, FLY_EUNSUPPORTED, "no longer answers at this address; use its newest version",
     OTHER_ADDRESS},
    {425, 425, ASK_FAILED, FLY_EUNREACHABLE, "wants to be asked later", NO_REMEDY},
    {429, 429, ASK_FAILED, FLY_EUNREACHABLE,
     "is asked too often; let all programs of this machine use one FLYBALL_CARBON_CACHE", NO_REMEDY},
    {400, 499, ASK_REFUSED, FLY_ENOTFOUND, "refuses the question", NO_REMEDY},
    {501, 501, ASK_REFUSED, FLY_EUNSUPPORTED, "does not have this", NO_REMEDY},
    {500, 599, ASK_FAILED, FLY_EUNREACHABLE, "is not well", NO_REMEDY},
};

static enum ask_outcome judge(const struct grid_provider *provider, const struct online_account *account,
                              const struct http_answer *answer, struct fly_error *out_error)
{
    const char *const variables[REMEDIES] = {"", provider->key_variable, provider->base_variable};
    char reason[ONLINE_REASON_MAX];

    online_reason(answer->body.data, answer->body.length, reason);
    /* A reason must not repeat a secret that was sent. */
    if ((account->key[0] != '\0' && strstr(reason, account->key) != NULL) ||
        strstr(reason, "Bearer") != NULL || strstr(reason, "Basic") != NULL)
        reason[0] = '\0';
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (answer->status < meanings[i].from || answer->status > meanings[i].to)
            continue;
        if (meanings[i].outcome != ASK_ANSWERED) {
            const char *variable = variables[meanings[i].remedy];

            variable = variable != NULL ? variable : "";
            error_set(out_error, meanings[i].code, "it %s (status %d%s%s)%s%s", meanings[i].text,
                      answer->status, reason[0] != '\0' ? ": " : "", reason,
                      variable[0] != '\0' ? "; set " : "", variable);
        }
        return meanings[i].outcome;
    }
    error_set(out_error, FLY_EDATA, "it answers with status %d", answer->status);
    return ASK_FAILED;
}

/* Sends over the network; ASK_ANSWERED for any status. */
static enum ask_outcome send(const struct online_account *account, const char *url, const char *header,
                             struct http_answer *out_answer, struct fly_error *out_error)
{
    const char *const headers[] = {"Accept: application/json", header, NULL};
    const struct http_request request = {
        .url = url,
        .headers = headers,
        .answer_maximum = ANSWER_MAX,
        .connect_timeout_s = account->timeout_s < connect_timeout_s ? account->timeout_s : connect_timeout_s,
        .total_timeout_s = account->timeout_s,
        .past_proxies = account->within_machine,
        .abandon = account->abandon,
    };
    struct fly_error error = {.code = 0};
    int code = http_ask(&request, out_answer, &error);

    if (code == 0)
        return ASK_ANSWERED;
    /* Giving up tells nothing about the service. */
    if (account->abandon != NULL && atomic_load(account->abandon)) {
        error_set(out_error, FLY_EUNREACHABLE, "it was not waited for");
        return ASK_UNABLE;
    }
    if (code == FLY_EUNSUPPORTED || code == FLY_ENOMEM || code == FLY_EUSAGE) {
        error_set(out_error, code, "%s", error.text);
        return ASK_UNABLE;
    }
    error_set(out_error, FLY_EUNREACHABLE, "%s", error.text);
    return ASK_FAILED;
}

static void write_base64(const char *text, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    enum { PADDING = 64 };
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = 0;

        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (i + j < length ? (unsigned char)text[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *out++ = digits[i + j <= length ? bits >> (18 - 6 * j) & 63 : PADDING];
    }
    *out = '\0';
}

static enum ask_outcome take_token(struct online_account *account, const struct http_answer *answer,
                                   struct fly_error *out_error)
{
    struct login login = {.token = ""};
    struct arena arena;
    bool good;

    arena_init(&arena, ONLINE_ARENA_MAX);
    (void)shape_read_text(&login_shape, answer->body.data, answer->body.length, SHAPE_FOREIGN, &arena, &login,
                          NULL, NULL);
    good = login.token[0] != '\0' && strlen(login.token) < sizeof account->token;
    for (const char *at = login.token; good && *at != '\0'; at++)
        good = *at > ' ' && *at <= '~';
    if (good)
        snprintf(account->token, sizeof account->token, "%s", login.token);
    else
        error_set(out_error, FLY_EDATA, "its login gives no token");
    arena_deinit(&arena);
    return good ? ASK_ANSWERED : ASK_FAILED;
}

static enum ask_outcome log_in(const struct grid_provider *provider, struct online_account *account,
                               double *out_retry_after_s, struct fly_error *out_error)
{
    char url[URL_MAX], both[BASIC_MAX], header[HEADER_MAX], encoded[BASIC_MAX * 4 / 3 + 8];
    struct http_answer answer;
    enum ask_outcome outcome;

    snprintf(url, sizeof url, "%s%s", account->base, provider->login_path);
    snprintf(both, sizeof both, "%s:%s", account->user, account->key);
    write_base64(both, encoded);
    snprintf(header, sizeof header, "Authorization: Basic %s", encoded);
    outcome = send(account, url, header, &answer, out_error);
    if (outcome != ASK_ANSWERED)
        return outcome;
    *out_retry_after_s = answer.retry_after_s;
    if (answer.status == 200)
        outcome = take_token(account, &answer, out_error);
    else if ((outcome = judge(provider, account, &answer, out_error)) == ASK_ANSWERED) {
        error_set(out_error, FLY_EDATA, "its login gives no token");
        outcome = ASK_FAILED;
    }
    http_answer_deinit(&answer);
    return outcome;
}

static const char *secret_header(const struct grid_provider *provider, const struct online_account *account,
                                 char header[HEADER_MAX])
{
    if (provider->secret == ONLINE_OPEN)
        return NULL;
    if (provider->secret == ONLINE_KEY)
        snprintf(header, HEADER_MAX, "%s: %s", account->key_header, account->key);
    else
        snprintf(header, HEADER_MAX, "Authorization: Bearer %s", account->token);
    return header;
}

/* Logs in if needed, and again if the token has expired. */
static enum ask_outcome send_known(const struct grid_provider *provider, struct online_account *account,
                                   const char *url, struct http_answer *out_answer, double *out_retry_after_s,
                                   struct fly_error *out_error)
{
    bool logs_in = provider->secret == ONLINE_LOGIN, fresh = logs_in && account->token[0] == '\0';
    char header[HEADER_MAX];
    enum ask_outcome outcome;

    if (fresh) {
        outcome = log_in(provider, account, out_retry_after_s, out_error);
        if (outcome != ASK_ANSWERED)
            return outcome;
    }
    outcome = send(account, url, secret_header(provider, account, header), out_answer, out_error);
    if (outcome != ASK_ANSWERED || out_answer->status != 401 || !logs_in)
        return outcome;
    http_answer_deinit(out_answer);
    outcome = log_in(provider, account, out_retry_after_s, out_error);
    if (outcome != ASK_ANSWERED)
        return outcome;
    return send(account, url, secret_header(provider, account, header), out_answer, out_error);
}

static int read_body(const struct grid_provider *provider, const struct online_question *question,
                     const struct grid_kind *kind, json_t *body, struct grid_answer *out_answer,
                     struct fly_error *out_error)
{
    struct grid_answer answer = {.remark = ""};
    struct arena arena;
    int code;

    arena_init(&arena, ONLINE_ARENA_MAX);
    grid_series_init(&answer.actual, kind, GRID_PERIODS_MAX);
    grid_series_init(&answer.published, kind, GRID_PERIODS_MAX);
    code = provider->parse(question, body, &arena, &answer, out_error);
    arena_deinit(&arena);
    if (code == 0)
        *out_answer = answer;
    else
        grid_answer_deinit(&answer);
    return code;
}

int online_parse(const struct grid_provider *provider, const struct online_question *question,
                 const struct grid_kind *kind, const char *text, size_t length,
                 struct grid_answer *out_answer, struct fly_error *out_error)
{
    json_t *body = NULL;
    int code = shape_parse_as(text, length, SHAPE_FOREIGN, &body, NULL, NULL);

    if (code < 0)
        return error_set(out_error, FLY_EDATA, "expected JSON");
    code = read_body(provider, question, kind, body, out_answer, out_error);
    json_decref(body);
    return code;
}

static enum ask_outcome take_answer(const struct grid_provider *provider,
                                    const struct online_question *question, const struct grid_kind *kind,
                                    const struct buffer *text, struct grid_answer *out_answer,
                                    struct fly_error *out_error)
{
    struct fly_error error = {.code = 0};
    json_t *body = NULL;
    int code;

    if (shape_parse_as(text->data, text->length, SHAPE_FOREIGN, &body, NULL, NULL) < 0) {
        error_set(out_error, FLY_EDATA, "it answers with something that is not JSON; see what stands there");
        return ASK_FAILED;
    }
    code = read_body(provider, question, kind, body, out_answer, &error);
    json_decref(body);
    if (code == 0)
        return ASK_ANSWERED;
    error_set(out_error, error.code, "its answer is not as documented: %s", error.text);
    return ASK_REFUSED;
}

static enum ask_outcome read_answer(const struct grid_provider *provider,
                                    const struct online_account *account,
                                    const struct online_question *question, const struct grid_kind *kind,
                                    const struct http_answer *answer, struct grid_answer *out_answer,
                                    struct fly_error *out_error)
{
    enum ask_outcome outcome;

    if (answer->status == 200)
        return take_answer(provider, question, kind, &answer->body, out_answer, out_error);
    outcome = judge(provider, account, answer, out_error);
    if (outcome == ASK_ANSWERED) {
        *out_answer = (struct grid_answer){.remark = ""};
        grid_series_init(&out_answer->actual, kind, GRID_PERIODS_MAX);
        grid_series_init(&out_answer->published, kind, GRID_PERIODS_MAX);
    }
    return outcome;
}

enum ask_outcome online_ask(const struct grid_provider *provider, struct online_account *account,
                            const struct online_question *question, const struct grid_kind *kind,
                            struct grid_answer *out_answer, double *out_retry_after_s,
                            struct fly_error *out_error)
{
    struct http_answer answer;
    enum ask_outcome outcome;
    struct buffer url;

    *out_retry_after_s = 0.0;
    buffer_init(&url, URL_MAX);
    buffer_puts(&url, account->base);
    if (provider->write_path(question, &url, out_error) < 0) {
        buffer_deinit(&url);
        return ASK_UNABLE;
    }
    if (url.error < 0) {
        error_set(out_error, url.error, "its address is too long");
        buffer_deinit(&url);
        return ASK_UNABLE;
    }
    outcome = send_known(provider, account, url.data, &answer, out_retry_after_s, out_error);
    buffer_deinit(&url);
    if (outcome != ASK_ANSWERED)
        return outcome;
    *out_retry_after_s = answer.retry_after_s;
    outcome = read_answer(provider, account, question, kind, &answer, out_answer, out_error);
    http_answer_deinit(&answer);
    return outcome;
}
