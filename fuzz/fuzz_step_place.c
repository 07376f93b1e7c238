/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place of steps in a variable: what is read is written as the same text, except for leading zeros of
 * numbers.
 */
#include <string.h>

#include "fuzz.h"
#include "train/program/step_place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2 * STEP_PLACE_MAX] = "", written[STEP_PLACE_MAX];
    struct step_place place, again;

    memcpy(text, data, size < sizeof text - 1 ? size : sizeof text - 1);
    if (!step_place_read(text, &place))
        return 0;
    FUZZ_CHECK(place.path[0] == '/' && strlen(place.path) < STEP_PATH_MAX);
    FUZZ_CHECK(step_place_read(step_place_write(&place, written), &again));
    FUZZ_CHECK(strcmp(place.path, again.path) == 0 && place.device == again.device &&
               place.inode == again.inode);
    return 0;
}
