/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_TEST_DATA_H
#define FLYBALL_TESTS_TEST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Recorded data that is not part of the project: under the directory that the
 * variable FLYBALL_TEST_DATA names. A test that needs it skips without it.
 */
enum { TEST_PATH_MAX = 4096 };

/* The path of `name` there, into `path`; false (with a word on stdout) when it is absent. */
bool test_data_path(const char *name, char path[TEST_PATH_MAX]);

/* Skips the running cmocka test unless `name` is there. */
void test_data_need(const char *name, char path[TEST_PATH_MAX]);

/* Opens a file for reading, through xz when its name ends so; close with pclose. */
FILE *test_data_open(const char *path);

/* Cuts a line at its commas in place, at most `maximum` fields; returns how many. */
size_t test_data_split(char *line, char **fields, size_t maximum);

#endif
