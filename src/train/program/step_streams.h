/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_PROGRAM_STEP_STREAMS_H
#define FLYBALL_TRAIN_PROGRAM_STEP_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Whether both are the same process: the program may not know the rank that its hook knows. */
bool step_sender_is(const struct step_sender *sender, const struct step_sender *other);

/* Whether the sender comes before the process that counts, or none counts yet. */
bool step_streams_is_lower(const struct step_streams *streams, const struct step_sender *sender);

/* How a sender relates to the process that counts. A sender that comes before that takes its place. */
enum step_relation step_streams_relation(struct step_streams *streams, const struct step_sender *sender);

/* A STEP_NEXT_PROCESS takes the place of a process that has ended, or is ignored because that one lives. */
void step_streams_follow(struct step_streams *streams, const struct step_sender *sender);
void step_streams_ignore(struct step_streams *streams, const struct step_sender *sender);

/* Whether a line of the sender counts. Call it once for each line. */
bool step_streams_counts(struct step_streams *streams, const struct step_sender *sender,
                         enum step_event event);

#endif
