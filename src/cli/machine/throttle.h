/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_THROTTLE_H
#define FLYBALL_CLI_MACHINE_THROTTLE_H

#include <stdint.h>

/*
 * Why a GPU runs below its highest clock, as words: "power cap, heat". The
 * reasons that say nothing about holding down (idle, clocks that were asked for)
 * are left out. "none" when none is left. Returns `text`.
 */
enum { THROTTLE_TEXT_MAX = 96 };
char *throttle_text(int64_t reasons, char text[THROTTLE_TEXT_MAX]);

#endif
