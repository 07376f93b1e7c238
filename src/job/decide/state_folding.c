/* SPDX-License-Identifier: Apache-2.0 */
/* What the events of a job have in common. */
#include "job/decide/state_folding.h"

#include <inttypes.h>

#include "base/error.h"

int fold_refuse(const struct folding *folding)
{
    const struct job_state *state = folding->state;

    return error_set(folding->error, FLY_EDATA, "job '%s', event %" PRIu64 " ('%s'): '%s': expected %s",
                     state->defined ? state->definition.name : "", folding->event->number,
                     folding->event->kind, folding->members.wrong != NULL ? folding->members.wrong : "",
                     folding->members.expected != NULL ? folding->members.expected : "something else");
}

int fold_refuse_member(struct folding *folding, const char *name, const char *expected)
{
    members_refuse(&folding->members, name, expected);
    return fold_refuse(folding);
}

struct job_line *fold_line(const struct folding *folding)
{
    return &folding->state->lines[folding->trial->line];
}

int fold_tell(const struct folding *folding, size_t line, const struct event *event)
{
    return decider_fold(&folding->state->lines[line].decider, event, folding->error);
}

void fold_heard_of(const struct folding *folding)
{
    fold_line(folding)->facts[folding->trial->batch].silent -= folding->trial->silent;
    folding->trial->silent = false;
}
