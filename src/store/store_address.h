/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_ADDRESS_H
#define FLYBALL_STORE_STORE_ADDRESS_H

#include <flyball/error.h>

/* What an address asks for, as text alone: nothing is looked up. Pure; thread-safe. */

enum store_place {
    STORE_IN_FILE,
    STORE_ON_SERVER,
};

enum { STORE_ADDRESS_MAX = 4000, STORE_SHOWN_MAX = 256 };

struct store_address {
    enum store_place place;
    const char *text; /* a path, or what libpq reads; borrowed; NULL: the user's own file */
};

/*
 * Reads an address; see store_open for what there is. FLY_EUSAGE for a scheme that
 * is not ours, with the nearest that is or where it belongs, for the path of a
 * directory, for a list of key=value words, and for a server's address in which it is not clear where the
 * password ends; FLY_ELIMIT for one that is too long. No error text repeats an address
 * with a scheme or such words, for it may hold a password.
 */
int store_address_parse(const char *text, struct store_address *out_address, struct fly_error *out_error);

/*
 * A server's address for people, "postgresql://host:5432/database": what stands
 * before the last '@' and from the '?' on is left out, and all of it where it is not
 * clear which is which. Longer ones are cut.
 */
void store_address_show(const char *uri, char out_shown[STORE_SHOWN_MAX]);

/*
 * An address as it was written, with "***" for each field that holds a password or a token: of the user of a
 * URL, of its options, and of a list of key=value words; all behind "://" is "..." where it is not clear
 * which is which. Other text stays, paths too. Longer ones are cut.
 */
void store_address_mask(const char *text, char out_masked[STORE_ADDRESS_MAX + 1]);

#endif
