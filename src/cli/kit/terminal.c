/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apart from the screen, because term.h makes macros of words such as `lines`.
 * newterm would say so too, but keeps memory that it made before it knew.
 */
#include "cli/kit/terminal.h"

#include <curses.h>
#include <term.h>

bool terminal_is_known(int fd)
{
    int error;

    if (setupterm(NULL, fd, &error) == ERR)
        return false;
    del_curterm(cur_term);
    return true;
}
