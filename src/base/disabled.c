/* SPDX-License-Identifier: Apache-2.0 */
#include "base/disabled.h"

#include <stdlib.h>
#include <string.h>

bool disabled_by_user(void)
{
    const char *value = getenv("FLYBALL_DISABLE");

    return value != NULL && strcmp(value, "1") == 0;
}
