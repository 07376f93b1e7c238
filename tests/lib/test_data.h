/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_TEST_DATA_H
#define FLYBALL_TESTS_LIB_TEST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Recorded data that is not part of the project, in the directory that the variable FLYBALL_TEST_DATA names.
 * A test that needs it is skipped without it.
 */
enum { TEST_PATH_MAX = 4096 };

/* Writes the path of `name` there to `path`; returns false, and prints why, when it is missing. */
bool test_data_path(const char *name, char path[TEST_PATH_MAX]);

/* Skips the running cmocka test when `name` is missing. */
void test_data_need(const char *name, char path[TEST_PATH_MAX]);

/* Opens a file for reading, through xz if its name ends so; close it with pclose. */
FILE *test_data_open(const char *path);

/* Splits a line at its commas in place, into at most `maximum` fields; returns how many. */
size_t test_data_split(char *line, char **fields, size_t maximum);

#endif
