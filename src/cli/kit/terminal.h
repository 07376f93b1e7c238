/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TERMINAL_H
#define FLYBALL_CLI_KIT_TERMINAL_H

#include <stdbool.h>

/* Returns whether the terminal type in the variable TERM is known, so that the program can draw on it. */
bool terminal_is_known(int fd);

#endif
