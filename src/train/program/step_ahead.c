/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_ahead.h"

#include <unistd.h>

enum { AHEAD_MAX = 1 << 20, PIECE_MAX = 4096, SENDER_TEXT_MAX = 64 };

/* The begin of a line, which names its sender. */
struct beginning {
    char text[SENDER_TEXT_MAX];
    size_t length;
};

static bool take_byte(struct beginning *line, char byte, step_ahead_look *go_on, void *state)
{
    struct step_sender sender;

    if (byte != '\n') {
        if (line->length < sizeof line->text - 1)
            line->text[line->length++] = byte;
        return true;
    }
    line->text[line->length] = '\0';
    line->length = 0;
    (void)step_line_sender(line->text, &sender);
    return go_on(state, &sender);
}

bool step_ahead(int file, off_t from, step_ahead_look *go_on, void *state)
{
    struct beginning line = {.length = 0};
    char piece[PIECE_MAX];
    ssize_t count;

    for (off_t at = from; at < from + AHEAD_MAX; at += count) {
        count = pread(file, piece, sizeof piece, at);
        if (count <= 0)
            break;
        for (ssize_t i = 0; i < count; i++) {
            if (!take_byte(&line, piece[i], go_on, state))
                return false;
        }
    }
    return true;
}
