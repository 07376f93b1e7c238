/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_library.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/shared_object.h"
#include "base/thread/exit_gate.h"

/* OPENSSL_INIT_LOAD_CRYPTO_STRINGS and OPENSSL_INIT_NO_ATEXIT of its headers. */
static const uint64_t load_crypto_strings = 0x2, no_atexit = 0x80000;

static const char library_name[] = "libpq.so.5";

#define CALL_ROW(slot, symbol, result, parameters) {offsetof(struct postgres_calls, slot), #symbol},
static const struct call_row {
    size_t offset; /* of the slot */
    const char *symbol;
} call_rows[] = {POSTGRES_CALLS(CALL_ROW)};
#undef CALL_ROW

static int find_calls(const struct shared_object *object, const char *name, struct postgres_calls *out_calls,
                      struct fly_error *out_error)
{
    for (size_t i = 0; i < sizeof call_rows / sizeof call_rows[0]; i++) {
        const void *found = shared_object_find(object, call_rows[i].symbol);

        if (found == NULL)
            return error_set(out_error, FLY_EUNSUPPORTED,
                             "the library '%.200s' lacks the function '%s'; it is no client library of "
                             "PostgreSQL, or one too old: install version 12 or newer",
                             name, call_rows[i].symbol);
        memcpy((char *)out_calls + call_rows[i].offset, &found, sizeof found);
    }
    return 0;
}

/*
 * OpenSSL, where the library has it, cleans up at the program's exit, under threads that work in it. If
 * nobody has used it before, it is told not to; else it registered for the exit earlier than the gate, which
 * then shuts first.
 */
static void begin_openssl(const struct shared_object *object)
{
    const void *found = shared_object_find(object, "OPENSSL_init_crypto");
    int (*init_crypto)(uint64_t options, const void *settings);

    if (found == NULL)
        return;
    memcpy(&init_crypto, &found, sizeof found);
    (void)init_crypto(load_crypto_strings | no_atexit, NULL);
}

static int load(const char *path, struct postgres_calls *out_calls, struct fly_error *out_error)
{
    struct shared_object object;
    struct postgres_calls calls;
    struct fly_error why = {0};
    int code = path != NULL ? shared_object_open(path, &object, &why)
                            : shared_object_open_library(library_name, &object, &why);

    if (code < 0)
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "no client library of PostgreSQL: %.300s; install it (Debian: 'apt-get install libpq5'), "
            "or name a file as the store",
            why.text);
    code = find_calls(&object, path != NULL ? path : library_name, &calls, out_error);
    if (code < 0) {
        shared_object_close(&object);
        return code;
    }
    begin_openssl(&object);
    *out_calls = calls;
    return 0;
}

/* Left open, because it registers functions for the program's exit, which must stay in memory. */
int postgres_library_load(const char *path, struct postgres_calls *out_calls, struct fly_error *out_error)
{
    int code;

    exit_gate_install();
    exit_gate_enter();
    code = load(path, out_calls, out_error);
    exit_gate_leave();
    return code;
}
