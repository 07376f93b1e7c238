/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_LINK_H
#define FLYBALL_STORE_POSTGRES_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/clock.h"
#include "store/store_address.h"

/*
 * PostgreSQL's client library. It is loaded when a store on a server is opened, so that nothing
 * else needs it. Names and numbers are those of its documentation; its binary interface has been
 * stable since version 8.
 *
 *     X(slot, symbol, result, parameters)
 */
struct pg_conn;
struct pg_result;

/* The layout that PQconninfoParse uses. */
struct pg_option {
    char *keyword, *variable, *compiled, *value, *label, *display;
    int display_bytes;
};

typedef void pg_notice(void *state, const char *message);

#define POSTGRES_CALLS(X)                                                                              \
    X(connect_start, PQconnectStartParams, struct pg_conn *,                                           \
      (const char *const *keywords, const char *const *values, int expand))                            \
    X(connect_poll, PQconnectPoll, int, (struct pg_conn *))                                            \
    X(finish, PQfinish, void, (struct pg_conn *))                                                      \
    X(status, PQstatus, int, (const struct pg_conn *))                                                 \
    X(socket, PQsocket, int, (const struct pg_conn *))                                                 \
    X(server_version, PQserverVersion, int, (const struct pg_conn *))                                  \
    X(connection_error, PQerrorMessage, char *, (const struct pg_conn *))                              \
    X(set_nonblocking, PQsetnonblocking, int, (struct pg_conn *, int on))                              \
    X(set_notices, PQsetNoticeProcessor, pg_notice *, (struct pg_conn *, pg_notice *, void *state))    \
    X(send, PQsendQuery, int, (struct pg_conn *, const char *sql))                                     \
    X(send_with, PQsendQueryParams, int,                                                               \
      (struct pg_conn *, const char *sql, int count, const unsigned *types, const char *const *values, \
       const int *lengths, const int *formats, int result_format))                                     \
    X(flush, PQflush, int, (struct pg_conn *))                                                         \
    X(consume, PQconsumeInput, int, (struct pg_conn *))                                                \
    X(is_busy, PQisBusy, int, (struct pg_conn *))                                                      \
    X(next_result, PQgetResult, struct pg_result *, (struct pg_conn *))                                \
    X(result_status, PQresultStatus, int, (const struct pg_result *))                                  \
    X(result_field, PQresultErrorField, char *, (const struct pg_result *, int field))                 \
    X(result_error, PQresultErrorMessage, char *, (const struct pg_result *))                          \
    X(command, PQcmdStatus, char *, (struct pg_result *))                                              \
    X(rows_changed, PQcmdTuples, char *, (struct pg_result *))                                         \
    X(row_count, PQntuples, int, (const struct pg_result *))                                           \
    X(value, PQgetvalue, char *, (const struct pg_result *, int row, int column))                      \
    X(value_bytes, PQgetlength, int, (const struct pg_result *, int row, int column))                  \
    X(clear, PQclear, void, (struct pg_result *))                                                      \
    X(parse_address, PQconninfoParse, struct pg_option *, (const char *text, char **out_error))        \
    X(free_options, PQconninfoFree, void, (struct pg_option *))                                        \
    X(free_memory, PQfreemem, void, (void *))

enum pg_connection_status { PG_CONNECTION_OK = 0, PG_CONNECTION_BAD = 1 };
enum pg_polling { PG_POLLING_FAILED = 0, PG_POLLING_READING = 1, PG_POLLING_WRITING = 2, PG_POLLING_OK = 3 };
enum pg_result_status { PG_COMMAND_OK = 1, PG_TUPLES_OK = 2 };
enum { PG_FIELD_STATE = 'C' }; /* field of an error that holds the SQLSTATE */

#define POSTGRES_CALL_SLOT(slot, symbol, result, parameters) result(*slot) parameters;
struct postgres_calls {
    POSTGRES_CALLS(POSTGRES_CALL_SLOT)
};
#undef POSTGRES_CALL_SLOT

/*
 * Gives the library's functions: from the file at `path`, or from the installed library (NULL),
 * which then stays loaded. FLY_EUNSUPPORTED if it is missing or lacks a function; the error says
 * what to install. Thread-safe.
 */
