/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ACCOUNT_H
#define FLYBALL_GRID_ONLINE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "grid/online.h"

/*
 * Where a service is, and by which key it is asked: from the environment and from the file
 * that a variable names, never from arguments. What is secret here goes into headers alone.
 */
enum { ACCOUNT_BASE_MAX = 256, ACCOUNT_KEY_MAX = 1024, ACCOUNT_TOKEN_MAX = 4096, ACCOUNT_HEADER_MAX = 64 };

struct online_account {
    char base[ACCOUNT_BASE_MAX]; /* without a '/' at its end */
    bool within_machine;         /* over loopback */
    double timeout_s;
    const atomic_bool *abandon;          /* of the request; NULL */
    char key_header[ACCOUNT_HEADER_MAX]; /* in which the key is sent; "": it is not */
    char user[ACCOUNT_KEY_MAX];
    char key[ACCOUNT_KEY_MAX];     /* or the password */
    char token[ACCOUNT_TOKEN_MAX]; /* of a login; "": there was none yet */
};

/* The address, the time-out and the key's header. FLY_ECONFIG. */
int online_account_find(const struct online_provider *provider, struct online_account *out_account,
                        struct fly_error *out_error);

/* The key, where one is needed. FLY_ECONFIG, FLY_ENOTFOUND, FLY_EPERM, FLY_EREAD for its file. */
int online_account_unlock(const struct online_provider *provider, struct online_account *account,
                          struct fly_error *out_error);

#endif
