/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_TEST_H
#define FLYBALL_TESTS_LIB_TEST_H

/* Includes what cmocka needs before it, cmocka itself, and a few checks that print both sides. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* |a - b| within `relative` of |b|; equal infinities pass, NaN never does. */
#define check_close(a, b, relative) check_close_at(a, b, relative, #a, __FILE__, __LINE__)
#define check_double(a, b) check_close_at(a, b, 0.0, #a, __FILE__, __LINE__)

static inline void check_close_at(double a, double b, double relative, const char *what, const char *file,
                                  int line)
{
    if (a == b || fabs(a - b) <= relative * fabs(b))
        return;
    print_error("%s:%d: %s is %.17g, expected %.17g\n", file, line, what, a, b);
    _fail(file, line);
}

/* The same, but NaN (not known) must be on both sides or on none. */
#define check_same(a, b, relative) check_same_at(a, b, relative, #a, __FILE__, __LINE__)

static inline void check_same_at(double a, double b, double relative, const char *what, const char *file,
                                 int line)
{
    if (!isnan(a) || !isnan(b))
        check_close_at(a, b, relative, what, file, line);
}

/* Whether `text` contains `part`. */
#define check_contains(text, part) check_contains_at(text, part, __FILE__, __LINE__)

static inline void check_contains_at(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part) != NULL)
        return;
    print_error("%s:%d: '%s' does not contain '%s'\n", file, line, text, part);
    _fail(file, line);
}

/* A small generator for property tests: the same numbers in every run. */
static inline double test_uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static inline uint32_t test_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(test_uniform(state) * bound);
}

#endif
