/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_WORDS_H
#define FLYBALL_TRAIN_PROGRAM_STEP_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads a line of a program's steps.
 *
 *     epoch 1        an epoch begins; optional
 *     step 17        any other line, also an empty one: a step begins
 *     epoch end      evaluation follows; optional
 *     epoch 1 metric 0.61    an epoch's result; for `flyball run --job`, as are
 *     out of memory          the batch size does not fit
 *     session                the program has a session of its own, which reports (session.h)
 *
 * A line may begin with its sender, each part optional:
 *
 *     rank 0 pid 4711 step 17
 *     pid 4711 epoch 1
 *     rank 0 pid 4711 hook            a step that the start-up hook in Python saw (step_hook.h)
 *     pid 4711 hook saw torch         what it says for the report, as do `counts` and `failed`
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
    STEP_HOOK,
    STEP_MALFORMED
};

/* The content of a STEP_REPORT. */
struct step_report {
    uint32_t epoch;
    double metric; /* NAN: "nan" */
};

struct step_sender {
    int rank, pid; /* -1: not in the line */
    bool hook;     /* the hook in that process says it, not the program */
};

/*
 * Reads the sender of a line that ends with NUL; returns where the rest begins, which is the line itself when
 * it names nobody.
 */
const char *step_line_sender(const char *line, struct step_sender *out_sender);

/*
 * The event of a line without its newline, whoever wrote it. Malformed lines are too long, contain control
 * characters, or begin with "epoch" in another way. Only a STEP_REPORT fills `out_report`.
 */
enum step_event step_line_event(const char *line, size_t length, struct step_sender *out_sender,
                                struct step_report *out_report);

#endif
