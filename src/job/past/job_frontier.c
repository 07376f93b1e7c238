/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/job_frontier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>
#include <flyball/pareto.h>

#include "job/core/job_record.h"
#include "job/core/trial_past.h"
#include "job/past/savings.h"
#include "model/job_spec.h"

struct reading {
    struct arena *arena;
    const struct job_row *row; /* the trial that is read */
    struct job_profiles profiles;
    size_t capacity;
};

static int on_profiled(void *fold, const struct log_event *at, const struct profiled_record *record)
{
    struct reading *reading = fold;
    struct job_profiles *profiles = &reading->profiles;
    struct fly_power_point *points;

    if (!record->folded || record->count == 0)
        return 0;
    points = arena_alloc(reading->arena, record->count + 1, sizeof points[0]);
    if (points == NULL)
        return error_no_memory(at->error);
    if (profiles->count == reading->capacity) {
        size_t capacity = 2 * reading->capacity + 16;
        struct job_batch_profile *wider = arena_alloc(reading->arena, capacity, sizeof wider[0]);

        if (wider == NULL)
            return error_no_memory(at->error);
        if (profiles->count > 0)
            memcpy(wider, profiles->profiles, profiles->count * sizeof wider[0]);
        profiles->profiles = wider;
        reading->capacity = capacity;
    }
    memcpy(points, record->points, record->count * sizeof points[0]);
    profiles->profiles[profiles->count++] =
        (struct job_batch_profile){.machine = reading->row->machine,
                                   .batch_size = reading->row->trial.batch_size,
                                   .points = points,
                                   .count = record->count,
                                   .units_per_epoch = record->units_per_epoch};
    return 0;
}

static int visit(void *context, const struct store_event *event, struct fly_error *out_error)
{
    static const struct log_visitor visitor = {.on_profiled = on_profiled};

    return log_tell(&visitor, context, event, NULL, out_error);
}

/* Returns NULL when there is none. */
static const struct job_batch_profile *job_profiles_find(const struct job_profiles *profiles, size_t machine,
                                                         uint32_t batch_size)
{
    for (size_t i = 0; i < profiles->count; i++) {
        if (profiles->profiles[i].machine == machine && profiles->profiles[i].batch_size == batch_size)
            return &profiles->profiles[i];
    }
    return NULL;
}

int job_profiles_read(const struct jobs *jobs, const struct job_history *history, struct arena *arena,
                      struct job_profiles *out_profiles, struct fly_error *out_error)
{
    struct reading reading = {.arena = arena};
    int code = 0;

    for (size_t i = 0; i < history->count && code == 0; i++) {
        const struct job_row *row = &history->rows[i];
        const struct store_query query = {.trial = row->trial.trial};

        if (!row->whole_profile || row->revision != history->revision ||
            job_profiles_find(&reading.profiles, row->machine, row->trial.batch_size) != NULL)
            continue;
        reading.row = row;
        code = jobs->backend->read(jobs->self, history->definition.name, &query, visit, &reading, out_error);
    }
    if (code < 0)
        return code;
    *out_profiles = reading.profiles;
    return 0;
}

enum { LIMITS_MEASURED_MAX = 256 };

/* A ratio this close to 1 is only rounding. */
static const double rounding = 1e-9;

/* Which trials of a batch size count. */
enum trials_wanted { WANT_ALL, WANT_UNSTOPPED, WANT_DEFAULT };

struct gathering {
    const struct job_history *history;
    size_t machine;
    uint32_t batch_size;
    enum trials_wanted wanted;
    const struct job_batch_profile *profile; /* NULL: none */
    double units;                            /* units of the profile per epoch; 1 when not known */
    /* Sums over the trials that take part. */
    double energy_j, time_s;
    /* Over those under one limit of the profile: what they took, and what the profile predicts. */
    double measured_j, measured_s, expected_j, expected_s;
};

