/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/mdoc.h"

#include <ctype.h>
#include <string.h>

/* The date of this version's texts; a release changes it. The current date would make every build differ. */
static const char page_date[] = "November 21, 2026";

/*
 * Writes one character of a text: a backslash would begin an escape, a dash might become a
 * typographic one.
 */
static void put_character(char character, struct buffer *out)
{
    if (character == '\\')
        buffer_puts(out, "\\e");
    else if (character == '-')
        buffer_puts(out, "\\-");
    else
        buffer_append(out, &character, 1);
}

/* Writes a text within a line that has already begun. */
static void put_escaped(const char *text, size_t length, struct buffer *out)
{
    for (size_t i = 0; i < length; i++)
        put_character(text[i], out);
}

/* Writes a line of its own; a control character at its beginning is escaped. */
static void put_line(const char *text, size_t length, struct buffer *out)
{
    if (length > 0 && (text[0] == '.' || text[0] == '\''))
        buffer_puts(out, "\\&");
    put_escaped(text, length, out);
    buffer_puts(out, "\n");
}

void mdoc_begin(const char *title, int section, const char *summary, struct buffer *out)
{
    buffer_printf(out, ".Dd %s\n.Dt ", page_date);
    for (const char *letter = title; *letter != '\0'; letter++) {
        char upper = (char)toupper((unsigned char)*letter);

        buffer_append(out, &upper, 1);
    }
    buffer_printf(out, " %d\n.Os\n.Sh NAME\n.Nm %s\n.Nd ", section, title);
    put_line(summary, strlen(summary), out);
}

void mdoc_section(const char *heading, struct buffer *out)
{
    buffer_printf(out, ".Sh %s\n", heading);
}

/* Starts a new line for each sentence, so that roff can space it. */
void mdoc_text(const char *text, struct buffer *out)
{
    while (*text != '\0') {
        const char *stop = strstr(text, ". ");
        size_t length = stop != NULL ? (size_t)(stop - text) + 1 : strlen(text);

        put_line(text, length, out);
        text += length;
        text += strspn(text, " ");
    }
}

void mdoc_paragraph(const char *text, struct buffer *out)
{
    buffer_puts(out, ".Pp\n");
    mdoc_text(text, out);
}

void mdoc_argument(const char *text, struct buffer *out)
{
    buffer_puts(out, " \"\\&");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            buffer_puts(out, "\\(dq");
        else
            put_character(*text, out);
    }
    buffer_puts(out, "\"");
}

void mdoc_literal(const char *text, struct buffer *out)
{
    buffer_puts(out, ".Bd -literal -offset indent\n");
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");

        put_line(text, length, out);
        text += length + (text[length] == '\n');
    }
    buffer_puts(out, ".Ed\n");
}
