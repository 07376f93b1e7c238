/* SPDX-License-Identifier: Apache-2.0 */
/* What a job knows of itself on one kind of hardware. */
#include "job/decide/line.h"
#include "base/math/student.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>

enum { GIB_SHIFT = 30 };

/* By how much the samples of an epoch may differ between batch sizes, beside those of one batch. */
static const double samples_apart = 1.05;

static uint64_t whole_gib(uint64_t bytes)
{
    return (bytes + (1u << (GIB_SHIFT - 1))) >> GIB_SHIFT;
}

size_t job_state_line(const struct job_state *state, const struct job_hardware *hardware)
{
    for (size_t i = 0; i < state->line_count; i++) {
        const struct job_line *line = &state->lines[i];

        if (strcmp(line->gpu_model, hardware->gpu_model) == 0 && line->gpu_count == hardware->gpu_count &&
            line->world_size == hardware->world_size &&
            whole_gib(line->gpu_memory_bytes) == whole_gib(hardware->gpu_memory_bytes))
            return i;
    }
    return state->line_count;
}

size_t job_line_batch(const struct job_line *line, uint32_t size)
{
    size_t at = 0;

    while (at < line->spec->batch_count && line->spec->batches[at].size != size)
        at++;
    return at;
}

/* ---- making one ---- */

/* Chooses the batch sizes that the ranks can share. */
static int choose_batches(const struct fly_job_definition *definition, struct job_line *line,
                          const double *limits_w, size_t limit_count, struct fly_error *out_error)
{
    struct job_spec *spec = line->spec;
    struct batch_choice *batches = arena_alloc(&line->arena, definition->batch_count, sizeof batches[0]);

    if (batches == NULL)
        return error_no_memory(out_error);
    if (definition->default_batch_size % line->world_size != 0)
        return error_set(
            out_error, FLY_EUSAGE,
            "job '%s': %u ranks cannot share the default batch size %u evenly; choose a multiple",
            definition->name, line->world_size, definition->default_batch_size);
    for (size_t i = 0; i < definition->batch_count; i++) {
        uint32_t size = definition->batch_sizes[i];

        if (size % line->world_size != 0)
            continue;
        if (size == definition->default_batch_size)
            spec->default_batch = spec->batch_count;
        batches[spec->batch_count++] = (struct batch_choice){size, limits_w, limit_count};
    }
    spec->batches = batches;
    return 0;
}

/* When limits cannot be set there is one limit, whose height only weighs time. */
static int choose_limits(const struct fly_job_definition *definition, struct job_line *line,
                         const struct job_hardware *hardware, double **out_limits_w, size_t *out_count,
                         struct fly_error *out_error)
{
    size_t count = hardware->limit_count > 0 ? hardware->limit_count : 1;
    double *limits_w = arena_alloc(&line->arena, count, sizeof limits_w[0]);
    double eta = objective_eta(line->spec->objective);

    if (limits_w == NULL)
        return error_no_memory(out_error);
    line->limits_known = hardware->limit_count > 0;
    if (line->limits_known)
        memcpy(limits_w, hardware->limits_w, count * sizeof limits_w[0]);
    else if (hardware->max_power_w > 0.0)
        limits_w[0] = hardware->max_power_w / hardware->gpu_count;
    else if (eta == 1.0)
        limits_w[0] = 1.0;
    else
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s': the GPUs' highest power is not known, and time is weighed with it; give "
                         "max_power_w, or choose the objective 'energy'",
                         definition->name);
    line->spec->max_power_w =
        hardware->max_power_w > 0.0 ? hardware->max_power_w : limits_w[count - 1] * hardware->gpu_count;
    *out_limits_w = limits_w;
    *out_count = count;
    return 0;
}

static int set_up(const struct job_state *state, struct job_line *line, const struct job_hardware *hardware,
                  struct fly_error *out_error)
{
    struct fly_objective *objective = arena_alloc(&line->arena, 1, sizeof *objective);
    double *limits_w = NULL;
    size_t limit_count = 0;
    int code;

