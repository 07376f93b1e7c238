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
 * One connection to a store's server: made, watched, made anew when it broke; what is
 * asked over it, with a time limit of our own beside the server's, for a server that
 * has stopped answers nothing at all; and what its failures mean.
 */
struct postgres_link {
    struct postgres_calls call;
    struct pg_conn *connection; /* NULL: broken, to be made anew */
    char *uri;                  /* owned */
    char shown[STORE_SHOWN_MAX];
    double wait_s;
    struct postgres_group *group; /* changes that share a transaction; owned by who opened it; NULL: none */
    bool prepared;                /* this connection knows a group's statements */
};

/* Connects, and checks that the server can keep a store. `out_link` is owned. */
int postgres_link_open(const char *uri, double wait_s, struct postgres_link **out_link,
                       struct fly_error *out_error);
void postgres_link_close(struct postgres_link *link);

/* In a forked child: frees its memory, and leaves the connection to the parent. */
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
    bool as_bytes; /* the answer's values in binary form */
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
 * Asks within a transaction: a connection that breaks is an error, FLY_EUNREACHABLE.
 * The result is to be cleared by the caller; `out_result` may be NULL. `doing` stands
 * in the error ("read").
 */
int postgres_link_ask(struct postgres_link *link, const struct postgres_question *question, const char *doing,
                      struct pg_result **out_result, struct fly_error *out_error);

/* Asks outside of one what can be asked twice: makes a broken connection anew first, or once. */
int postgres_link_ask_anew(struct postgres_link *link, const struct postgres_question *question,
                           const char *doing, struct pg_result **out_result, struct fly_error *out_error);

/* Undoes an open transaction; where that fails, the connection is given up. */
void postgres_link_undo(struct postgres_link *link);

/*
 * Asks what ends with COMMIT. Lost before that was asked for, the change is nowhere; lost after that, nobody
 * knows: FLY_EUNSURE. FLY_EWRITE where the server undid it. After any other error it is undone.
 */
int postgres_link_commit(struct postgres_link *link, const struct postgres_question *question,
                         struct fly_error *out_error);

/* A value of a result as a number; 0 where it is none. */
int64_t postgres_number(const struct postgres_link *link, const struct pg_result *result, int row,
                        int column);

#endif
