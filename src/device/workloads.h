/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_WORKLOADS_H
#define FLYBALL_DEVICE_WORKLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Workload power profiles: a driver's names for kinds of work, for which a board trades speed for
 * power. A board offers some; programs request any set of them; the driver enforces those that do
 * not conflict with one of higher priority. NVIDIA's boards have them since Blackwell.
 *
 * A profile is a number below WORKLOADS_MAX. Some have names, those of NVML: 1 is MAX_Q. Others are
 * written as numbers.
 */
enum { WORKLOADS_MAX = 255, WORKLOAD_WORDS = 8 };

/* A set of profiles; zeroed: none. Bit N of word W is profile 32 W + N, as in NVML's masks. */
struct workload_set {
    uint32_t words[WORKLOAD_WORDS];
};

/* What a device offers, what programs requested, and what holds of that. */
struct workloads {
    struct workload_set supported, requested, enforced;
};

bool workload_has(const struct workload_set *set, unsigned id);
void workload_add(struct workload_set *set, unsigned id);
bool workload_is_empty(const struct workload_set *set);
bool workload_equals(const struct workload_set *one, const struct workload_set *other);
/* Returns whether the first set is part of the second. */
bool workload_is_within(const struct workload_set *part, const struct workload_set *whole);
struct workload_set workload_without(const struct workload_set *set, const struct workload_set *taken);
struct workload_set workload_union(const struct workload_set *one, const struct workload_set *other);
struct workload_set workload_common(const struct workload_set *one, const struct workload_set *other);

/* Writes a profile's name, or its number if it has none. */
enum { WORKLOAD_NAME_MAX = 16 };
char *workload_name(unsigned id, char text[WORKLOAD_NAME_MAX]);

/*
 * Write names in the order of their numbers, "MAX_Q,LLM_TRAINING"; for an empty set workload_text writes
 * "none", and workload_list nothing.
 */
enum { WORKLOAD_TEXT_MAX = 1088 };
char *workload_text(const struct workload_set *set, char text[WORKLOAD_TEXT_MAX]);
char *workload_list(const struct workload_set *set, char text[WORKLOAD_TEXT_MAX]);

/*
 * Reads such a list: names in any case, or numbers, with or without blanks after commas; "none" for an
 * empty set. False, with the out-parameter untouched, for anything else.
 */
bool workload_parse(const char *text, struct workload_set *out_set);

/* Write a set as a hexadecimal number, bit N of which is profile N, "0" for none; and read one. */
enum { WORKLOAD_HEX_MAX = 8 * WORKLOAD_WORDS + 1 };
char *workload_hex(const struct workload_set *set, char text[WORKLOAD_HEX_MAX]);
bool workload_parse_hex(const char *text, struct workload_set *out_set);

#endif
