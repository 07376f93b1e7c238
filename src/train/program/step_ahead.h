/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_AHEAD_H
#define FLYBALL_TRAIN_PROGRAM_STEP_AHEAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "train/program/step_words.h"

/*
 * Looks at the lines that stand in a file of steps and were not read yet: who says them.
 * `go_on` is called for each line's sender and ends the look with false. Returns whether
 * all were looked at, of a MiB at most.
 */
typedef bool step_ahead_look(void *state, const struct step_sender *sender);

bool step_ahead(int file, off_t from, step_ahead_look *go_on, void *state);

#endif
