/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_AHEAD_H
#define FLYBALL_TRAIN_PROGRAM_STEP_AHEAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "train/program/step_words.h"

/*
 * Reads the lines of a file of steps that were not taken yet, to find who wrote them: at most one MiB. Calls
 * `go_on` with each line's sender; `go_on` returns false to stop. Returns false when it was stopped.
 */
typedef bool step_ahead_look(void *state, const struct step_sender *sender);

bool step_ahead(int file, off_t from, step_ahead_look *go_on, void *state);

#endif
