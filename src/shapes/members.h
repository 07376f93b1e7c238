/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_MEMBERS_H
#define FLYBALL_SHAPES_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/*
 * The members of a JSON object, read one after the other and checked once:
 *
 *     struct members members = members_of(json);
 *     epochs = members_u64(&members, "epochs", 1, 1000);
 *     metric = members_number_or_null(&members, "metric", NAN);
 *     if (members.wrong != NULL)
 *         ... "member 'epochs': expected a whole number"
 *
 * The first member that is missing or does not fit stays in `wrong` with what was
 * `expected` there; what is read from then on is zero, false or "". Optional members
 * are asked for with members_has first.
 */
struct members {
    json_t *object;       /* borrowed, and left alone */
    const char *wrong;    /* borrowed: the name that was asked for */
    const char *expected; /* static */
};

struct members members_of(json_t *json); /* not an object: wrong is "" */

/* Present and not null. */
bool members_has(const struct members *members, const char *name);

uint64_t members_u64(struct members *members, const char *name, uint64_t minimum, uint64_t maximum);
int64_t members_time_us(struct members *members, const char *name);
double members_number(struct members *members, const char *name); /* finite */
double members_number_or_null(struct members *members, const char *name, double of_null);
bool members_bool(struct members *members, const char *name);

/* Borrowed from the object, at most `maximum` bytes. */
const char *members_text(struct members *members, const char *name, size_t maximum);

/* The index of the text in `words`, of `count`. */
size_t members_word(struct members *members, const char *name, const char *const *words, size_t count);

/* An array of at most `maximum` entries. Borrowed; NULL when it is wrong. */
const json_t *members_array(struct members *members, const char *name, size_t maximum);

/* An object in it. */
struct members members_inside(struct members *members, const char *name);

/* Marks a member as wrong, unless one is already. */
void members_refuse(struct members *members, const char *name, const char *expected);

/* The first member that is not in `names` (ended by NULL), or NULL. */
const char *members_unknown(const struct members *members, const char *const *names);

#endif