    line->spec = arena_alloc(&line->arena, 1, sizeof *line->spec);
    line->facts = arena_alloc(&line->arena, state->definition.batch_count, sizeof line->facts[0]);
    line->parts = arena_alloc(&line->arena, state->definition.batch_count, sizeof line->parts[0]);
    if (objective == NULL || line->spec == NULL || line->facts == NULL || line->parts == NULL)
        return error_no_memory(out_error);
    *objective = state->objective;
    *line->spec = (struct job_spec){.name = state->definition.name,
                                    .max_epochs = state->definition.max_epochs,
                                    .eta = objective_eta(objective),
                                    .objective = objective,
                                    .gpu_count = hardware->gpu_count};
    code = choose_limits(&state->definition, line, hardware, &limits_w, &limit_count, out_error);
    if (code == 0)
        code = choose_batches(&state->definition, line, limits_w, limit_count, out_error);
    if (code < 0)
        return code;
    line->excluded = line->spec->batch_count;
    return decider_init(&line->decider, line->spec, state->policy, &state->parameters, &line->arena,
                        out_error);
}

void job_lines_tell_left(struct job_state *state)
{
    double left = job_state_recurrences_left(state);

    for (size_t i = 0; i < state->line_count; i++)
        state->lines[i].decider.recurrences_left = left;
}

int job_state_add_line(struct job_state *state, const struct job_hardware *hardware,
                       struct fly_error *out_error)
{
    struct job_line *line = &state->lines[state->line_count];
    int code;

    if (state->line_count == JOB_HARDWARE_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "job '%s': it ran on %d kinds of hardware, and may on no more; use another name",
                         state->definition.name, JOB_HARDWARE_MAX);
    *line = (struct job_line){.gpu_count = hardware->gpu_count,
                              .world_size = hardware->world_size,
                              .gpu_memory_bytes = hardware->gpu_memory_bytes,
                              .growth = 1.0};
    snprintf(line->gpu_model, sizeof line->gpu_model, "%s", hardware->gpu_model);
    arena_init(&line->arena, JOB_STATE_MAX);
    code = set_up(state, line, hardware, out_error);
    if (code < 0) {
        arena_deinit(&line->arena);
        return code;
    }
    state->line_count++;
    job_lines_tell_left(state);
    return job_lines_exclude(state, out_error);
}

int job_line_renew(struct job_state *state, struct job_line *line, struct fly_error *out_error)
{
    size_t count = line->spec->batch_count;
    struct decider anew;
    int code = decider_init(&anew, line->spec, state->policy, &state->parameters, &line->arena, out_error);

    if (code < 0)
        return code;
    decider_deinit(&line->decider);
    line->decider = anew;
    memset(line->facts, 0, count * sizeof line->facts[0]);
    memset(line->parts, 0, count * sizeof line->parts[0]);
    line->growth = 1.0;
    line->recurrences = line->baseline_runs = line->anew_trial = 0;
    line->baseline_time_s = 0.0;
    line->excluded = count;
    return job_lines_exclude(state, out_error);
}

void job_line_deinit(struct job_line *line)
{
    decider_deinit(&line->decider);
    arena_deinit(&line->arena);
}

/* ---- what fits ---- */

/* Whether what did not fit on `other` does not fit on `line` either: the same hardware, or no more memory. */
static bool no_roomier(const struct job_line *line, const struct job_line *other)
{
    return line == other || (line->gpu_memory_bytes > 0 && other->gpu_memory_bytes > 0 &&
                             whole_gib(line->gpu_memory_bytes) <= whole_gib(other->gpu_memory_bytes));
}

static size_t first_overflowing(const struct job_state *state, const struct job_line *line)
{
    size_t first = line->spec->batch_count;

    for (size_t i = 0; i < state->line_count; i++) {
        const struct job_line *other = &state->lines[i];

        if (other->overflowing == 0 || !no_roomier(line, other))
            continue;
        while (first > 0 && line->spec->batches[first - 1].size / line->world_size >= other->overflowing)
            first--;
    }
    return first;
}

