/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/text_layout.h"

#include <string.h>

size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

void text_wrap(struct buffer *out, const char *text, size_t column, size_t indent, size_t line_width)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (column > indent && column + 1 + length > line_width) {
            buffer_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            buffer_puts(out, " ");
            column++;
        }
        buffer_append(out, text, length);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    buffer_puts(out, "\n");
}
