/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speaks to the server without ever blocking in the client library, except for the look-up of its
 * name: every wait is a poll with a deadline.
 */
#include "store/postgres_link.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flyball/error.h>

#include "base/error.h"
#include "base/shared_object.h"
#include "base/thread/exit_gate.h"
#include "base/wait.h"

/* OPENSSL_INIT_LOAD_CRYPTO_STRINGS and OPENSSL_INIT_NO_ATEXIT of its headers. */
static const uint64_t load_crypto_strings = 0x2, no_atexit = 0x80000;

static const char library_name[] = "libpq.so.5";

#define CALL_ROW(slot, symbol, result, parameters) {offsetof(struct postgres_calls, slot), #symbol},
static const struct call_row {
    size_t offset; /* of the slot */
    const char *symbol;
} call_rows[] = {POSTGRES_CALLS(CALL_ROW)};
#undef CALL_ROW

static int find_calls(const struct shared_object *object, const char *name, struct postgres_calls *out_calls,
                      struct fly_error *out_error)
{
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const void *found = shared_object_find(object, call_rows[i].symbol);

        if (found == NULL)
            return error_set(out_error, FLY_EUNSUPPORTED,
                             "the library '%.200s' lacks the function '%s'; it is no client library of "
                             "PostgreSQL, or one too old: install version 12 or newer",
                             name, call_rows[i].symbol);
        memcpy((char *)out_calls + call_rows[i].offset, &found, sizeof found);
    }
    return 0;
}

/*
 * OpenSSL, where the library has it, cleans up at the program's exit, under threads that work in it. If
 * nobody has used it before, it is told not to; else it registered for the exit earlier than the gate, which
 * then shuts first.
 */
static void begin_openssl(const struct shared_object *object)
{
    const void *found = shared_object_find(object, "OPENSSL_init_crypto");
    int (*init_crypto)(uint64_t options, const void *settings);

    if (found == NULL)
        return;
    memcpy(&init_crypto, &found, sizeof found);
    (void)init_crypto(load_crypto_strings | no_atexit, NULL);
}

static int load(const char *path, struct postgres_calls *out_calls, struct fly_error *out_error)
{
    struct shared_object object;
    struct postgres_calls calls;
    struct fly_error why = {0};
    int code = path != NULL ? shared_object_open(path, &object, &why)
                            : shared_object_open_library(library_name, &object, &why);

    if (code < 0)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "no client library of PostgreSQL: %.300s; install it (Debian: 'apt-get install libpq5'), "
            "or name a file as the store",
            why.text);
    code = find_calls(&object, path != NULL ? path : library_name, &calls, out_error);
    if (code < 0) {
        shared_object_close(&object);
        return code;
    }
    begin_openssl(&object);
    *out_calls = calls;
    return 0;
}

/* Left open, because it registers functions for the program's exit, which must stay in memory. */
int postgres_library_load(const char *path, struct postgres_calls *out_calls, struct fly_error *out_error)
{
    int code;

    exit_gate_install();
    exit_gate_enter();
    code = load(path, out_calls, out_error);
    exit_gate_leave();
    return code;
}

#define TRY_AGAIN "try again"
#define SEE_SERVER "see the server's log"

/* Looked up by the beginning of a SQLSTATE (appendix A of PostgreSQL's manual); the first match counts. */
static const struct state_row {
    const char *state;
    struct postgres_meaning meaning;
} state_rows[] = {
    {"08", {FLY_EUNREACHABLE, TRY_AGAIN}},
    {"57P", {FLY_EUNREACHABLE, TRY_AGAIN}},
    {"25P03", {FLY_EUNREACHABLE, "end changes sooner"}},
    {"55P03", {FLY_EBUSY, TRY_AGAIN}},
    {"57014", {FLY_EBUSY, TRY_AGAIN}},
    {"40", {FLY_EBUSY, TRY_AGAIN}},
    {"53300", {FLY_EBUSY, "allow more connections (max_connections), or use fewer"}},
    {"53100", {FLY_EWRITE, "free some space on the server"}},
    {"53200", {FLY_ENOMEM, "free some on the server"}},
    {"53", {FLY_EWRITE, SEE_SERVER}},
    {"58", {FLY_EWRITE, SEE_SERVER}},
    {"XX001", {FLY_EREAD, "restore a copy"}},
    {"XX002", {FLY_EREAD, "rebuild it with REINDEX"}},
    {"28", {FLY_EPERM, "see user and password of the address, and the server's pg_hba.conf"}},
    {"42501", {FLY_EPERM, "let the user CREATE in the schema, or own the tables"}},
    {"25006", {FLY_EPERM, "name the primary server"}},
    {"3D", {FLY_ENOTFOUND, "make it with 'createdb'"}},
    {"3F", {FLY_ENOTFOUND, "make the schema with CREATE SCHEMA"}},
    {"42", {FLY_EDATA, "name another database, or set search_path in the address's options"}},
    {"22021", {FLY_EUSAGE, "write UTF-8"}},
};