int postgres_library_load(const char *path, struct postgres_calls *out_calls, struct fly_error *out_error);

/* Translates messages of a server and its client library. Pure; thread-safe. */

/* What a failure means: an error code of Flyball, and the next step. */
struct postgres_meaning {
    int code;
    const char *remedy;
};

/*
 * Returns the meaning of a failed statement by its SQLSTATE of five characters; "" or NULL: the
 * connection broke.
 */
struct postgres_meaning postgres_state_meaning(const char *state);

/* Returns the meaning of a failed connection, for which there is only a text in the server's language. */
struct postgres_meaning postgres_connect_meaning(const char *text);

/*
 * Writes a message on one line, without its severity, into `out` of `size` bytes. Returns `out`.
 * No field of an address that libpq repeats in its messages holds a password: store_address_parse
 * refuses addresses in which a password could be taken for a host.
 */
char *postgres_words(const char *message, char *out, size_t size);

/*
 * One connection to a store's server. This code makes it, watches it, and makes it again when it
 * broke. It asks over it, with a time limit of its own besides the server's, since a stopped
 * server answers nothing at all. It says what failures mean.
 */
struct postgres_link {
    struct postgres_calls call;
    struct pg_conn *connection; /* NULL: broken, has to be made again */
    char *uri;                  /* owned */
    char shown[STORE_SHOWN_MAX];
    double wait_s;
    struct postgres_group *group; /* changes that share a transaction; owned by its opener; NULL: none */
    bool prepared;                /* this connection has a group's prepared statements */
};

/* Connects, and checks that the server can keep a store. `out_link` is owned. */
int postgres_link_open(const char *uri, double wait_s, struct postgres_link **out_link,
                       struct fly_error *out_error);
void postgres_link_close(struct postgres_link *link);

/* In a forked child: frees the link's memory, and leaves the connection to the parent. */
void postgres_link_abandon(struct postgres_link *link);

/*
 * A statement with its parameters, as text unless a length is given: then as bytes.
 *
 *     struct postgres_question question = {.sql = "SELECT $1::bigint"};
 *     postgres_bind_number(&question, 7);
 */
enum { POSTGRES_PARAMETERS_MAX = 8, POSTGRES_NUMBER_MAX = 24 };

struct postgres_question {
    const char *sql;
    bool as_bytes; /* ask for the answer's values in binary form */
    int count;
    const char *values[POSTGRES_PARAMETERS_MAX];
    int lengths[POSTGRES_PARAMETERS_MAX];
    int formats[POSTGRES_PARAMETERS_MAX];
    char numbers[POSTGRES_PARAMETERS_MAX][POSTGRES_NUMBER_MAX];
};

void postgres_bind_number(struct postgres_question *question, int64_t number);
void postgres_bind_text(struct postgres_question *question, const char *text);
void postgres_bind_bytes(struct postgres_question *question, const void *bytes, size_t count);

/*
 * Asks within a transaction: a connection that breaks is an error, FLY_EUNREACHABLE. The caller
 * clears the result; `out_result` may be NULL. `doing` is a word for the error text ("read").
 */
int postgres_link_ask(struct postgres_link *link, const struct postgres_question *question, const char *doing,
                      struct pg_result **out_result, struct fly_error *out_error);

/*
 * Asks outside of a transaction, and only what may be asked twice: if the connection was or gets
 * broken, it makes it again, once, and asks again.
 */
int postgres_link_ask_anew(struct postgres_link *link, const struct postgres_question *question,
                           const char *doing, struct pg_result **out_result, struct fly_error *out_error);

/* Undoes an open transaction; if that fails, drops the connection. */
void postgres_link_undo(struct postgres_link *link);

/*
 * Asks a question that ends with COMMIT. If the connection is lost before COMMIT was sent, the
 * change is not in the store; if it is lost after that, nobody knows: FLY_EUNSURE. FLY_EWRITE if
 * the server undid the change. After any other error it is undone.
 */
int postgres_link_commit(struct postgres_link *link, const struct postgres_question *question,
                         struct fly_error *out_error);

/* Returns a value of a result as a number; 0 if it is not one. */
int64_t postgres_number(const struct postgres_link *link, const struct pg_result *result, int row,
                        int column);

#endif
