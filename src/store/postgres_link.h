/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_LINK_H
#define FLYBALL_STORE_POSTGRES_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/clock.h"
#include "store/postgres_library.h"
#include "store/store_address.h"

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