/* Sum of all GPUs' highest limits; 1 when not known, and then only energy counts. */
static double max_power_of(const struct fly_job_hardware *machine)
{
    return machine->max_power_w > 0.0 ? machine->max_power_w : 1.0;
}

static bool observed(const struct job_row *trial)
{
    return !trial->running && outcome_observed(trial->outcome) && !isnan(trial->trial.energy_j) &&
           trial->stop != JOB_STOP_DEADLINE;
}

/* Whether the trial shows what an epoch takes, under the revision that holds. */
static bool tells_epochs(const struct gathering *gathering, const struct job_row *trial)
{
    return trial->machine == gathering->machine && trial->trial.batch_size == gathering->batch_size &&
           trial->revision == gathering->history->revision && observed(trial);
}

/* Whether it also shows what a model takes. */
static bool takes_part(const struct gathering *gathering, const struct job_row *trial)
{
    return tells_epochs(gathering, trial) &&
           (gathering->wanted == WANT_ALL || trial->outcome != TRIAL_STOPPED) &&
           (gathering->wanted != WANT_DEFAULT || saving_is_default(gathering->history, trial));
}

static enum trials_wanted wanted_of(const struct job_history *history, size_t machine, uint32_t batch_size)
{
    const struct gathering unstopped = {
        .history = history, .machine = machine, .batch_size = batch_size, .wanted = WANT_UNSTOPPED};

    if (batch_size != history->definition.default_batch_size)
        return isfinite(history->objective.max_slowdown) ? WANT_UNSTOPPED : WANT_ALL;
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *trial = &history->rows[i];

        if (takes_part(&unstopped, trial) && trial->outcome == TRIAL_REACHED &&
            saving_is_default(history, trial))
            return WANT_DEFAULT;
    }
    return WANT_UNSTOPPED;
}

static void take_epochs(struct gathering *gathering, const struct job_row *trial)
{
    const struct job_batch_profile *profile = gathering->profile;

    for (size_t i = 0; profile != NULL && i < profile->count && !trial->trial.profiled; i++) {
        double expected_s = trial->trial.epochs * profile->points[i].time_s * gathering->units;

        if (profile->points[i].limit_w != trial->trial.limit_w)
            continue;
        gathering->measured_j += trial->trial.energy_j;
        gathering->measured_s += trial->trial.time_s;
        gathering->expected_j += expected_s * profile->points[i].power_w;
        gathering->expected_s += expected_s;
    }
}

static void take_part(struct gathering *gathering, const struct job_row *trial, struct epoch_points *points)
{
    gathering->energy_j += trial->trial.energy_j;
    gathering->time_s += trial->trial.time_s;
    points->trials++;
    points->reached += trial->outcome == TRIAL_REACHED;
    points->epochs += trial->trial.epochs;
}

static size_t cheapest(const struct gathering *gathering, double power_scale)
{
    const struct job_batch_profile *profile = gathering->profile;
    double eta = objective_eta(&gathering->history->objective),
           max_power_w = max_power_of(&gathering->history->machines[gathering->machine]);
    double least_j = INFINITY;
    size_t best = 0;

    for (size_t i = 0; i < profile->count; i++) {
        const struct fly_power_point *point = &profile->points[i];
        double cost_j =
            fly_cost(eta, max_power_w, point->time_s * point->power_w * power_scale, point->time_s);

        if (cost_j < least_j) {
            least_j = cost_j;
            best = i;
        }
    }
    return best;
}

static double scale_to(double measured, double expected)
{
    double scale = measured / expected;

    return !isfinite(scale) || scale <= 0.0 || fabs(scale - 1.0) < rounding ? 1.0 : scale;
}

/* What trials took under one limit. */
struct under_limit {
    double limit_w, energy_j, time_s;
    uint64_t epochs;
};

static int by_limit(const void *left, const void *right)
{
    const struct fly_power_point *a = left, *b = right;

    return (a->limit_w > b->limit_w) - (a->limit_w < b->limit_w);
}

