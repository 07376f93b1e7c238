/* SPDX-License-Identifier: Apache-2.0 */
#include "job/decide/brought.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/decide/line.h"

struct past_tally brought_tally(const struct brought_batch *batch)
{
    return (struct past_tally){.reached = batch->reached,
                               .mean = batch->log_epochs_mean,
                               .squares = batch->log_epochs_squares,
                               .stopped = batch->stopped,
                               .stopped_epochs = batch->stopped_epochs,
                               .failed = batch->failed,
                               .log_epoch_cost = batch->log_epoch_cost};
}

struct brought_batch brought_of(uint32_t size, const struct past_tally *tally)
{
    return (struct brought_batch){.batch_size = size,
                                  .reached = tally->reached,
                                  .log_epochs_mean = tally->mean,
                                  .log_epochs_squares = tally->squares,
                                  .stopped = tally->stopped,
                                  .stopped_epochs = tally->stopped_epochs,
                                  .failed = tally->failed,
                                  .log_epoch_cost = tally->log_epoch_cost};
}

/* ---- gathering ---- */

static double cost_on(const struct job_line *line, size_t batch, const struct fly_objective *objective)
{
    const struct decider_profile *profile = &line->decider.profiles[batch];

    return past_log_epoch_cost(profile->points, profile->count, line->facts[batch].units_per_epoch,
                               objective_eta(objective), line->spec->max_power_w);
}

static const struct job_line *most_profiled(const struct job_state *state,
                                            const struct fly_objective *objective)
{
    const struct job_line *most = NULL;
    size_t highest = 0;

    for (size_t i = 0; i < state->line_count; i++) {
        const struct job_line *line = &state->lines[i];
        size_t known = 0;

        for (size_t batch = 0; batch < line->spec->batch_count; batch++)
            known += !isnan(cost_on(line, batch, objective));
        if (known > highest) {
            highest = known;
            most = line;
        }
    }
    return most;
}

/* What the lines showed of one batch size. */
static struct past_tally gather_size(const struct job_state *state, uint32_t size,
                                     const struct job_line *priced, const struct fly_objective *objective)
{
    struct past_tally tally = past_tally_none;
    double log_epoch_cost = NAN;

    for (size_t i = 0; i < state->line_count; i++) {
        const struct job_line *line = &state->lines[i];
        size_t batch = job_line_batch(line, size);

        if (batch == line->spec->batch_count)
            continue;
        past_tally_add(&tally, &line->facts[batch].tally);
        if (line == priced)
            log_epoch_cost = cost_on(line, batch, objective);
    }
    tally.log_epoch_cost = log_epoch_cost;
    return tally;
}

static bool is_wanted(const struct job_definition *wanted, uint32_t size)
{
    bool is = false;

    for (size_t i = 0; i < wanted->batch_count; i++)
        is |= wanted->batch_sizes[i] == size;
    return is;
}

void brought_gather(const struct job_state *state, const struct job_definition *wanted,
                    const struct fly_objective *objective, struct brought_record *record)
{
    const struct job_line *priced = most_profiled(state, objective);
    bool observed = false;

    record->count = 0;
    for (size_t i = 0; i < state->definition.batch_count; i++) {
        uint32_t size = state->definition.batch_sizes[i];
        const struct past_tally tally = gather_size(state, size, priced, objective);

        observed |= tally.reached + tally.stopped > 0;
        if (past_tally_shows(&tally) && is_wanted(wanted, size))
            record->batches[record->count++] = brought_of(size, &tally);
    }
    for (size_t i = 0; i < state->brought.count && !observed; i++) {
        if (i == 0)
            record->count = 0;
        if (is_wanted(wanted, state->brought.batches[i].batch_size))
            record->batches[record->count++] = state->brought.batches[i];
    }
}

/* ---- taking ---- */

static int tell(struct job_line *line, enum past_kind kind, const struct brought_batch *batches, size_t count,
                struct fly_error *out_error)
{
    struct past_batch *told = calloc(line->spec->batch_count, sizeof told[0]);
    struct past_brought brought = {.kind = kind, .batches = told};
    int code;

    if (told == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count && brought.count < line->spec->batch_count; i++) {
        size_t batch = job_line_batch(line, batches[i].batch_size);

        if (batch < line->spec->batch_count)
            told[brought.count++] = (struct past_batch){batch, brought_tally(&batches[i])};
    }
    code = brought.count == 0
               ? 0
               : decider_fold(&line->decider,
                              &(struct event){.kind = EVENT_PAST_BROUGHT, .brought = &brought}, out_error);
    free(told);
    return code;
}

int brought_tell(struct job_line *line, const struct brought_record *record, struct fly_error *out_error)
{
    return tell(line, record->kind, record->batches, record->count, out_error);
}

int brought_add_line(struct job_state *state, const struct job_hardware *hardware,
                     struct fly_error *out_error)
{
    const struct job_brought *brought = &state->brought;
    int code = job_state_add_line(state, hardware, out_error);

    return code < 0 ? code
                    : tell(&state->lines[state->line_count - 1], brought->kind, brought->batches,
                           brought->count, out_error);
}

int brought_keep(struct job_state *state, const struct brought_record *record, struct fly_error *out_error)
{
    struct job_brought *kept = &state->brought;

    kept->kind = record->kind;
    kept->count = 0;
    snprintf(kept->source, sizeof kept->source, "%s", record->source);
    if (record->count == 0)
        return 0;
    kept->batches = arena_alloc(&state->arena, record->count, sizeof kept->batches[0]);
    if (kept->batches == NULL)
        return error_no_memory(out_error);
    memcpy(kept->batches, record->batches, record->count * sizeof kept->batches[0]);
    kept->count = record->count;
    return 0;
}
