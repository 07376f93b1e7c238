/* SPDX-License-Identifier: Apache-2.0 */
/* Any list of mounts, and a path: the result is a type that is in the list, or none. */
#include <string.h>

#include "base/file/file_system.h"
#include "fuzz.h"

enum { TEXT_MAX = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX];
    char type[FILE_SYSTEM_NAME_MAX];

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    file_system_mount_type(text, "/home/u/a b", type);
    FUZZ_CHECK(memchr(type, '\0', sizeof type) != NULL);
    FUZZ_CHECK(strchr(text, '\\') != NULL || strstr(text, type) != NULL);
    return 0;
}
