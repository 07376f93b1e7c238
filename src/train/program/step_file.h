/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_FILE_H
#define FLYBALL_TRAIN_PROGRAM_STEP_FILE_H

#include <stdbool.h>

#include <flyball/error.h>

#include "train/program/step_place.h"

/*
 * The file in memory that a program appends its steps to, and how the program finds it: by a
 * descriptor that it inherits, whose number stands in FLYBALL_STEP_FD, or, behind launchers that hand
 * on variables and no descriptors, by the path in FLYBALL_STEPS (step_place.h).
 *
 *     step_file_open(&file, out_error);
 *     ... fork the program ...
 *     step_file_passed(&file);
 *     ...
 *     step_file_close(&file);
 *
 * A regular file: writing to it never waits for a reader, and raises no signal without one. It has a name in
 * /dev/shm, or in $XDG_RUNTIME_DIR, which only its owner may open, and some room taken beforehand,
 * so that others who fill the place up take none of it. Where there is no such
 * directory in memory it has no name, and the path is that of this process's descriptor. The
 * name goes with step_file_close. Of a process that was killed it stays, and is removed by the
 * next that opens one.
 */
#define STEP_VARIABLE "FLYBALL_STEP_FD"

enum { STEP_VARIABLES = 2 };

struct step_file {
    int file;        /* of the reader; -1: none */
    int program_end; /* -1: none, or passed */
    struct step_place place;
    bool named;
    char *before[STEP_VARIABLES]; /* values of the variables, owned, or NULL */
};

#define STEP_FILE_NONE                \
    {                                 \
        .file = -1, .program_end = -1 \
    }

/* Makes the file, and sets the variables for a program that is forked now. FLY_ELIMIT. */
int step_file_open(struct step_file *out_file, struct fly_error *out_error);

/* The program has its end: closes ours, and puts the variables back. */
void step_file_passed(struct step_file *file);

/* Takes more room from `offset` on, where there is any. */
void step_file_reserve(const struct step_file *file, long long offset);

void step_file_close(struct step_file *file);

#endif
