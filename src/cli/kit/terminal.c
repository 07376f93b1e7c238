/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not in the screen's file, because term.h defines macros for words such as `lines`. newterm
 * could answer this too, but it keeps memory that it allocates before it knows the answer.
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
