/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_LIBRARY_H
#define FLYBALL_STORE_POSTGRES_LIBRARY_H

#include <flyball/error.h>

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

#endif
