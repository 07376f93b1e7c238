/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/csv_quote.h"

#include <string.h>

#include "base/harmless.h"

static void put_quoted(struct buffer *buffer, const char *text)
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

void csv_quote(struct buffer *buffer, const char *text)
{
    struct buffer shown;

    if (harmless_all(text, strlen(text), true)) {
        put_quoted(buffer, text);
        return;
    }
    buffer_init(&shown, buffer->maximum);
    harmless_put(&shown, text, true);
    put_quoted(buffer, shown.data);
    buffer_deinit(&shown);
}
