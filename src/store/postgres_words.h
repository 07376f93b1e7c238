/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_POSTGRES_WORDS_H
#define FLYBALL_STORE_POSTGRES_WORDS_H

#include <stddef.h>

/* What a server and its client library say, in our words. Pure; thread-safe. */

/* What a failure means: one of our codes, and the next step. */
struct postgres_meaning {
    int code;
    const char *remedy;
};

/* Of a failed statement, by its SQLSTATE of five characters; "" or NULL: the connection broke. */
struct postgres_meaning postgres_state_meaning(const char *state);

/* Of a failed connection, for which there is only the text, in the server's language. */
struct postgres_meaning postgres_connect_meaning(const char *text);

/*
 * A message on one line, without the severity in front, into `out` of `size` bytes. Returns
 * `out`. No field of an address that libpq names in its messages holds a password:
 * store_address_parse refuses those in which one could be taken for a host.
 */
char *postgres_words(const char *message, char *out, size_t size);

#endif