/*
 * The trial's limit; when limits cannot be set and the GPU's own is not known, one GPU's share of
 * `max_power_of`.
 */
static double limit_of(const struct job_history *history, const struct job_row *trial)
{
    const struct fly_job_hardware *machine = &history->machines[trial->machine];
    double limit_w = job_history_limit_w(history, trial);
    bool unknown = isnan(limit_w) && !(machine->max_power_w > 0.0);

    return unknown ? max_power_of(machine) / machine->gpu_count : limit_w;
}

/* Without a profile (limits cannot be set, or the policy chooses them itself) only trials tell. */
static void add_measured(const struct gathering *gathering, struct epoch_points *points)
{
    const struct job_history *history = gathering->history;
    struct under_limit limits[LIMITS_MEASURED_MAX];
    size_t count = 0;

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *trial = &history->rows[i];
        double limit_w = limit_of(history, trial);
        size_t at = 0;

        if (!tells_epochs(gathering, trial) || trial->trial.profiled || isnan(limit_w))
            continue;
        while (at < count && limits[at].limit_w != limit_w)
            at++;
        if (at == LIMITS_MEASURED_MAX)
            continue;
        if (at == count)
            limits[count++] = (struct under_limit){.limit_w = limit_w};
        limits[at].energy_j += trial->trial.energy_j;
        limits[at].time_s += trial->trial.time_s;
        limits[at].epochs += trial->trial.epochs;
    }
    for (size_t i = 0; i < count; i++) {
        if (limits[i].epochs > 0 && limits[i].time_s > 0.0 && limits[i].energy_j > 0.0)
            points->points[points->count++] =
                (struct fly_power_point){limits[i].limit_w, limits[i].energy_j / limits[i].time_s,
                                         limits[i].time_s / (double)limits[i].epochs};
    }
    qsort(points->points, points->count, sizeof points->points[0], by_limit);
}

static void add_profile(const struct gathering *gathering, struct epoch_points *points)
{
    const struct job_batch_profile *profile = gathering->profile;
    bool units_known = profile->units_per_epoch > 0.0;
    double time_scale = 1.0, power_scale = 1.0;

    if (gathering->expected_s > 0.0) {
        time_scale = scale_to(gathering->measured_s, gathering->expected_s);
        power_scale = scale_to(gathering->measured_j, gathering->expected_j * time_scale);
        if (cheapest(gathering, power_scale) != cheapest(gathering, 1.0))
            power_scale = 1.0;
    } else if (!units_known && points->epochs > 0) {
        /* Only trials that measured the profile too tell what an epoch takes. */
        time_scale =
            gathering->time_s / (double)points->epochs / profile->points[cheapest(gathering, 1.0)].time_s;
    } else if (!units_known) {
        return;
    }
    for (size_t i = 0; i < profile->count && time_scale > 0.0; i++)
        points->points[points->count++] =
            (struct fly_power_point){profile->points[i].limit_w, profile->points[i].power_w * power_scale,
                                     profile->points[i].time_s * gathering->units * time_scale};
}

/* Runs of the default ran only under the highest limit: what they took is that limit's point. */
static void set_default(const struct gathering *gathering, struct epoch_points *points)
{
    double highest_w = gathering->history->machines[gathering->machine].highest_limit_w;

    for (size_t i = 0; i < points->count && points->epochs > 0 && gathering->wanted == WANT_DEFAULT; i++) {
        if (points->points[i].limit_w == highest_w)
            points->points[i] = (struct fly_power_point){highest_w, gathering->energy_j / gathering->time_s,
                                                         gathering->time_s / (double)points->epochs};
    }
}

