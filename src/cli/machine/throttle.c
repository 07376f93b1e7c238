/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine/throttle.h"

#include <stdio.h>

#include "device/quantity.h"

static const struct {
    int64_t bits;
    const char *word;
} words[] = {
    {THROTTLE_POWER_CAP, "power cap"},     {THROTTLE_HEAT_SOFTWARE | THROTTLE_HEAT_HARDWARE, "heat"},
    {THROTTLE_POWER_BRAKE, "power brake"}, {THROTTLE_HARDWARE, "hardware"},
    {THROTTLE_SYNC_BOOST, "sync boost"},
};

char *throttle_text(int64_t reasons, char text[THROTTLE_TEXT_MAX])
{
    size_t length = 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((reasons & words[i].bits) != 0)
            length += (size_t)snprintf(text + length, THROTTLE_TEXT_MAX - length, "%s%s",
                                       length > 0 ? ", " : "", words[i].word);
    }
    if (length == 0)
        snprintf(text, THROTTLE_TEXT_MAX, "none");
    return text;
}
