/* SPDX-License-Identifier: Apache-2.0 */
#include "test_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

bool test_data_path(const char *name, char path[TEST_PATH_MAX])
{
    const char *directory = getenv("FLYBALL_TEST_DATA");

    snprintf(path, TEST_PATH_MAX, "%s/%s", directory != NULL ? directory : "../shared/data", name);
    if (access(path, R_OK) == 0)
        return true;
    print_message("# SKIP: test data %s is absent; set FLYBALL_TEST_DATA to its directory\n", path);
    return false;
}

void test_data_need(const char *name, char path[TEST_PATH_MAX])
{
    if (!test_data_path(name, path))
        skip();
}

FILE *test_data_open(const char *path)
{
    size_t length = strlen(path);
    bool packed = length > 3 && strcmp(path + length - 3, ".xz") == 0;
    char command[TEST_PATH_MAX + 16];
    FILE *file;

    snprintf(command, sizeof command, "%s '%s'", packed ? "xz -dc" : "cat", path);
    file = popen(command, "r");
    assert_non_null(file);
    return file;
}

size_t test_data_split(char *line, char **fields, size_t maximum)
{
    size_t count = 0;

    line[strcspn(line, "\r\n")] = '\0';
    while (line != NULL && count < maximum)
        fields[count++] = strsep(&line, ",");
    return count;
}