/* What each trial took, in epochs at its limit, so that trials under different limits can be compared. */
static struct saving_sample sample_of(const struct epoch_points *points, const struct job_row *trial,
                                      bool time)
{
    struct saving_sample sample = {
        .delivered = trial->outcome == TRIAL_REACHED, .amount = trial->trial.epochs, .step = 1.0};

    for (size_t i = 0; i < points->count && !trial->trial.profiled; i++) {
        const struct fly_power_point *point = &points->points[i];

        if (point->limit_w == trial->trial.limit_w)
            sample.amount = time ? trial->trial.time_s / point->time_s
                                 : trial->trial.energy_j / (point->time_s * point->power_w);
    }
    return sample;
}

static void add_bounds(const struct gathering *gathering, struct saving_sample *samples,
                       struct epoch_points *points)
{
    for (int time = 0; time < 2; time++) {
        size_t count = 0;

        for (size_t i = 0; i < gathering->history->count; i++) {
            if (takes_part(gathering, &gathering->history->rows[i]))
                samples[count++] = sample_of(points, &gathering->history->rows[i], time == 1);
        }
        *(time == 1 ? &points->time : &points->energy) = saving_bounds_of(samples, count);
    }
}

int epoch_points_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                    uint32_t batch_size, struct epoch_points *out_points, struct fly_error *out_error)
{
    struct gathering gathering = {.history = history,
                                  .machine = machine,
                                  .batch_size = batch_size,
                                  .wanted = wanted_of(history, machine, batch_size),
                                  .units = 1.0};
    struct saving_sample *samples = calloc(history->count + 1, sizeof samples[0]);

    if (samples == NULL)
        return error_no_memory(out_error);
    gathering.profile = job_profiles_find(profiles, machine, batch_size);
    if (gathering.profile != NULL && gathering.profile->units_per_epoch > 0.0)
        gathering.units = gathering.profile->units_per_epoch;
    out_points->batch_size = batch_size;
    out_points->trials = out_points->reached = out_points->epochs = 0;
    out_points->count = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *trial = &history->rows[i];

        if (tells_epochs(&gathering, trial))
            take_epochs(&gathering, trial);
        if (takes_part(&gathering, trial))
            take_part(&gathering, trial, out_points);
    }
    if (gathering.profile != NULL)
        add_profile(&gathering, out_points);
    else
        add_measured(&gathering, out_points);
    set_default(&gathering, out_points);
    add_bounds(&gathering, samples, out_points);
    free(samples);
    return 0;
}

const char *const job_frontier_left_out[LEFT_OUT_REASON_COUNT] = {
    [LEFT_OUT_UNPOWERED] = "its trials ran under several power limits, and its profile is not whole",
    [LEFT_OUT_UNREACHED] = "no trial of it has reached the target yet",
    [LEFT_OUT_UNBOUNDED] = "its time or energy is not a finite number above 0",
};

/* Why a batch size does not run any more; NULL: it may. The default always may: it is what others replace. */
static const char *barred(const struct fly_job_definition *definition, const struct decision_numbers *numbers,
                          uint32_t size)
{
    if (size == definition->default_batch_size)
        return NULL;
    if (numbers->does_not_fit_from > 0 && size >= numbers->does_not_fit_from)
        return "it does not fit into the GPUs' memory";
    for (size_t i = 0; i < numbers->known_count; i++) {
        const struct decision_known *known = &numbers->known[i];

        if (known->batch_size == size && known->worse)
            return "its models are worse than allowed";
        if (known->batch_size == size && known->given_up)
            return "it is given up: its trials crashed again and again";
    }
    return NULL;
}

static struct batch_figures figures_of(const struct job_frontier_batch *batch)
{
    return (struct batch_figures){
        .batch_size = batch->epoch.batch_size,
        .points = batch->epoch.points,
        .point_count = batch->epoch.count,
        .epochs = batch->epochs,
        .unpowered = batch->epoch.reached > 0 && batch->epoch.count == 0,
    };
}

