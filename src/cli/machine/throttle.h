/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_THROTTLE_H
#define FLYBALL_CLI_MACHINE_THROTTLE_H

#include <stdint.h>

/*
 * Writes why a GPU runs below its highest clock: "power cap, heat". Leaves out reasons that do
 * not hold the GPU down (idle, clocks that were asked for). "none" if no other is left. Returns
 * `text`.
 */
enum { THROTTLE_TEXT_MAX = 96 };
char *throttle_text(int64_t reasons, char text[THROTTLE_TEXT_MAX]);

#endif
