/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_TOML_H
#define FLYBALL_BASE_TEXT_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * Reads a strict subset of TOML 1.0 (toml.io), for which Debian has no C library:
 *
 *     # a comment
 *     [set_power_limit]
 *     commands = ["sudo nvidia-smi -i {gpu_id} -pl {power_limit_w}", 'another']
 *     error_pattern = "(?i)failed"
 *     timeout_s = 30
 *
 * Tables with unique names, and keys with unique names in their table; strings of all four kinds,
 * decimal integers, booleans, and arrays of strings over several lines. Everything else in TOML
 * (dotted keys, tables within tables, fractions, dates) is refused with its line. The text must
 * be UTF-8 without control characters.
 */
enum toml_kind { TOML_STRING, TOML_INTEGER, TOML_BOOLEAN, TOML_STRINGS };

enum { TOML_ITEMS_MAX = 16, TOML_KEYS_MAX = 64 };

struct toml_value {
    enum toml_kind kind;
    char *text;                  /* of a STRING */
    int64_t integer;             /* of an INTEGER, or of a BOOLEAN as 0 or 1 */
    size_t count;                /* number of items of STRINGS */
    char *items[TOML_ITEMS_MAX]; /* parts of the text that was read; may be written to up to their ends */
};

struct toml_place {
    const char *file;
    size_t line;
};

/* Called for each table (`key` and `value` NULL) and for each key in it; a negative code ends the reading. */
struct toml_taker {
    int (*take)(void *data, const struct toml_place *place, const char *table, const char *key,
                struct toml_value *value, struct fly_error *out_error);
    void *data;
};

/*
 * Reads a whole text, which it changes and whose parts it hands out; `file` is for errors.
 * FLY_ECONFIG with file, line and what is wrong, or the code that the taker returns.
 */
int toml_read(const char *file, char *text, const struct toml_taker *taker, struct fly_error *out_error);

#endif
