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
 * the path of a file, then its device and its inode as fstat(2) has them, so that another file
 * that has come to stand there is not taken for it. Colons in the path are its own.
 */
#define STEP_PLACE_VARIABLE "FLYBALL_STEPS"
enum { STEP_PATH_MAX = 512, STEP_PLACE_MAX = STEP_PATH_MAX + 48 };

struct step_place {
    char path[STEP_PATH_MAX];
    uint64_t device, inode;
};

/* Returns `text`. */
char *step_place_write(const struct step_place *place, char text[STEP_PLACE_MAX]);

/* Whether the text is such a place, with an absolute path. */
bool step_place_read(const char *text, struct step_place *out_place);

/* Whether an open descriptor is that file, and a regular one. */
bool step_place_is(const struct step_place *place, int fd);

/* The file, opened to be appended to; -1 where it cannot be reached, or another one is there. Never waits. */
int step_place_open(const struct step_place *place);

#endif
