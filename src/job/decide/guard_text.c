/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/guard_text.h"

#include <stdio.h>

static uint32_t default_size(const struct job_line *line)
{
    return line->spec->batches[line->spec->default_batch].size;
}

static void tell_held(const struct job_line *line, char text[JOB_WHY_MAX])
{
    const struct guard *guard = &line->decider.guard;
    unsigned dear = guard_dear(guard);
    char what[96];

    if (dear >= GUARD_DEAR_MOST)
        snprintf(what, sizeof what, "%u of the last %d recurrences took over 20 %% more than a run of it",
                 dear, GUARD_WINDOW);
    else
        snprintf(what, sizeof what, "it takes more than it did, and so may all others");
    snprintf(text, JOB_WHY_MAX, "the default batch size %u runs without a cap, since %s%s",
             default_size(line), what,
             guard_begins_anew(guard) ? "; learning begins anew with that run"
                                      : "; the search goes on when they are fewer");
}

static void tell_doubt(const struct job_line *line, bool retry, char text[JOB_WHY_MAX])
{
    const char *why = "the last recurrences took more than those before them";

    if (retry)
        why = "the tries before it failed";
    else if (guard_dear(&line->decider.guard) > 0)
        why = "some of the last recurrences took over 20 % more than it did";
    snprintf(text, JOB_WHY_MAX,
             "the default batch size %u runs without a cap, to see what it takes today, since %s",
             default_size(line), why);
}

void guard_text(const struct job_line *line, enum reason reason, bool retry, char text[JOB_WHY_MAX])
{
    if (reason == REASON_GUARD)
        tell_held(line, text);
    else
        tell_doubt(line, retry, text);
}

void guard_text_now(const struct job_state *state, const struct job_line *line, char text[JOB_WHY_MAX])
{
    enum reason reason = decider_guard_reason(&line->decider, 0);

    text[0] = '\0';
    if (state->pin_batch_size > 0 || state->definition.target == JOB_NO_TARGET)
        return;
    if (reason != REASON_COUNT)
        guard_text(line, reason, false, text);
    else if (decider_default_fails(&line->decider))
        snprintf(text, JOB_WHY_MAX,
                 "the default batch size %u no longer reaches its target, so nothing is held against it",
                 default_size(line));
}
