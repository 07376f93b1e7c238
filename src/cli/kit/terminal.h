/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TERMINAL_H
#define FLYBALL_CLI_KIT_TERMINAL_H

#include <stdbool.h>

/* Whether the kind of terminal that the variable TERM names is known, so that it can be drawn on. */
bool terminal_is_known(int fd);

#endif