static int choose(struct job_frontier *frontier, struct fly_error *out_error)
{
    const struct operating_points *points = &frontier->points;
    bool known = points->default_point < points->count;

    frontier->chosen = 0;
    if (points->count == 0)
        return 0;
    frontier->lacks_bound = isfinite(frontier->objective.max_slowdown) && !known;
    if (frontier->lacks_bound)
        frontier->objective.max_slowdown = INFINITY;
    return fly_pareto_choose(points->points, points->count, &frontier->objective, frontier->max_power_w,
                             known ? points->points[points->default_point].time_s : NAN, &frontier->chosen,
                             out_error);
}

/* What is known of the job and the hardware before any trial. */
static struct job_frontier begin(const struct job_history *history, size_t machine)
{
    const struct fly_job_hardware *hardware = &history->machines[machine];
    struct job_frontier frontier = {
        .objective = history->objective,
        .max_power_w = hardware->max_power_w > 0.0 ? hardware->max_power_w : 1.0,
    };

    frontier.objective.eta = objective_eta(&history->objective);
    frontier.reference = (struct fly_operating_point){
        .batch_size = history->definition.default_batch_size,
        .power_limit_w = hardware->highest_limit_w > 0.0 ? hardware->highest_limit_w
                                                         : frontier.max_power_w / hardware->gpu_count};
    return frontier;
}

/* Pure but for memory of the arena. FLY_ENOMEM. */
static int job_frontier_of(const struct job_history *history, const struct job_profiles *profiles,
                           size_t machine, const struct decision_numbers *numbers, struct arena *arena,
                           struct job_frontier *out_frontier, struct fly_error *out_error)
{
    const struct fly_job_definition *definition = &history->definition;
    struct job_frontier frontier = begin(history, machine);
    struct batch_figures *figures = arena_alloc(arena, definition->batch_count, sizeof figures[0]);
    int code = 0;

    frontier.batches = arena_alloc(arena, definition->batch_count, sizeof frontier.batches[0]);
    if (figures == NULL || frontier.batches == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < definition->batch_count && code == 0; i++) {
        struct job_frontier_batch *batch = &frontier.batches[i];
        uint32_t size = definition->batch_sizes[i];

        code = epoch_points_of(history, profiles, machine, size, &batch->epoch, out_error);
        batch->barred = barred(definition, numbers, size);
        batch->epochs = batch->epoch.reached > 0 && batch->barred == NULL
                            ? (double)batch->epoch.epochs / (double)batch->epoch.reached
                            : INFINITY;
        figures[i] = figures_of(batch);
    }
    if (code == 0)
        code = batch_points_of(figures, definition->batch_count, frontier.reference, arena, &frontier.points,
                               out_error);
    if (code == 0)
        code = choose(&frontier, out_error);
    if (code == 0)
        *out_frontier = frontier;
    return code;
}

/* Reads what was known when the newest trial on this hardware was chosen. */
static int read_numbers(const struct jobs *jobs, const struct job_history *history, size_t machine,
                        struct decision_numbers *out_numbers, struct fly_error *out_error)
{
    struct trial_past past = trial_past_empty;
    struct store_query query = {0};
    int code;

    for (size_t i = 0; i < history->count; i++)
        query.trial = history->rows[i].machine == machine ? history->rows[i].trial.trial : query.trial;
    code =
        jobs->backend->read(jobs->self, history->definition.name, &query, trial_past_visit, &past, out_error);
    decision_numbers_read(code == 0 ? past.record.numbers : NULL, out_numbers);
    trial_past_deinit(&past);
    return code;
}

int job_frontier_read(const struct jobs *jobs, const struct job_history *history,
                      const struct job_profiles *profiles, size_t machine, struct arena *arena,
                      struct job_frontier *out_frontier, struct fly_error *out_error)
{
    struct decision_numbers numbers;
    int code = read_numbers(jobs, history, machine, &numbers, out_error);

    return code == 0 ? job_frontier_of(history, profiles, machine, &numbers, arena, out_frontier, out_error)
                     : code;
}
