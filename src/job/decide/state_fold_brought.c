/* SPDX-License-Identifier: Apache-2.0 */
/* Folds what a job brought from elsewhere. */
#include "job/decide/state_fold_brought.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "job/decide/brought.h"
#include "job/decide/line.h"

/* Whether the policy could be told it: each batch size once, and figures that trials could have shown. */
static bool is_possible(const struct brought_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct past_tally tally = brought_tally(&record->batches[i]);

        if (!past_tally_possible(&tally) ||
            (i > 0 && record->batches[i].batch_size <= record->batches[i - 1].batch_size))
            return false;
    }
    return true;
}

static int take_hardware(struct folding *folding, const struct brought_record *record)
{
    struct job_state *state = folding->state;
    int code = 0;

    if (!record->of_line || record->line > state->line_count)
        return fold_refuse_member(folding, "line", "one that is known, or the next");
    if (record->line == state->line_count)
        code = job_state_add_line(state, &record->hardware, folding->error);
    return code < 0 ? code : brought_tell(&state->lines[record->line], record, folding->error);
}

/* Learning begins anew; trials that run show nothing of the revision that holds from now on. */
static int begin_revision(struct folding *folding, const struct brought_record *record)
{
    struct job_state *state = folding->state;
    int code = 0;

    snprintf(state->revision, sizeof state->revision, "%s", record->revision);
    for (size_t i = 0; i < state->open_count; i++) {
        state->open[i].of_past = true;
        state->open[i].counted = false;
    }
    for (size_t i = 0; i < state->unfinished_count; i++)
        state->unfinished[i].begun = false;
    for (size_t i = 0; i < state->line_count && code == 0; i++)
        code = job_line_renew(state, &state->lines[i], folding->error);
    return code;
}

static int take(struct folding *folding, const struct brought_record *record)
{
    struct job_state *state = folding->state;
    int code = 0;

    if (!is_possible(record))
        return fold_refuse_member(folding, "batches", "ascending sizes with figures of trials");
    if (record->kind == PAST_HARDWARE)
        return take_hardware(folding, record);
    if (record->kind == PAST_REVISION)
        code = begin_revision(folding, record);
    if (code == 0)
        code = brought_keep(state, record, folding->error);
    for (size_t i = 0; i < state->line_count && code == 0; i++)
        code = brought_tell(&state->lines[i], record, folding->error);
    return code;
}

int fold_brought(struct folding *folding)
{
    struct brought_record *record = malloc(sizeof *record);
    struct fly_error why;
    struct arena arena;
    int code;

    if (record == NULL)
        return error_no_memory(folding->error);
    arena_init(&arena, RECORD_ARENA_MAX);
    code = record_read_brought(folding->body, &arena, record, &why);
    code = code == 0 ? take(folding, record) : fold_refuse(folding, &why);
    arena_deinit(&arena);
    free(record);
    return code;
}
