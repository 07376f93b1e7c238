/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_SHAPES_SHAPE_KINDS_H
#define FLYBALL_TESTS_SHAPES_SHAPE_KINDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes/shape_rows.h"

enum { KINDS_PAIRS = 3 };

/* ---- a struct with a member of each kind that the structs of jobs lack ---- */

struct pair {
    uint32_t limit_w;
    double time_s;
};

static const struct shape_field pair_rows[] = {
    {SHAPE_AT(pair, limit_w), SHAPE_IS_U32(1, 1000), .about = "of a GPU"},
    {SHAPE_AT(pair, time_s), SHAPE_IS_NUMBER(SHAPE_FROM_0), .null = SHAPE_UNKNOWN, .about = "of an epoch"},
};
static const struct shape shape_pair = {
    .name = "Pair", .about = "A limit and its time", SHAPE_OF(pair, pair_rows), .as_list = true};

static bool read_hex(const char *text, void *out_value)
{
    char *end;
    uint64_t value = strtoull(text, &end, 16);

    memcpy(out_value, &value, sizeof value);
    return text[0] == '0' && *end == '\0';
}

static void write_hex(const void *value, char text[SHAPE_CODED_MAX])
{
    snprintf(text, SHAPE_CODED_MAX, "0%llx", (unsigned long long)*(const uint64_t *)value);
}

static const struct shape_coding hex = {
    .expected = "hexadecimal digits", .size = sizeof(uint64_t), .read = read_hex, .write = write_hex};

struct kinds {
    size_t index;
    uint32_t from;
    double mean;
    json_t *any, *object;
    uint64_t digits;
    bool numbered;
    struct pair best;
    struct pair pairs[KINDS_PAIRS];
    size_t pair_count;
    const char *host;
};

static const struct shape_field kinds_rows[] = {
    {SHAPE_AT(kinds, index), SHAPE_IS_SIZE(99), .about = "of a line"},
    {SHAPE_AT(kinds, from), SHAPE_IS_U32(0, UINT32_MAX), .null = SHAPE_ZERO, .about = "null: all fit"},
    {SHAPE_AT(kinds, mean), SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_NOT_FINITE, .about = "null: none"},
    {SHAPE_AT(kinds, any), .kind = SHAPE_JSON, .about = "anything"},
    {SHAPE_AT(kinds, object), .kind = SHAPE_JSON_OBJECT, .about = "any object"},
    {SHAPE_AT(kinds, digits), .kind = SHAPE_CODED, .coding = &hex, SHAPE_IF(kinds, numbered),
     .null = SHAPE_AS_MISSING, .about = "beyond what JSON has whole numbers for"},
    {SHAPE_AT(kinds, best), SHAPE_IS_STRUCT(&shape_pair), .about = "one list"},
    {SHAPE_AT(kinds, pairs), SHAPE_IS_STRUCTS_HERE(&shape_pair, kinds, pairs, pair_count), .about = "lists"},
    {SHAPE_AT(kinds, host), SHAPE_IS_TEXT(20), .need = SHAPE_SPARING, .null = SHAPE_AS_MISSING,
     .about = "where it is"},
};
static const struct shape shape_kinds = {
    .name = "Kinds", .about = "A member of each kind", SHAPE_OF(kinds, kinds_rows)};

#endif
