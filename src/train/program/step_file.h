/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_FILE_H
#define FLYBALL_TRAIN_PROGRAM_STEP_FILE_H

#include <stdbool.h>

#include <flyball/error.h>

#include "train/program/step_place.h"

/*
 * The file in memory to which a program appends its steps. The program finds it by a descriptor that it
 * inherits, whose number is in FLYBALL_STEP_FD, or, behind launchers that pass on variables but no
 * descriptors, by the path in FLYBALL_STEPS (step_place.h).
 *
 *     step_file_open(&file, out_error);
 *     ... fork the program ...
 *     step_file_passed(&file);
 *     ...
 *     step_file_close(&file);
 *
 * It is a regular file: writing never waits for a reader, and raises no signal when there is none. It has a
 * name in /dev/shm or in $XDG_RUNTIME_DIR, which only its owner may open. Some room is allocated beforehand,
 * so that others who fill the file system take none of it. Without such a directory in memory the file has no
 * name, and the path is that of this process's descriptor. step_file_close removes the name. After a process
 * was killed its file stays, until the next process that opens one removes it.
 */
#define STEP_VARIABLE "FLYBALL_STEP_FD"

enum { STEP_VARIABLES = 2 };

struct step_file {
    int file;        /* the reader's; -1: none */
    int program_end; /* -1: none, or already passed */
    struct step_place place;
    bool named;
    char *before[STEP_VARIABLES]; /* values that the variables had, owned, or NULL */
};

#define STEP_FILE_NONE                \
    {                                 \
        .file = -1, .program_end = -1 \
    }

/*
 * Holds a low descriptor from now on, for the end of one program at a time: shells write to
 * descriptors of one digit only. Call it before the process opens files and starts threads.
 * Without it a program's end gets the first free descriptor.
 */
void step_file_keep_low(void);

/* Makes the file, and sets the variables for a program that is forked next. Returns FLY_ELIMIT. */
int step_file_open(struct step_file *out_file, struct fly_error *out_error);

/* The program has its end of the file: closes this process's copy, and puts the variables back. */
void step_file_passed(struct step_file *file);

/* Allocates more room from `offset` on, if there is any. */
void step_file_reserve(const struct step_file *file, long long offset);

void step_file_close(struct step_file *file);

#endif
