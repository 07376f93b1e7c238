/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_NVML_OPENED_H
#define FLYBALL_TESTS_NVML_OPENED_H

#include "device/backend.h"
#include "nvml/standin.h"

/* A stand-in driver library, the struct that decides what it says, and what the back end made of it. */
struct opened {
    char path[256];
    void *object;
    struct standin *standin;
    struct device_list list;
    struct fly_error error; /* of the last opening */
};

/* Where the built library of that name is. */
void opened_path(const char *name, char path[256]);

/*
 * Loads "new" or "old" with nothing changed; what a test changes before
 * `opened_gpus` holds while devices are opened. Fails the test itself.
 */
struct opened *opened_load(const char *name);

/* Opens the back end on it. */
int opened_gpus(struct opened *opened);

/* Closes all, and checks that as often as it was initialised it was shut down. */
void opened_close(struct opened *opened);

/* Calls of the library so far. */
unsigned opened_calls(const struct opened *opened);

#endif
