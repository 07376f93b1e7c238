/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of a mount and the groups of a process, as the kernel writes them: the path found is below the
 * mount, and never leads out of it.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "knob/cgroup_leave.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *groups;
    struct cgroup_place place;

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    groups = strchr(text, '\n'); /* after the first line */
    if (groups != NULL) {
        *groups++ = '\0';
        if (cgroup_find(text, groups, &place)) {
            FUZZ_CHECK(strstr(place.below, "/..") == NULL);
            FUZZ_CHECK(place.below[0] == '\0' || place.below[0] == '/');
            FUZZ_CHECK(place.point >= text && place.point < groups);
        }
    }
    free(text);
    return 0;
}
