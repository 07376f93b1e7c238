/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_DISABLED_H
#define FLYBALL_BASE_DISABLED_H

#include <stdbool.h>

/* Returns whether FLYBALL_DISABLE=1 asks for training to run as if Flyball were not there. */
bool disabled_by_user(void);

#endif
