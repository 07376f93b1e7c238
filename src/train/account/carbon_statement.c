/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_statement.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "train/account/statement_private.h"

enum { MEMORY_MAX = 1 << 30 };

/* Earlier dates mean that the machine's clock was not set yet. */
static const double clock_from_s = 946684800.0; /* 2000-01-01 */
static const double span_most_s = 10.0 * 366 * 86400;
static const double share_slack = 1e-9;

const char *statement_way_name(enum statement_way way)
{
    static const char *const names[] = {"as run", "highest limit", "best single limit", "best mixture"};

    return names[way];
}

const char *statement_part_name(enum statement_part part)
{
    static const char *const names[] = {"GPUs", "host", "PUE", "all"};

    return names[part];
}

/* The energy of the ledger's host within a slice, as run. */
static double host_of(const struct ledger_head *head, const struct energy_slice *slice)
{
    if (head->surroundings.host_w > 0.0)
        return slice->limit_w == 0.0 ? 0.0 : head->surroundings.host_w * (slice->end_s - slice->start_s);
    return slice->host_j;
}

static double pue_of(const struct ledger_head *head)
{
    return head->surroundings.pue > 1.0 ? head->surroundings.pue : 1.0;
}

/* The value as part of a sum. */
static double known(double energy_j)
{
    return isnan(energy_j) ? 0.0 : energy_j;
}

static struct statement_stretch stretch_of(const struct ledger_head *head, const struct energy_slice *slice,
                                           const struct carbon_stretch *at)
{
    struct statement_stretch made = {.start_s = at->start_s, .end_s = at->end_s};
    double host_j = host_of(head, slice) * at->time_share;

    made.energy_j[STATEMENT_GPUS] = at->gpu_j;
    made.energy_j[STATEMENT_HOST] = host_j;
    if (!isnan(at->gpu_j) || !isnan(host_j))
        made.energy_j[STATEMENT_PUE] = (known(at->gpu_j) + known(host_j)) * (pue_of(head) - 1.0);
    else
        made.energy_j[STATEMENT_PUE] = NAN;
    return made;
}

/* Finds the first profile that a ledger has. */
static int find_profile(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    const struct ledger_content *ledger = NULL;
    const struct carbon_profile *bare;
    int code;

    for (size_t i = 0; i < request->ledger_count && ledger == NULL; i++) {
        if (request->ledgers[i].point_count > 0)
            ledger = &request->ledgers[i];
    }
    if (ledger == NULL) {
        snprintf(maker->statement->missing, STATEMENT_TEXT_MAX, "no power profile was measured");
        return 0;
    }
    maker->replay = arena_alloc(maker->arena, 1, sizeof *maker->replay);
    if (maker->replay == NULL)
        return error_no_memory(out_error);
    code = carbon_replay_init(maker->replay, ledger, out_error);
    if (code < 0)
        return code;
    bare = &maker->replay->bare;
    maker->targets[STATEMENT_HIGHEST] = bare->points[bare->count - 1];
    maker->targets[STATEMENT_STATIC] = bare->points[carbon_replay_static(
        maker->replay, ledger, maker->counted[ledger - request->ledgers], &maker->statement->bound)];
    maker->statement->mix = carbon_replay_mix(maker->replay, maker->statement->bound);
    maker->targets[STATEMENT_MIX] = carbon_mix_point(&maker->statement->mix);
    return 0;
}

/* Runs one way, slice by slice. */
static int run_way(struct statement_maker *maker, enum statement_way way, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    struct statement_stretch *stretches = arena_alloc(maker->arena, maker->count, sizeof stretches[0]);
    struct statement_figures *figures = &maker->statement->ways[way];
    size_t count = 0;

    if (stretches == NULL)
        return error_no_memory(out_error);
    figures->start_s = INFINITY;
    figures->end_s = -INFINITY;
    for (size_t i = 0; i < request->ledger_count; i++) {
        const struct ledger_content *ledger = &request->ledgers[i];
        double shift_s = 0.0, time_s = 0.0;

        for (size_t j = 0; j < ledger->slice_count; j++) {
            const struct energy_slice *slice = &ledger->slices[j];
            struct carbon_stretch at = {slice->start_s, slice->end_s, slice->gpu_j, 1.0};
            double length_s;

            if (way != STATEMENT_AS_RUN)
                at = carbon_replay_slice(maker->replay, slice, maker->counted[i], &maker->targets[way],
                                         &shift_s);
            length_s = (slice->end_s - slice->start_s) * at.time_share;
            stretches[count++] = stretch_of(&ledger->head, slice, &at);
            time_s += length_s;
            figures->unmeasured_s += isnan(at.gpu_j) ? length_s : 0.0;
            figures->start_s = fmin(figures->start_s, at.start_s);
            figures->end_s = fmax(figures->end_s, at.end_s);
        }
        figures->time_s = fmax(figures->time_s, time_s);
    }
    figures->known = true;
    figures->limit_w = way == STATEMENT_AS_RUN ? NAN : maker->targets[way].limit_w;
    maker->stretches[way] = stretches;
    return 0;
}

