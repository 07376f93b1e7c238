/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_LINES_H
#define FLYBALL_TRAIN_PROGRAM_STEP_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/clock.h"
#include "train/program/step_file.h"
#include "train/program/step_streams.h"
#include "train/program/step_words.h"

/*
 * Steps that a program reports, read from a file in memory that it appends lines to (step_file.h;
 * step_words.h has what a line says, step_streams.h whose lines count, step_writer.h the other end).
 *
 * Whatever becomes of the reader, writing never waits, fails or raises a signal, as it would on a
 * pipe that is full or that nobody reads. What was read is given back to the system.
 *
 *     step_lines_open(&lines, out_error);
 *     ... fork the program ...
 *     step_lines_passed(&lines);
 *     ... when step_lines_fd is readable, and at the latest after step_lines_wait_s ...
 *     while (step_lines_next(&lines, &event))
 *         ...
 *     step_lines_last(&lines);        the program has ended
 *     ... all that is left ...
 *     step_lines_close(&lines);
 *
 * A line that begins with a rank above 0, where no other rank was heard of, waits for half a second: rank 0
 * may come a little later.
 *
 * A program may write faster than this can be read, and than any training makes steps: 16 MiB at once and
 * 2 MiB a second are let through, each line counted as 16 bytes more than it has. Beyond that `flooded` is
 * true, no line comes any more, and what the program writes is thrown away.
 */
enum { STEP_BYTES_MAX = 4096 };

struct step_lines {
    struct step_file file;
    int notice, watched; /* -1: none */
    off_t read_to, freed_to;
    char line[STEP_LINE_MAX + 1];
    size_t length; /* of the line that is not complete, or not taken; beyond STEP_LINE_MAX: too long */
    bool complete; /* it is not taken yet */
    char bytes[STEP_BYTES_MAX];
    size_t at, count;
    struct step_streams streams;
    bool held, last;
    struct mono_time held_until;
    double budget_bytes; /* that may be read */
    struct mono_time budgeted;
    bool flooded;
    struct step_report report;           /* of the newest STEP_REPORT */
    uint64_t events[STEP_MALFORMED + 1]; /* so far, of each kind */
};

#define STEP_LINES_NONE                                     \
    {                                                       \
        .file = STEP_FILE_NONE, .notice = -1, .watched = -1 \
    }

/* What is said of a program that floods. */
extern const char step_lines_flood[];

/* Makes the file, and sets the variables for a program that is forked now. FLY_ELIMIT. */
int step_lines_open(struct step_lines *out_lines, struct fly_error *out_error);

/* The program has its end: closes ours, and puts the variables back. */
void step_lines_passed(struct step_lines *lines);

/* Readable when something was written; -1 where the system does not tell. */
int step_lines_fd(const struct step_lines *lines);

/* How long to wait for that at most: `usual_s`, or less. */
double step_lines_wait_s(const struct step_lines *lines, double usual_s);

/* To be called when that is readable, before step_lines_next. */
void step_lines_noticed(struct step_lines *lines);

/* The next event that has come; false when there is none. */
bool step_lines_next(struct step_lines *lines, enum step_event *out_event);

/* The program has ended: nothing is waited for any more. */
void step_lines_last(struct step_lines *lines);

/* Where the lines begin that have not been taken, and where what was written so far ends; in bytes. */
off_t step_lines_at(const struct step_lines *lines);
off_t step_lines_end(const struct step_lines *lines);

void step_lines_close(struct step_lines *lines);

#endif
