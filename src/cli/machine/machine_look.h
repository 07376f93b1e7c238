/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_MACHINE_LOOK_H
#define FLYBALL_CLI_MACHINE_MACHINE_LOOK_H

#include "device/recording/facts.h"

/*
 * What there is beside devices on this machine, from files, permissions and variables;
 * nothing is written or tried out. Of knobs nothing is looked at here.
 */
struct machine_texts {
    char kernel[DEVICE_TEXT_MAX], architecture[DEVICE_TEXT_MAX], nvidia_kernel_driver[DEVICE_TEXT_MAX];
};

/* `root` is where its sys, proc and dev are. What is found borrows `texts`. */
void machine_look(const char *root, struct machine_texts *texts, struct facts_machine *out_machine);

#endif