/* Words with which servers refuse a connection, in English. */
static const struct connect_row {
    const char *words;
    struct postgres_meaning meaning;
} connect_rows[] = {
    {"password", {FLY_EPERM, "see user and password of the address"}},
    {"authentication failed",
     {FLY_EPERM, "see user and password of the address, and the server's pg_hba.conf"}},
    {"pg_hba.conf", {FLY_EPERM, "let the server's pg_hba.conf admit this machine"}},
    {"role \"", {FLY_EPERM, "make the role with 'createuser'"}},
    {"permission denied", {FLY_EPERM, "ask for the right to connect"}},
    {"read-only", {FLY_EPERM, "name the primary server"}},
    {"database \"", {FLY_ENOTFOUND, "make it with 'createdb'"}},
    {"too many", {FLY_EBUSY, "allow more connections (max_connections), or use fewer"}},
    {"connection slots", {FLY_EBUSY, "allow more connections (max_connections), or use fewer"}},
};

struct postgres_meaning postgres_state_meaning(const char *state)
{
    if (state == NULL || state[0] == '\0')
        return (struct postgres_meaning){FLY_EUNREACHABLE, TRY_AGAIN};
    for (size_t i = 0; i < sizeof state_rows / sizeof state_rows[0]; i++) {
        if (strncmp(state, state_rows[i].state, strlen(state_rows[i].state)) == 0)
            return state_rows[i].meaning;
    }
    return (struct postgres_meaning){FLY_EINTERNAL, SEE_SERVER};
}

struct postgres_meaning postgres_connect_meaning(const char *text)
{
    for (size_t i = 0; i < sizeof connect_rows / sizeof connect_rows[0]; i++) {
        if (strstr(text, connect_rows[i].words) != NULL)
            return connect_rows[i].meaning;
    }
    return (struct postgres_meaning){
        FLY_EUNREACHABLE, "see whether the server runs and listens, and host and port of the address"};
}

