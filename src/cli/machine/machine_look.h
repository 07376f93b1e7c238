/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_MACHINE_LOOK_H
#define FLYBALL_CLI_MACHINE_MACHINE_LOOK_H

#include "device/recording/facts.h"

/*
 * What this machine has besides devices, read from files, permissions and variables. Nothing is
 * written or tried out, and nothing here concerns knobs.
 */
struct machine_texts {
    char kernel[DEVICE_TEXT_MAX], architecture[DEVICE_TEXT_MAX], nvidia_kernel_driver[DEVICE_TEXT_MAX];
};

/* Fills in the machine. `root` is where its sys, proc and dev are. The result borrows `texts`. */
void machine_look(const char *root, struct machine_texts *texts, struct facts_machine *out_machine);

#endif
