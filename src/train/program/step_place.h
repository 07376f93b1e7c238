/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_PLACE_H
#define FLYBALL_TRAIN_PROGRAM_STEP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where a program's steps go, as the variable FLYBALL_STEPS says it:
 *
 *     /dev/shm/flyball-steps-4711-0badcafe:27:3921
 *
 * This is the path of a file, then its device and its inode as fstat(2) reports them, so that another file
 * that has taken the path later is not mistaken for it. The path may contain colons.
 */
#define STEP_PLACE_VARIABLE "FLYBALL_STEPS"
enum { STEP_PATH_MAX = 512, STEP_PLACE_MAX = STEP_PATH_MAX + 48 };

struct step_place {
    char path[STEP_PATH_MAX];
    uint64_t device, inode;
};

/* Writes the place as text; returns `text`. */
char *step_place_write(const struct step_place *place, char text[STEP_PLACE_MAX]);

/* Reads a place; false unless the text is one with an absolute path. */
bool step_place_read(const char *text, struct step_place *out_place);

/* Whether an open descriptor is that file, and a regular file. */
bool step_place_is(const struct step_place *place, int fd);

/*
 * Opens the file for appending; returns -1 when it cannot be reached, or another file is there. Never waits.
 */
int step_place_open(const struct step_place *place);

#endif
