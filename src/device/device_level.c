/* SPDX-License-Identifier: Apache-2.0 */
/* Performance levels of a device, by number and by word. */
#include <string.h>

#include "device/device.h"

#define LEVEL_ROW(name, number, word, settable) [DEVICE_LEVEL_##name] = {word, settable},
static const struct {
    const char *word;
    bool settable;
} levels[] = {DEVICE_LEVELS(LEVEL_ROW)};
_Static_assert(sizeof levels / sizeof levels[0] == DEVICE_LEVEL_COUNT, "one row for every level");

const char *device_level_word(int64_t level)
{
    return level >= 0 && level < DEVICE_LEVEL_COUNT ? levels[level].word : "an unknown one";
}

int device_level_find(const char *word)
{
    for (int i = 0; i < DEVICE_LEVEL_COUNT; i++) {
        if (strcmp(levels[i].word, word) == 0)
            return i;
    }
    return -1;
}

bool device_level_is_settable(int64_t level)
{
    return level >= 0 && level < DEVICE_LEVEL_COUNT && levels[level].settable;
}

enum reading_state device_read_level(const struct device *device, int64_t *out_level)
{
    return device->backend->level != NULL ? device->backend->level(device, out_level) : READING_UNSUPPORTED;
}