/* Finds the share that the profile covers, and how much the run differed from it. */
static void find_share(struct statement_maker *maker)
{
    const struct statement_request *request = maker->request;
    double all_j = 0.0, covered_j = 0.0, modelled_j = 0.0;
    struct carbon_point at;

    for (size_t i = 0; i < request->ledger_count; i++) {
        for (size_t j = 0; j < request->ledgers[i].slice_count; j++) {
            const struct energy_slice *slice = &request->ledgers[i].slices[j];

            if (isnan(slice->gpu_j))
                continue;
            all_j += slice->gpu_j;
            if (maker->replay == NULL || !carbon_replay_covers(maker->replay, slice, maker->counted[i], &at))
                continue;
            covered_j += slice->gpu_j;
            /* A profile's power is that of all ranks together. */
            modelled_j += at.power_w * (slice->end_s - slice->start_s) / (double)request->ledger_count;
        }
    }
    maker->statement->modelled_share = all_j > 0.0 ? covered_j / all_j : 0.0;
    maker->statement->measured_per_modelled = modelled_j > 0.0 ? covered_j / modelled_j : NAN;
    if (maker->replay == NULL || covered_j > 0.0)
        return;
    snprintf(maker->statement->missing, STATEMENT_TEXT_MAX,
             "none of the energy was used under a limit of the power profile");
    maker->replay = NULL;
}

static int find_facts(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    struct carbon_statement *statement = maker->statement;
    double last_w = NAN;

    maker->counted = arena_alloc(maker->arena, request->ledger_count + 1, sizeof maker->counted[0]);
    if (maker->counted == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < request->ledger_count; i++) {
        const struct ledger_content *ledger = &request->ledgers[i];

        maker->count += ledger->slice_count;
        statement->gpus += ledger->head.gpus;
        statement->torn |= ledger->torn;
        statement->pue = fmax(statement->pue, pue_of(&ledger->head));
        if (ledger->head.surroundings.host_w > 0.0)
            statement->host = STATEMENT_HOST_STATED;
        for (size_t j = 0; j < ledger->slice_count; j++) {
            const struct energy_slice *slice = &ledger->slices[j];

            maker->counted[i] |= slice->steps > 0.0;
            if (statement->host == STATEMENT_HOST_LEFT_OUT && !isnan(slice->host_j))
                statement->host = STATEMENT_HOST_MEASURED;
            if (i == 0 && !isnan(slice->limit_w)) {
                statement->changes += !isnan(last_w) && last_w != slice->limit_w;
                last_w = slice->limit_w;
            }
        }
    }
    if (maker->count == 0)
        return error_set(out_error, FLY_EDATA,
                         "the account of the run holds no energy yet; expected at least one slice, which is "
                         "written at the latest after five minutes");
    return 0;
}

static void find_span(struct statement_maker *maker)
{
    double from_s = INFINITY, to_s = -INFINITY;

    for (int way = 0; way < STATEMENT_WAYS; way++) {
        for (size_t i = 0; maker->stretches[way] != NULL && i < maker->count; i++) {
            const struct statement_stretch *stretch = &maker->stretches[way][i];

            if (stretch->start_s >= clock_from_s) {
                from_s = fmin(from_s, stretch->start_s);
                to_s = fmax(to_s, stretch->end_s);
            }
        }
    }
    maker->from_s = isfinite(from_s) ? (int64_t)floor(from_s) : 0;
    maker->to_s = isfinite(from_s) ? (int64_t)ceil(to_s) : 0;
}

