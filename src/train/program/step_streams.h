/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_STREAMS_H
#define FLYBALL_TRAIN_PROGRAM_STEP_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/program/step_words.h"

/*
 * Whose lines count where several processes of one training report the same steps.
 *
 * One process's do: that of the lowest rank, which goes before those that say no rank;
 * of equal ones the first to report. A process that reports while that one lives never
 * counts. When it has ended, the next of its rank takes its place: it was started again,
 * and its steps are new ones. When a lower rank comes later, what had been counted of the higher
 * one is left out of its lines, so that together they are counted once. Lines
 * that name nobody always count, and so does, from anybody, what no step is: that memory did
 * not suffice, that there is a session, that a line is malformed.
 *
 *     relation = step_streams_relation(&streams, &sender);
 *     if (relation == STEP_NEXT_PROCESS)
 *         ... has the counted process ended, with no line of its own to come? ...
 *             step_streams_follow or step_streams_ignore
 *     if (step_streams_counts(&streams, &sender, event))
 *         ...
 *
 * Pure; all zeros is the beginning.
 */
enum { STEP_IGNORED_MAX = 256 };

enum step_relation {
    STEP_COUNTED, /* it is the one, or becomes it */
    STEP_NEXT_PROCESS,
    STEP_OTHER /* never counts */
};

struct step_streams {
    bool any;
    struct step_sender counted;
    int ignored[STEP_IGNORED_MAX]; /* processes of its rank that reported beside it, the newest of them */
    size_t ignored_count;
    uint64_t steps, reports;           /* counted since the rank began, or began again */
    uint64_t skip_steps, skip_reports; /* of the lines to come: a higher rank's were counted */
};

/* Whether the sender would go before the one that counts, or there is none yet. */
bool step_streams_is_lower(const struct step_streams *streams, const struct step_sender *sender);

/* What a sender is to the one that counts; makes it that where it goes before. */
enum step_relation step_streams_relation(struct step_streams *streams, const struct step_sender *sender);

/* A STEP_NEXT_PROCESS takes the place of one that has ended, or is one beside it. */
void step_streams_follow(struct step_streams *streams, const struct step_sender *sender);
void step_streams_ignore(struct step_streams *streams, const struct step_sender *sender);

/* Whether a line of the sender counts; to be asked once for each. */
bool step_streams_counts(struct step_streams *streams, const struct step_sender *sender,
                         enum step_event event);

#endif
