/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A static libjansson is often compiled for programs alone: it takes the address of stdin relative to its own
 * code, which a shared library must not do with a variable of the C library's. The linker's --wrap=stdin
 * leads it to this copy, which has the same value.
 */
#include <stdio.h>

/* NOLINTBEGIN(cert-dcl37-c,cert-dcl51-cpp,bugprone-reserved-identifier): the linker's names */
extern FILE *__real_stdin;
extern FILE *__wrap_stdin;
FILE *__wrap_stdin;
/* NOLINTEND(cert-dcl37-c,cert-dcl51-cpp,bugprone-reserved-identifier) */

__attribute__((constructor)) static void take(void)
{
    __wrap_stdin = __real_stdin;
}