static const char *without_severity(const char *message)
{
    size_t word = strspn(message, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    if (word == 0 || message[word] != ':')
        return message;
    message += word + 1;
    return message + strspn(message, " ");
}

char *postgres_words(const char *message, char *out, size_t size)
{
    size_t length = 0;

    for (message = without_severity(message); *message != '\0' && length + 1 < size; message++)
        out[length++] = (char)((unsigned char)*message < ' ' ? ' ' : *message);
    while (length > 0 && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
    return out;
}

enum {
    WORDS_MAX = 300,
    OLDEST_SERVER = 120000,
    RECONNECT_PAUSE_US = 50000,
    ANSWER_EXTRA_S = 5,       /* added to the server's own time limit for locks */
    IDLE_IN_CHANGE_MIN_S = 60 /* after which the server ends a change whose owner is idle */
};

static void ignore_notice(void *state, const char *message)
{
    (void)state, (void)message;
}

static void drop(struct postgres_link *link)
{
    if (link->connection != NULL) {
        exit_gate_enter();
        link->call.finish(link->connection);
        exit_gate_leave();
    }
    link->connection = NULL;
    link->prepared = false;
}

/* Waits until the connection can be read or written; returns false when the time is up. */
static bool wait_for(const struct postgres_link *link, short events, struct mono_time deadline)
{
    struct pollfd polled = {.fd = link->call.socket(link->connection), .events = events};

    while (mono_now().ns < deadline.ns) {
        int ready = mono_poll(&polled, 1, deadline);

        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
    return false;
}

static int unreachable(const struct postgres_link *link, const char *doing, const char *why,
                       struct fly_error *out_error)
{
    return error_set(out_error, FLY_EUNREACHABLE, "the store '%s' cannot be %s: %s; try again", link->shown,
                     doing, why);
}

static int refused(struct postgres_link *link, struct fly_error *out_error)
{
    char words[WORDS_MAX];
    const char *raw =
        link->connection == NULL ? "out of memory" : link->call.connection_error(link->connection);
    struct postgres_meaning meaning = postgres_connect_meaning(raw);

    return error_set(out_error, meaning.code, "the store '%s' cannot be reached: %s; %s", link->shown,
                     postgres_words(raw, words, sizeof words), meaning.remedy);
}

static int poll_connection(struct postgres_link *link, struct mono_time deadline, struct fly_error *out_error)
{
    int polled = PG_POLLING_WRITING;

    if (link->connection == NULL || link->call.status(link->connection) == PG_CONNECTION_BAD)
        return refused(link, out_error);
    while (polled != PG_POLLING_OK) {
        if (!wait_for(link, polled == PG_POLLING_READING ? POLLIN : POLLOUT, deadline))
            return error_set(
                out_error, FLY_EUNREACHABLE,
                "the store '%s' cannot be reached: no answer in time; see whether the server runs",
                link->shown);
        exit_gate_enter();
        polled = link->call.connect_poll(link->connection);
        exit_gate_leave();
        if (polled == PG_POLLING_FAILED)
            return refused(link, out_error);
    }
    return 0;
}

/* Sets what the session needs, and asks what must be known of the server. */
static int set_up(struct postgres_link *link, struct fly_error *out_error)
{
    static const char facts[] = "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
                                " current_setting('server_encoding')";
    char settings[400];
    int wait_ms = (int)(link->wait_s * 1e3) + 1, idle_s = IDLE_IN_CHANGE_MIN_S;
    struct postgres_question question = {.sql = facts};
    struct pg_result *result = NULL;
    bool synced, committed, utf8;
    int code = postgres_link_ask(link, &question, "opened", &result, out_error);

    if (code < 0)
        return code;
    synced = strcmp(link->call.value(result, 0, 0), "on") == 0;
    committed = strcmp(link->call.value(result, 0, 1), "off") != 0;
    utf8 = strcmp(link->call.value(result, 0, 2), "UTF8") == 0;
    link->call.clear(result);
    if (!synced)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "the store '%s' would lose what it acknowledged: its server runs with fsync = off; turn "
            "that on",
            link->shown);
    if (!utf8)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the store '%s' does not hold UTF-8; make its database with 'createdb -E UTF8 -T "
                         "template0'",
                         link->shown);
    if (idle_s < 2.0 * link->wait_s)
        idle_s = (int)(2.0 * link->wait_s);
    snprintf(
        settings, sizeof settings,
        "SET lock_timeout = %d; SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %d;"
        " SET client_min_messages = error%s",
        wait_ms, wait_ms + ANSWER_EXTRA_S * 500, idle_s * 1000,
        committed ? "" : "; SET synchronous_commit = on");
    question = (struct postgres_question){.sql = settings};
    return postgres_link_ask(link, &question, "opened", NULL, out_error);
}

static int connect_once(struct postgres_link *link, struct fly_error *out_error)
{
    static const char *const keywords[] = {"fallback_application_name",
                                           "keepalives_idle",
                                           "tcp_user_timeout",
                                           "target_session_attrs",
                                           "dbname",
                                           "client_encoding",
                                           NULL};
    const char *const values[] = {"flyball", "30", "30000", "read-write", link->uri, "UTF8", NULL};
    struct mono_time deadline = mono_after_s(mono_now(), link->wait_s + ANSWER_EXTRA_S);
    int code, version;

    exit_gate_enter();
    link->connection = link->call.connect_start(keywords, values, 1);
    exit_gate_leave();
    code = poll_connection(link, deadline, out_error);
    if (code == 0) {
        link->call.set_notices(link->connection, ignore_notice, NULL);
        version = link->call.server_version(link->connection);
        if (link->call.set_nonblocking(link->connection, 1) != 0)
            code = error_no_memory(out_error);
        else if (version < OLDEST_SERVER)
            code = error_set(out_error, FLY_EUNSUPPORTED,
                             "the store '%s' is kept by PostgreSQL %d; 12 or newer is needed", link->shown,
                             version / 10000);
        else
            code = set_up(link, out_error);
    }
    if (code < 0)
        drop(link);
    return code;
}

/* Connects again after the server went away: it may be restarting. */
static int reconnect(struct postgres_link *link, struct fly_error *out_error)
{
    struct mono_time deadline = mono_after_s(mono_now(), link->wait_s);
    int code;

    drop(link);
    for (;;) {
        code = connect_once(link, out_error);
        if (code != FLY_EUNREACHABLE || mono_elapsed_s(mono_now(), deadline) <= 0.0)
            return code;
        mono_sleep_s(1e-6 * RECONNECT_PAUSE_US);
    }
}

void postgres_bind_text(struct postgres_question *question, const char *text)
{
    question->values[question->count++] = text;
}

void postgres_bind_number(struct postgres_question *question, int64_t number)
{
    char *text = question->numbers[question->count];

    snprintf(text, POSTGRES_NUMBER_MAX, "%" PRId64, number);
    postgres_bind_text(question, text);
}

void postgres_bind_bytes(struct postgres_question *question, const void *bytes, size_t count)
{
    question->lengths[question->count] = (int)count;
    question->formats[question->count] = 1;
    postgres_bind_text(question, count == 0 ? "" : bytes);
}

/* What the client library does with the server, which may encrypt, happens behind the gate. */
static bool take_input(const struct postgres_link *link)
{
    bool taken;

    exit_gate_enter();
    taken = link->call.consume(link->connection) != 0;
    exit_gate_leave();
    return taken;
}

static struct pg_result *next_result(const struct postgres_link *link)
{
    struct pg_result *result;

    exit_gate_enter();
    result = link->call.next_result(link->connection);
    exit_gate_leave();
    return result;
}

static int flush(const struct postgres_link *link)
{
    int left;

    exit_gate_enter();
    left = link->call.flush(link->connection);
    exit_gate_leave();
    return left;
}

static bool begin_sending(const struct postgres_link *link, const struct postgres_question *question)
{
    bool begun;

    exit_gate_enter();
    if (question->count == 0 && !question->as_bytes)
        begun = link->call.send(link->connection, question->sql) == 1;
    else
        begun = link->call.send_with(link->connection, question->sql, question->count, NULL, question->values,
                                     question->lengths, question->formats, question->as_bytes ? 1 : 0) == 1;
    exit_gate_leave();
    return begun;
}

static bool send_question(const struct postgres_link *link, const struct postgres_question *question,
                          struct mono_time deadline)
{
    bool sent = begin_sending(link, question);

    while (sent) {
        int left = flush(link);

        if (left <= 0)
            return left == 0;
        if (!wait_for(link, POLLIN | POLLOUT, deadline) || !take_input(link))
            return false;
    }
    return false;
}

/* Returns the last result, or the first that failed; NULL when the time is up or memory is exhausted. */
static struct pg_result *collect(const struct postgres_link *link, struct mono_time deadline)
{
    struct pg_result *kept = NULL, *next;
    bool failed = false;

    for (;;) {
        while (link->call.is_busy(link->connection) != 0) {
            if (!wait_for(link, POLLIN, deadline)) {
                link->call.clear(kept);
                return NULL;
            }
            /* The next result shows this failure. */
            if (!take_input(link))
                break;
        }
        next = next_result(link);
        if (next == NULL)
            return kept;
        if (failed) {
            link->call.clear(next);
            continue;
        }
        link->call.clear(kept);
        kept = next;
        failed =
            link->call.result_status(kept) != PG_COMMAND_OK && link->call.result_status(kept) != PG_TUPLES_OK;
    }
}

static int statement_failed(struct postgres_link *link, const struct pg_result *result, const char *doing,
                            struct fly_error *out_error)
{
    char words[WORDS_MAX];
    const char *state = link->call.result_field(result, PG_FIELD_STATE);
    struct postgres_meaning meaning = postgres_state_meaning(state);

    if (state == NULL && link->call.status(link->connection) != PG_CONNECTION_BAD)
        meaning = (struct postgres_meaning){FLY_EINTERNAL, "please report it"};
    return error_set(out_error, meaning.code, "the store '%s' cannot be %s: %s%s%s; %s", link->shown, doing,
                     postgres_words(link->call.result_error(result), words, sizeof words),
                     state == NULL ? "" : " ", state == NULL ? "" : state, meaning.remedy);
}

int postgres_link_ask(struct postgres_link *link, const struct postgres_question *question, const char *doing,
                      struct pg_result **out_result, struct fly_error *out_error)
{
    struct mono_time deadline = mono_after_s(mono_now(), link->wait_s + ANSWER_EXTRA_S);
    struct pg_result *result;
    int status, code;

    if (link->connection == NULL)
        return unreachable(link, doing, "the connection to the server is lost", out_error);
    if (!send_question(link, question, deadline)) {
        drop(link);
        return unreachable(link, doing, "the connection to the server is lost", out_error);
    }
    result = collect(link, deadline);
    if (result == NULL) {
        drop(link);
        return unreachable(link, doing, "the server did not answer in time", out_error);
    }
    status = link->call.result_status(result);
    if (status == PG_COMMAND_OK || status == PG_TUPLES_OK) {
        if (out_result != NULL)
            *out_result = result;
        else
            link->call.clear(result);
        return 0;
    }
    code = statement_failed(link, result, doing, out_error);
    link->call.clear(result);
    if (code == FLY_EUNREACHABLE)
        drop(link);
    return code;
}

int postgres_link_ask_anew(struct postgres_link *link, const struct postgres_question *question,
                           const char *doing, struct pg_result **out_result, struct fly_error *out_error)
{
    int code = FLY_EUNREACHABLE;

    if (link->connection != NULL)
        code = postgres_link_ask(link, question, doing, out_result, out_error);
    if (code != FLY_EUNREACHABLE)
        return code;
    code = reconnect(link, out_error);
    return code < 0 ? code : postgres_link_ask(link, question, doing, out_result, out_error);
}

void postgres_link_undo(struct postgres_link *link)
{
    static const struct postgres_question question = {.sql = "ROLLBACK"};

    if (link->connection != NULL && postgres_link_ask(link, &question, "rolled back", NULL, NULL) < 0)
        drop(link);
}

int postgres_link_commit(struct postgres_link *link, const struct postgres_question *question,
                         struct fly_error *out_error)
{
    bool was_there = link->connection != NULL;
    struct pg_result *result;
    int code = postgres_link_ask(link, question, "written", &result, out_error);

    if (code == 0) {
        if (strcmp(link->call.command(result), "COMMIT") != 0)
            code = error_set(out_error, FLY_EWRITE,
                             "the store '%s' has undone the change; see the server's log", link->shown);
        link->call.clear(result);
        return code;
    }
    if (code == FLY_EUNREACHABLE && was_there)
        return error_set(
            out_error, FLY_EUNSURE,
            "the store '%s' was lost during a commit, so that it may have happened; look for its key "
            "in a new change before doing it again",
            link->shown);
    postgres_link_undo(link);
    return code;
}

int64_t postgres_number(const struct postgres_link *link, const struct pg_result *result, int row, int column)
{
    return strtoll(link->call.value(result, row, column), NULL, 10);
}

/* libpq's own message may repeat the address with its password, so it is not passed on. */
static int check_address(struct postgres_link *link, struct fly_error *out_error)
{
    char *why = NULL;
    struct pg_option *options = link->call.parse_address(link->uri, &why);

    link->call.free_memory(why);
    if (options == NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "the store's address has not the form 'postgresql://user:password@host:port/"
                         "database?option=value'; write special characters as %%40 for '@'");
    link->call.free_options(options);
    return 0;
}

int postgres_link_open(const char *uri, double wait_s, struct postgres_link **out_link,
                       struct fly_error *out_error)
{
    struct postgres_link *link = calloc(1, sizeof *link);
    int code;

    if (link == NULL)
        return error_no_memory(out_error);
    link->wait_s = wait_s > 1e6 ? 1e6 : wait_s;
    link->uri = strdup(uri);
    store_address_show(uri, link->shown);
    code = link->uri == NULL ? error_no_memory(out_error) : 0;
    if (code == 0)
        code = postgres_library_load(NULL, &link->call, out_error);
    if (code == 0)
        code = check_address(link, out_error);
    if (code == 0)
        code = connect_once(link, out_error);
    if (code < 0) {
        postgres_link_close(link);
        return code;
    }
    *out_link = link;
    return 0;
}

void postgres_link_close(struct postgres_link *link)
{
    drop(link);
    postgres_link_abandon(link);
}

void postgres_link_abandon(struct postgres_link *link)
{
    free(link->uri);
    free(link);
}