int job_lines_exclude(struct job_state *state, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < state->line_count && code == 0; i++) {
        struct job_line *line = &state->lines[i];
        size_t first = first_overflowing(state, line);

        if (first >= line->excluded)
            continue;
        line->excluded = first;
        code =
            decider_fold(&line->decider,
                         &(struct event){.kind = EVENT_BATCHES_EXCLUDED, .first_excluded = first}, out_error);
    }
    return code;
}

/* ---- what is best ---- */

double job_line_longest_s(const struct job_line *line, size_t batch)
{
    return line->facts[batch].reached > 0 ? line->growth * line->facts[batch].longest_s : NAN;
}

double job_line_reference_s(const struct job_line *line)
{
    const struct batch_facts *facts = &line->facts[line->spec->default_batch];

    if (line->baseline_runs > 0)
        return line->growth * line->baseline_time_s / (double)line->baseline_runs;
    return facts->reached > 0 ? line->growth * facts->reached_time_s / (double)facts->reached : NAN;
}

bool job_line_keeps_bound(const struct job_line *line, size_t batch)
{
    const struct batch_facts *facts = &line->facts[batch];
    double reference_s = job_line_reference_s(line);

    if (decider_chooses_pairs(&line->decider))
        return decider_keeps_bound(&line->decider, batch);
    if (batch == line->spec->default_batch || facts->reached == 0 || isnan(reference_s))
        return true;
    return line->growth * facts->reached_time_s / (double)facts->reached <=
           line->spec->objective->max_slowdown * reference_s;
}

bool job_line_runs(const struct job_line *line, size_t batch)
{
    return batch < line->excluded && !line->facts[batch].worse && !decider_gave_up(&line->decider, batch);
}

bool job_line_untried(const struct job_line *line, size_t batch)
{
    uint64_t observed = 0;

    for (size_t i = 0; i < line->spec->batch_count; i++)
        observed += line->facts[i].observed;
    return observed > 0 && line->facts[batch].observed == 0;
}

/* The best when nothing is known: the default, else the largest that runs, else what fits. */
static size_t best_unknown(const struct job_line *line)
{
    size_t best = line->excluded;

    if (job_line_runs(line, line->spec->default_batch))
        return line->spec->default_batch;
    while (best > 0 && !job_line_runs(line, best - 1))
        best--;
    if (best > 0)
        return best - 1;
    return line->excluded > 0 ? line->excluded - 1 : 0;
}

size_t job_line_best(const struct job_line *line)
{
    size_t best = 0;
    double least_j = INFINITY;

    for (size_t i = 0; i < line->excluded; i++) {
        const struct batch_facts *facts = &line->facts[i];

        /* What failed tries took counts too. */
        if (job_line_runs(line, i) && facts->priced > 0 && facts->cost_j / (double)facts->priced < least_j &&
            job_line_keeps_bound(line, i)) {
            best = i;
            least_j = facts->cost_j / (double)facts->priced;
        }
    }
    return isfinite(least_j) ? best : best_unknown(line);
}

int job_line_epochs(const struct job_line *line, size_t batch, double limit_w, bool *out_known,
                    uint32_t *out_epochs, struct fly_error *out_error)
{
    const struct decider_profile *profile = &line->decider.profiles[batch];
    double units = line->facts[batch].units_per_epoch;

    *out_known = false;
    *out_epochs = line->spec->max_epochs;
    for (size_t i = 0; units > 0.0 && i < profile->count; i++) {
        const struct fly_power_point *point = &profile->points[i];

        if (point->limit_w != limit_w)
            continue;
        *out_known = true;
        return decider_epoch_cap(&line->decider, batch, point->time_s * point->power_w * units,
                                 point->time_s * units, out_epochs, out_error);
    }
    return 0;
}

/* An epoch has as many samples at every batch size, where units are steps; a unit may be a whole epoch too.
 */
