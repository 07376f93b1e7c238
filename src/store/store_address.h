/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_ADDRESS_H
#define FLYBALL_STORE_STORE_ADDRESS_H

#include <flyball/error.h>

/* Parses the text of an address; nothing is looked up. Pure; thread-safe. */

enum store_place {
    STORE_IN_FILE,
    STORE_ON_SERVER,
};

enum { STORE_ADDRESS_MAX = 4000, STORE_SHOWN_MAX = 256 };

struct store_address {
    enum store_place place;
    const char *text; /* a path, or a text for libpq; borrowed; NULL: the user's own file */
};

/*
 * Reads an address; store_open lists the forms. FLY_EUSAGE for an unknown scheme, with the
 * nearest known one or the place where it belongs; for the path of a directory; for a list of
 * key=value words; and for a server's address in which it is not clear where the password ends.
 * FLY_ELIMIT for an address that is too long. No error text repeats an address with a scheme or
 * such words, because it may hold a password.
 */
int store_address_parse(const char *text, struct store_address *out_address, struct fly_error *out_error);

/*
 * Writes a server's address for people, "postgresql://host:5432/database". It leaves out what is
 * before the last '@' and from the '?' on, and everything if it is not clear which is which. Cuts
 * longer addresses.
 */
void store_address_show(const char *uri, char out_shown[STORE_SHOWN_MAX]);

/*
 * Writes an address as given, with "***" for each field that holds a password or a token: of the
 * user of a URL, of its options, and of a list of key=value words. Everything after "://" becomes
 * "..." if it is not clear which is which. Other text stays, paths too. Cuts longer addresses.
 */
void store_address_mask(const char *text, char out_masked[STORE_ADDRESS_MAX + 1]);

#endif
