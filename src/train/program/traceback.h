/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_TRACEBACK_H
#define FLYBALL_TRAIN_PROGRAM_TRACEBACK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Recognizes Python's tracebacks in a program's output: which lines are code, and which line names the
 * exception. A launcher puts the same prefix before all lines of a rank ("[rank0]: "); lines with another
 * prefix belong to other processes. Pure.
 */
enum traceback_line {
    TRACEBACK_NONE,  /* not part of a traceback */
    TRACEBACK_CODE,  /* a file's line, or program text */
    TRACEBACK_RELAY, /* an exception that follows from another exception or from another process */
    TRACEBACK_RAISED /* an exception that stands for itself */
};

enum { TRACEBACK_PREFIX_MAX = 32 };

/* Zero it before the first line. */
struct traceback {
    bool open;    /* the line with the exception is still to come */
    bool chained; /* the next exception follows from the one before */
    size_t prefix_length;
    char prefix[TRACEBACK_PREFIX_MAX];
};

enum traceback_line traceback_take(struct traceback *traceback, const char *line);

#endif
