/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a share do alike: tell. */
#include <stdarg.h>
#include <stdio.h>

#include "node/share/share_private.h"

void share_say(const struct share *share, bool trouble, const char *format, ...)
{
    char line[SHARE_MESSAGE_MAX];
    va_list arguments;

    if (share->options.tell == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    share->options.tell(share->options.tell_state, trouble, line);
}
