/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_streams.h"

#include <limits.h>

static bool names_nobody(const struct step_sender *sender)
{
    return sender->rank < 0 && sender->pid < 0;
}

/* The order of ranks; a sender without a rank comes last. */
static int order_of(const struct step_sender *sender)
{
    return sender->rank >= 0 ? sender->rank : INT_MAX;
}

static bool is_ignored(const struct step_streams *streams, int pid)
{
    for (size_t i = 0; i < streams->ignored_count && i < STEP_IGNORED_MAX; i++) {
        if (streams->ignored[i] == pid)
            return true;
    }
    return false;
}

bool step_sender_is(const struct step_sender *sender, const struct step_sender *other)
{
    return sender->pid == other->pid &&
           (sender->rank == other->rank || (sender->pid >= 0 && (sender->rank < 0 || other->rank < 0)));
}

bool step_streams_is_lower(const struct step_streams *streams, const struct step_sender *sender)
{
    return !names_nobody(sender) && (!streams->any || order_of(sender) < order_of(&streams->counted));
}

enum step_relation step_streams_relation(struct step_streams *streams, const struct step_sender *sender)
{
    if (names_nobody(sender))
        return STEP_COUNTED;
    if (streams->any && step_sender_is(sender, &streams->counted)) {
        if (streams->counted.rank < 0)
            streams->counted.rank = sender->rank;
        return STEP_COUNTED;
    }
    if (step_streams_is_lower(streams, sender)) {
        streams->any = true;
        streams->counted = *sender;
        streams->ignored_count = 0;
        streams->skip_steps = streams->steps;
        streams->skip_reports = streams->reports;
        streams->hook_steps = false;
        return STEP_COUNTED;
    }
    if (sender->rank != streams->counted.rank)
        return STEP_OTHER;
    return is_ignored(streams, sender->pid) ? STEP_OTHER : STEP_NEXT_PROCESS;
}

void step_streams_follow(struct step_streams *streams, const struct step_sender *sender)
{
    int before = streams->counted.pid;

    streams->counted = *sender;
    streams->own_steps = streams->own_reports = streams->hook_steps = false;
    streams->steps = streams->reports = streams->skip_steps = streams->skip_reports = 0;
    step_streams_ignore(streams, &(struct step_sender){.rank = sender->rank, .pid = before});
}

void step_streams_ignore(struct step_streams *streams, const struct step_sender *sender)
{
    streams->ignored[streams->ignored_count++ % STEP_IGNORED_MAX] = sender->pid;
}

/* Leaves out one more line if any is left to leave out; returns whether it did. */
static bool skip(uint64_t *left)
{
    if (*left == 0)
        return false;
    --*left;
    return true;
}

/* Whether a step of the program, or of its hook, is not one that the other has told. */
static bool is_step_of_one(struct step_streams *streams, bool hook)
{
    bool first = !hook && !streams->own_steps, again = first && streams->hook_steps;

    if (hook)
        streams->hook_steps |= !streams->own_steps;
    else
        streams->own_steps = true;
    return hook ? !streams->own_steps : !again;
}

static bool is_report_of_one(struct step_streams *streams, bool hook)
{
    streams->own_reports |= !hook;
    return !hook || !streams->own_reports;
}

/* Whether an event of the counted process is new. */
static bool is_new(struct step_streams *streams, bool hook, enum step_event event)
{
    switch (event) {
    case STEP_BEGIN:
        if (!is_step_of_one(streams, hook) || skip(&streams->skip_steps))
            return false;
        streams->steps++;
        return true;
    case STEP_REPORT:
        if (!is_report_of_one(streams, hook) || skip(&streams->skip_reports))
            return false;
        streams->reports++;
        return true;
    case STEP_EPOCH_BEGIN:
    case STEP_EPOCH_END:
        return streams->skip_steps == 0;
    case STEP_OUT_OF_MEMORY:
    case STEP_SESSION:
    case STEP_HOOK:
    case STEP_MALFORMED:
        break;
    }
    return true;
}

bool step_streams_counts(struct step_streams *streams, const struct step_sender *sender,
                         enum step_event event)
{
    bool of_anybody = event == STEP_OUT_OF_MEMORY || event == STEP_SESSION || event == STEP_MALFORMED;

    if (of_anybody)
        return true;
    if (names_nobody(sender))
        return event == STEP_BEGIN ? is_step_of_one(streams, false)
                                   : event != STEP_REPORT || is_report_of_one(streams, false);
    if (!step_sender_is(sender, &streams->counted))
        return false;
    return is_new(streams, sender->hook, event);
}