double job_line_units(const struct job_line *line, size_t batch)
{
    const struct batch_choice *batches = line->spec->batches;
    double most = INFINITY, least = 0.0, nearest = INFINITY, samples = 0.0;

    if (line->facts[batch].units_per_epoch > 1.0)
        return line->growth * line->facts[batch].units_per_epoch;
    if (line->facts[batch].units_per_epoch > 0.0)
        return line->facts[batch].units_per_epoch;
    for (size_t i = 0; i < line->spec->batch_count; i++) {
        double units = line->facts[i].units_per_epoch, size = batches[i].size;
        double apart = fabs(size - batches[batch].size);

        if (!(units > 1.0))
            continue;
        most = fmin(most, (units + 1.0) * size); /* the last batch may be smaller, or left out */
        least = fmax(least, (units - 1.0) * size);
        if (apart < nearest) {
            nearest = apart;
            samples = units * size;
        }
    }
    return least <= samples_apart * most ? ceil(line->growth * samples / batches[batch].size) : 0.0;
}

/* The nearest other batch size with a profile, by ratio; batch_count: none. */
static size_t nearest_profiled(const struct job_line *line, size_t batch)
{
    size_t count = line->spec->batch_count, nearest = count;
    double size = line->spec->batches[batch].size, least = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double ratio = line->spec->batches[i].size / size, apart = fmax(ratio, 1.0 / ratio);

        if (i == batch || line->decider.profiles[i].count == 0 || apart >= least)
            continue;
        nearest = i;
        least = apart;
    }
    return nearest;
}

static bool is_in_part(const struct profile_part *part, double limit_w)
{
    for (size_t i = 0; i < part->count; i++) {
        if (part->points[i].limit_w == limit_w)
            return true;
    }
    return false;
}

double job_line_dearer(const struct job_line *line, size_t batch)
{
    size_t other = nearest_profiled(line, batch);
    const struct decider_profile *profile = &line->decider.profiles[other];
    double sum = 0.0, count = 0.0, least = INFINITY, highest_w = 0.0, at_highest = NAN;

    if (other == line->spec->batch_count)
        return 0.0;
    for (size_t i = 0; i < profile->count; i++) {
        const struct fly_power_point *point = &profile->points[i];
        double cost =
            fly_cost(line->spec->eta, line->spec->max_power_w, point->power_w * point->time_s, point->time_s);

        least = fmin(least, cost);
        if (point->limit_w > highest_w) {
            highest_w = point->limit_w;
            at_highest = cost;
        }
        if (is_in_part(&line->parts[batch], point->limit_w)) {
            sum += cost;
            count++;
        }
    }
    return (count > 0.0 ? sum / count : at_highest) / least;
}

/* ---- what was observed ---- */

static bool is_baseline(const struct job_line *line, const struct line_observation *observed)
{
    const struct batch_choice *batch = &line->spec->batches[line->spec->default_batch];

    return observed->batch == line->spec->default_batch && !observed->profiled &&
           (!line->limits_known || observed->limit_w == batch_highest_limit_w(batch));
}

void job_line_observe(struct job_line *line, const struct line_observation *observed)
{
    struct batch_facts *facts = &line->facts[observed->batch];

    facts->observed++;
    facts->time_s += observed->time_s;
    if (!isnan(observed->energy_j)) {
        facts->cost_j +=
            fly_cost(line->spec->eta, line->spec->max_power_w, observed->energy_j, observed->time_s);
        facts->energy_j += observed->energy_j;
        facts->priced += observed->reached;
        facts->reached_energy_j += observed->reached ? observed->energy_j : 0.0;
    }
    if (!observed->reached)
        return;
    facts->reached++;
    facts->reached_epochs += observed->epochs;
    facts->reached_time_s += observed->time_s;
    facts->longest_s = fmax(facts->longest_s, observed->time_s);
    if (is_baseline(line, observed)) {
        line->baseline_runs++;
        line->baseline_time_s += observed->time_s;
    }
}

/* ---- how good the models are ---- */

static int leave(struct job_line *line, size_t batch, struct fly_error *out_error)
{
    return decider_fold(&line->decider, &(struct event){.kind = EVENT_BATCH_GIVEN_UP, .given_up = batch},
                        out_error);
}

