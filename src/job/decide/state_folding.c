/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions that fold events share. */
#include "job/decide/state_folding.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"

enum { WHY_MAX = 160 };

static int refuse(const struct folding *folding, const char *why)
{
    const struct job_state *state = folding->state;

    return error_set(folding->error, FLY_EDATA, "job '%s', event %" PRIu64 " ('%s'): %.300s",
                     state->defined ? state->definition.name : "", folding->event->number,
                     folding->event->kind, why);
}

int fold_refuse(const struct folding *folding, const struct fly_error *why)
{
    return why->code == FLY_ENOMEM ? error_no_memory(folding->error) : refuse(folding, why->text);
}

int fold_refuse_member(const struct folding *folding, const char *name, const char *expected)
{
    char why[WHY_MAX];

    snprintf(why, sizeof why, "member '%s': expected %s", name, expected);
    return refuse(folding, why);
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
