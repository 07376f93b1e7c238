/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_OWN_DIRECTORY_H
#define FLYBALL_TESTS_LIB_OWN_DIRECTORY_H

#include <stdbool.h>

/*
 * A new directory for a test, "…/flyball-NAME-XXXXXX". It lies in memory where the machine allows that: a
 * disk that others keep busy takes seconds for a file. False where none can be made.
 */
enum { OWN_DIRECTORY_MAX = 64 };
bool own_directory_make(const char *name, char out_path[OWN_DIRECTORY_MAX]);

/* Removes a directory with all that is in it. */
bool own_directory_remove(const char *path);

#endif