int job_line_take_final(const struct job_state *state, struct job_line *line, size_t batch, double metric,
                        struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &state->definition;
    const struct final_metrics *usual = &line->facts[line->spec->default_batch].final;
    int code = 0;

    if (isnan(definition->max_metric_loss))
        return 0;
    final_metrics_take(&line->facts[batch].final, metric);
    for (size_t i = 0; i < line->spec->batch_count && code == 0; i++) {
        struct batch_facts *facts = &line->facts[i];

        if (facts->worse || !final_metrics_worse(usual, &facts->final, definition->max_metric_loss,
                                                 definition->target == FLY_TARGET_AT_LEAST))
            continue;
        facts->worse = true;
        code = leave(line, i, out_error);
    }
    return code;
}

int job_line_tell_left(struct job_line *line, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < line->spec->batch_count && code == 0; i++) {
        if (line->facts[i].worse)
            code = leave(line, i, out_error);
    }
    return code;
}

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

static bool is_wanted(const struct fly_job_definition *wanted, uint32_t size)
{
    bool is = false;

    for (size_t i = 0; i < wanted->batch_count; i++)
        is |= wanted->batch_sizes[i] == size;
    return is;
}

void brought_gather(const struct job_state *state, const struct fly_job_definition *wanted,
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

/* ---- unfinished profiles, final metrics ---- */

/* The index of a limit, or where it would be inserted. */
static size_t find(const struct profile_part *part, double limit_w)
{
    size_t at = 0;

    while (at < part->count && part->points[at].limit_w < limit_w)
        at++;
    return at;
}

static bool is_at(const struct profile_part *part, size_t at, double limit_w)
{
    return at < part->count && part->points[at].limit_w == limit_w;
}

/* Doubles the room, so that little is left unused in the arena. */
static int make_room(struct profile_part *part, struct arena *arena, struct fly_error *out_error)
{
    size_t capacity = part->capacity > 0 ? 2 * part->capacity : 16;
    struct fly_power_point *points;

    if (part->count < part->capacity)
        return 0;
    points = arena_alloc(arena, capacity, sizeof points[0]);
    if (points == NULL)
        return error_no_memory(out_error);
    if (part->count > 0)
        memcpy(points, part->points, part->count * sizeof points[0]);
    part->points = points;
    part->capacity = capacity;
    return 0;
}

int profile_part_take(struct profile_part *part, struct arena *arena, const struct fly_power_point *points,
                      size_t count, struct fly_error *out_error)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = find(part, points[i].limit_w);

        if (!is_at(part, at, points[i].limit_w)) {
            if (part->count == JOB_KNOWN_MAX)
                continue;
            if (make_room(part, arena, out_error) < 0)
                return FLY_ENOMEM;
            memmove(&part->points[at + 1], &part->points[at], (part->count - at) * sizeof part->points[0]);
            part->count++;
        }
        part->points[at] = points[i];
    }
    return 0;
}

bool profile_part_has(const struct profile_part *part, const struct fly_power_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = find(part, points[i].limit_w);

        if (!is_at(part, at, points[i].limit_w) || part->points[at].power_w != points[i].power_w ||
            part->points[at].time_s != points[i].time_s)
            return false;
    }
    return true;
}

enum { RUNS_LEAST = 2 };

void final_metrics_take(struct final_metrics *metrics, double metric)
{
    double distance = metric - metrics->mean;

    if (!isfinite(metric))
        return;
    metrics->count++;
    metrics->mean += distance / (double)metrics->count;
    metrics->squares += distance * (metric - metrics->mean);
}

/* The variance of the mean. */
static double doubt(const struct final_metrics *metrics)
{
    double count = (double)metrics->count;

    return metrics->squares / (count - 1.0) / count;
}

bool final_metrics_worse(const struct final_metrics *usual, const struct final_metrics *other, double most,
                         bool larger_is_better)
{
    double loss = larger_is_better ? usual->mean - other->mean : other->mean - usual->mean;
    double one, two, all;

    if (usual->count < RUNS_LEAST || other->count < RUNS_LEAST || !(loss > most))
        return false;
    one = doubt(usual);
    two = doubt(other);
    all = one + two;
    if (!(all > 0.0)) /* equal seeds give equal metrics */
        return true;
    return (loss - most) / sqrt(all) >
           student_95(all * all /
                      (one * one / ((double)usual->count - 1.0) + two * two / ((double)other->count - 1.0)));
}
