/* SPDX-License-Identifier: Apache-2.0 */
#include "base/csv_quote.h"

#include <string.h>

void csv_quote(struct buffer *buffer, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        buffer_puts(buffer, text);
        return;
    }
    buffer_puts(buffer, "\"");
    for (; *text != '\0'; text++)
        buffer_append(buffer, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    buffer_puts(buffer, "\"");
}
