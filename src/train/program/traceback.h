/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_TRACEBACK_H
#define FLYBALL_TRAIN_PROGRAM_TRACEBACK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Python's tracebacks in the lines of a program's output: which lines are code, and which one names the
 * exception. A launcher puts the same words before all lines of a rank ("[rank0]: "); lines with others
 * belong to other processes. Pure.
 */
enum traceback_line {
    TRACEBACK_NONE,  /* not of a traceback */
    TRACEBACK_CODE,  /* a file, or the program's own text */
    TRACEBACK_RELAY, /* an exception that follows from another one, or from another process */
    TRACEBACK_RAISED /* an exception of its own */
};

enum { TRACEBACK_PREFIX_MAX = 32 };

/* Zeroed at the begin. */
struct traceback {
    bool open;    /* the line with the exception is still to come */
    bool chained; /* the next one follows from the one before */
    size_t prefix_length;
    char prefix[TRACEBACK_PREFIX_MAX];
};

enum traceback_line traceback_take(struct traceback *traceback, const char *line);

#endif
