/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_WORDS_H
#define FLYBALL_STORE_POSTGRES_WORDS_H

#include <stddef.h>

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

#endif