/* Prepares all that needs no figures of the grid. */
static int prepare(struct statement_maker *maker, struct fly_error *out_error)
{
    int code;

    *maker->statement = (struct carbon_statement){.pue = 1.0, .bound = NAN};
    code = find_facts(maker, out_error);
    if (code < 0)
        return code;
    code = find_profile(maker, out_error);
    if (code == 0)
        find_share(maker);
    for (int way = 0; way < STATEMENT_WAYS && code == 0; way++) {
        if (way == STATEMENT_AS_RUN || maker->replay != NULL)
            code = run_way(maker, (enum statement_way)way, out_error);
    }
    find_span(maker);
    return code;
}

bool carbon_statement_span(const struct statement_request *request, int64_t *out_from_s, int64_t *out_to_s)
{
    struct carbon_statement statement;
    struct arena arena;
    struct statement_maker maker = {.request = request, .arena = &arena, .statement = &statement};
    bool known;

    arena_init(&arena, MEMORY_MAX);
    known = prepare(&maker, NULL) == 0 && maker.to_s > maker.from_s;
    arena_deinit(&arena);
    if (known) {
        *out_from_s = maker.from_s;
        *out_to_s = maker.to_s;
    }
    return known;
}

static void set_unknown(struct statement_figures *figures)
{
    *figures = (struct statement_figures){
        .limit_w = NAN, .start_s = NAN, .end_s = NAN, .time_s = NAN, .unmeasured_s = 0.0};
    for (int part = 0; part < STATEMENT_PARTS; part++) {
        figures->energy_j[part] = NAN;
        for (int signal = 0; signal < CARBON_SIGNALS; signal++)
            figures->amount[signal][part] = NAN;
    }
}

static struct statement_saving saving_of(const struct statement_figures *dearer,
                                         const struct statement_figures *cheaper)
{
    struct statement_saving saving = {NAN, NAN, {NAN, NAN}};

    if (!dearer->known || !cheaper->known)
        return saving;
    saving.energy_j = dearer->energy_j[STATEMENT_ALL] - cheaper->energy_j[STATEMENT_ALL];
    saving.time_s = dearer->time_s - cheaper->time_s;
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (dearer->share[signal][GRID_UNKNOWN] < share_slack &&
            cheaper->share[signal][GRID_UNKNOWN] < share_slack)
            saving.amount[signal] =
                dearer->amount[signal][STATEMENT_ALL] - cheaper->amount[signal][STATEMENT_ALL];
    }
    return saving;
}

static int fill(struct statement_maker *maker, struct fly_error *out_error)
{
    const struct statement_request *request = maker->request;
    int code = 0;

    if ((double)maker->to_s - (double)maker->from_s > span_most_s)
        return error_set(out_error, FLY_EDATA,
                         "the account's times lie more than ten years apart; the machine's clock was wrong");
    for (int signal = 0; signal < CARBON_SIGNALS && code == 0; signal++) {
        const struct grid_answer *answer = request->answers[signal];

        if ((answer == NULL && isnan(request->yearly_means[signal])) || maker->to_s <= maker->from_s)
            continue;
        maker->statement->kinds[signal] = answer != NULL ? &answer->actual.kind : NULL;
        code = grid_filler_init(&maker->fillers[signal], answer, request->yearly_means[signal], maker->from_s,
                                maker->to_s, out_error);
        maker->filled[signal] = code == 0;
    }
    return code;
}

int carbon_statement_make(const struct statement_request *request, struct arena *arena,
                          struct carbon_statement *out_statement, struct fly_error *out_error)
{
    struct statement_maker maker = {.request = request, .arena = arena, .statement = out_statement};
    struct statement_figures *ways = out_statement->ways;
    int code = prepare(&maker, out_error);

    if (code == 0)
        code = fill(&maker, out_error);
    for (int way = 0; way < STATEMENT_WAYS && code == 0; way++) {
        if (maker.stretches[way] != NULL)
            statement_sum(&maker, (enum statement_way)way);
        else
            set_unknown(&ways[way]);
    }
    if (code == 0) {
        out_statement->saved = saving_of(&ways[STATEMENT_HIGHEST], &ways[STATEMENT_AS_RUN]);
        out_statement->by_limit = saving_of(&ways[STATEMENT_HIGHEST], &ways[STATEMENT_MIX]);
        out_statement->by_grid = saving_of(&ways[STATEMENT_MIX], &ways[STATEMENT_AS_RUN]);
        code = statement_periods_make(&maker, out_error);
    }
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (maker.filled[signal])
            grid_filler_deinit(&maker.fillers[signal]);
    }
    return code;
}
