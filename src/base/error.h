/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ERROR_H
#define FLYBALL_BASE_ERROR_H

#include <stdarg.h>

#include <flyball/error.h>

/*
 * Fills `out_error` (may be NULL) and returns `code`, so that a failing
 * function ends with
 *
 *     return error_set(out_error, FLY_EDATA, "%s:%zu: ...", path, line);
 */
__attribute__((format(printf, 3, 4))) int error_set(struct fly_error *out_error, int code, const char *format,
                                                    ...);

/* Does the same for memory that could not be allocated: FLY_ENOMEM. */
static inline int error_no_memory(struct fly_error *out_error)
{
    error_set(out_error, FLY_ENOMEM, "out of memory; free some, or ask for fewer seeds, threads or rows");
    return FLY_ENOMEM;
}

#endif
