/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_WORDS_H
#define FLYBALL_TRAIN_PROGRAM_STEP_WORDS_H

#include <stddef.h>
#include <stdint.h>

/*
 * What a line of a program's steps says.
 *
 *     epoch 1        an epoch begins; optional
 *     step 17        any other line, also an empty one: a step begins
 *     epoch end      evaluation follows; optional
 *     epoch 1 metric 0.61    what came of an epoch; for `flyball run --job`, as are
 *     out of memory          the batch size does not fit
 *     session                the program has a session of its own, which reports (session.h)
 *
 * Before it may stand who says so, each part optional:
 *
 *     rank 0 pid 4711 step 17
 *     pid 4711 epoch 1
 *
 * Pure functions.
 */
enum { STEP_LINE_MAX = 255 };

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

struct step_sender {
    int rank, pid; /* -1: not said */
};

/* Who says a line that is closed by NUL; returns where the rest begins, which is the line where nobody is
 * named. */
const char *step_line_sender(const char *line, struct step_sender *out_sender);

/*
 * What a line of text without its end says, whoever says it. Malformed: too long, control
 * characters, or another line that begins with "epoch". `out_report` is filled by a
 * STEP_REPORT alone.
 */
enum step_event step_line_event(const char *line, size_t length, struct step_sender *out_sender,
                                struct step_report *out_report);

#endif
