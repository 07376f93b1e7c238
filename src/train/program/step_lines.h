/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_LINES_H
#define FLYBALL_TRAIN_PROGRAM_STEP_LINES_H

#include <flyball/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "train/program/step_file.h"
#include "train/program/step_hook.h"
#include "train/program/step_words.h"

/*
 * Decides whose lines count when several processes of one training report the same steps.
 *
 * Only one process counts: that of the lowest rank. A process that names its rank comes before those that
 * name none; among equal ones the first to report counts. Another process that reports while that one lives
 * never counts. When it has ended, the next process of its rank takes its place: the rank was started again,
 * and its steps are new. When a lower rank comes later, as many of its lines are left out as were counted of
 * the higher rank, so that no step counts twice. Lines that name nobody always count. So do, from any
 * process, the events that are no steps: memory ran out, there is a session, a line is malformed.
 *
 * The hook in a process (step_hook.h) tells the steps that the program may tell too. Once a step comes from
 * the program, no step of the hook counts any more. The first one is the step that the hook told just before,
 * where it told any. Reports of epochs are alike.
 *
 *     relation = step_streams_relation(&streams, &sender);
 *     if (relation == STEP_NEXT_PROCESS)
 *         ... has the counted process ended, with no line of its own to come? ...
 *             step_streams_follow or step_streams_ignore
 *     if (step_streams_counts(&streams, &sender, event))
 *         ...
 *
 * Pure. Start with all zeros.
 */
enum { STEP_IGNORED_MAX = 256 };

enum step_relation {
    STEP_COUNTED, /* it is the process that counts, or becomes it */
    STEP_NEXT_PROCESS,
    STEP_OTHER /* never counts */
};

struct step_streams {
    bool any;
    struct step_sender counted;
    int ignored[STEP_IGNORED_MAX]; /* the newest processes of its rank that reported while it lived */
    size_t ignored_count;
    uint64_t steps, reports;           /* counted since the rank began, or began again */
    uint64_t skip_steps, skip_reports; /* to leave out: a higher rank's were counted */
    bool own_steps, own_reports;       /* the program tells them itself */
    bool hook_steps;                   /* of the counted process, some were the hook's */
};

/* A STEP_NEXT_PROCESS takes the place of a process that has ended, or is ignored because that one lives. */

/*
 * Reads the steps that a program reports, from a file in memory to which it appends lines (step_file.h).
 * step_words.h has the meaning of a line, step_writer.h the writing end.
 *
 * Whatever becomes of the reader, writing never waits, fails or raises a signal, unlike on a pipe that is
 * full or that nobody reads. Memory of lines already read goes back to the system.
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
 * When the first line comes from a rank above 0, and no other rank has reported, the line is held for half a
 * second: rank 0 may come a little later.
 *
 * A program may write faster than this can read, and faster than any training makes steps. 16 MiB at once and
 * 2 MiB a second are accepted, where each line counts 16 bytes more than it has. Beyond that `flooded` is
 * true, no more lines come, and what the program writes is thrown away.
 */
enum { STEP_BYTES_MAX = 4096 };

struct step_lines {
    struct step_file file;
    int notice, watched; /* -1: none */
    off_t read_to, freed_to;
    char line[STEP_LINE_MAX + 1];
    size_t length; /* of the line that is incomplete or not taken; above STEP_LINE_MAX: too long */
    bool complete; /* but not taken yet */
    char bytes[STEP_BYTES_MAX];
    size_t at, count;
    struct step_streams streams;
    bool held, last;
    struct mono_time held_until;
    double budget_bytes; /* how many may be read now */
    struct mono_time budgeted;
    bool flooded;
    struct step_report report;           /* of the newest STEP_REPORT event */
    struct step_hook hook;               /* what it said so far */
    uint64_t events[STEP_MALFORMED + 1]; /* how many of each kind so far */
};

#define STEP_LINES_NONE                                     \
    {                                                       \
        .file = STEP_FILE_NONE, .notice = -1, .watched = -1 \
    }

/* What users are told about a program that floods. */
extern const char step_lines_flood[];

/* Makes the file, and sets the variables for a program that is forked next. Returns FLY_ELIMIT. */
int step_lines_open(struct step_lines *out_lines, struct fly_error *out_error);

/* The program has its end of the file: closes this process's copy, and puts the variables back. */
void step_lines_passed(struct step_lines *lines);

/* A descriptor that is readable when something was written; -1 when the system cannot tell. */
int step_lines_fd(const struct step_lines *lines);

/* How long to wait for it at most: `usual_s` or less. */
double step_lines_wait_s(const struct step_lines *lines, double usual_s);

/* Call this when the descriptor is readable, before step_lines_next. */
void step_lines_noticed(struct step_lines *lines);

/* Stores the next event that has come; false when there is none. */
bool step_lines_next(struct step_lines *lines, enum step_event *out_event);

/* The program has ended: nothing is held back any more. */
void step_lines_last(struct step_lines *lines);

/* Offsets in bytes: where the lines that have not been taken begin, and where the file ends for now. */
off_t step_lines_at(const struct step_lines *lines);
off_t step_lines_end(const struct step_lines *lines);

void step_lines_close(struct step_lines *lines);

#endif
