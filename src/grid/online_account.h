/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ACCOUNT_H
#define FLYBALL_GRID_ONLINE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "grid/online.h"

/*
 * The address of a service and the key for it: from the environment and from the file that a
 * variable names, never from arguments. The secrets here go only into headers.
 */
enum { ACCOUNT_BASE_MAX = 256, ACCOUNT_KEY_MAX = 1024, ACCOUNT_TOKEN_MAX = 4096, ACCOUNT_HEADER_MAX = 64 };

struct online_account {
    char base[ACCOUNT_BASE_MAX]; /* without a '/' at its end */
    bool within_machine;         /* reached over loopback */
    double timeout_s;
    const atomic_bool *abandon;          /* from the request; NULL: never */
    char key_header[ACCOUNT_HEADER_MAX]; /* the header for the key; "": no key is sent */
    char user[ACCOUNT_KEY_MAX];
    char key[ACCOUNT_KEY_MAX];     /* or the password */
    char token[ACCOUNT_TOKEN_MAX]; /* from a login; "": not logged in yet */
};

/* Finds the address, the time-out and the key's header. FLY_ECONFIG. */
int online_account_find(const struct online_provider *provider, struct online_account *out_account,
                        struct fly_error *out_error);

/* Finds the key, if one is needed. FLY_ECONFIG, FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD for its file. */
int online_account_unlock(const struct online_provider *provider, struct online_account *account,
                          struct fly_error *out_error);

#endif
