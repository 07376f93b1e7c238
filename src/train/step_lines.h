/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_STEP_LINES_H
#define FLYBALL_TRAIN_STEP_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

/*
 * Steps that a program reports: a line for each, to the descriptor whose number
 * stands in the variable FLYBALL_STEP_FD.
 *
 *     epoch 1        an epoch begins; optional
 *     step 17        any other line, also an empty one: a step begins
 *     epoch end      evaluation follows; optional
 *     epoch 1 metric 0.61    what came of an epoch; for `flyball run --job`, as are
 *     out of memory          the batch size does not fit
 *     session                the program has a session of its own, which reports (session.h)
 *
 * The descriptor is a file in memory that is appended to: whatever becomes of the
 * reader, writing never waits, fails or raises a signal, as it would on a pipe that
 * is full or that nobody reads. What was read is given back to the system.
 *
 *     step_lines_open(&lines, out_error);
 *     ... fork the program ...
 *     step_lines_passed(&lines);
 *     ... when step_lines_fd is readable, or after some milliseconds where it is -1 ...
 *     while (step_lines_next(&lines, &event))
 *         ...
 *     step_lines_close(&lines);
 */
#define STEP_VARIABLE "FLYBALL_STEP_FD"
enum { STEP_LINE_MAX = 255, STEP_BYTES_MAX = 4096 };

enum step_event {
    STEP_BEGIN,
    STEP_EPOCH_BEGIN,
    STEP_EPOCH_END,
    STEP_REPORT,
    STEP_OUT_OF_MEMORY,
    STEP_SESSION,
    STEP_MALFORMED
};

/* What a STEP_REPORT says. */
struct step_report {
    uint32_t epoch;
    double metric; /* NAN: "nan" */
};

struct step_lines {
    int file, notice; /* -1: none */
    int program_end;
    char *before; /* the variable's value, owned, or NULL */
    off_t read_to, freed_to;
    char line[STEP_LINE_MAX + 1];
    size_t length; /* of the line that is not complete; beyond STEP_LINE_MAX: too long */
    char bytes[STEP_BYTES_MAX];
    size_t at, count;
    struct step_report report;           /* of the newest STEP_REPORT */
    uint64_t events[STEP_MALFORMED + 1]; /* so far, of each kind */
};

/* Makes the file, and sets the variable for a program that is forked now. FLY_ELIMIT, FLY_ENOMEM. */
int step_lines_open(struct step_lines *out_lines, struct fly_error *out_error);

/* The program has its end: closes ours, and puts the variable back. */
void step_lines_passed(struct step_lines *lines);

/* Readable when something was written; -1 where the system does not tell. */
int step_lines_fd(const struct step_lines *lines);

/* To be called when that is readable, before step_lines_next. */
void step_lines_noticed(struct step_lines *lines);

/* The next event that has come; false when there is none. */
bool step_lines_next(struct step_lines *lines, enum step_event *out_event);

/* Where the lines begin that have not been taken, and where what was written so far ends; in bytes. */
off_t step_lines_at(const struct step_lines *lines);
off_t step_lines_end(const struct step_lines *lines);

void step_lines_close(struct step_lines *lines);

/* The other end, in the program: the descriptor that the variable names, -1 for none that can be written. */
int step_lines_given(void);

/* Writes a line there, its end added. What cannot be written is not: the program goes on. */
__attribute__((format(printf, 2, 3))) void step_line_write(int fd, const char *format, ...);

/*
 * What a line of text without its end says. Malformed: too long, control characters, or
 * another line that begins with "epoch". `out_report` is filled by a STEP_REPORT alone.
 */
enum step_event step_line_event(const char *line, size_t length, struct step_report *out_report);

#endif
