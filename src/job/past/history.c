/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/history.h"

#include <math.h>
#include <string.h>

#include "job/core/job_words.h"
#include "job/past/history_fold.h"

double job_history_limit_w(const struct job_history *history, const struct job_row *trial)
{
    const struct job_machine *machine = &history->machines[trial->machine];
    bool own = isnan(machine->highest_limit_w) || trial->left_alone;

    return own && isnan(trial->limit_w) ? machine->max_power_w / machine->gpu_count : trial->limit_w;
}

const char *job_row_outcome(const struct job_row *row)
{
    return row->running ? "running" : row->nothing_learnt ? "nothing_learnt" : job_outcome_name(row->outcome);
}

bool job_row_without_epoch(const struct job_row *row)
{
    return !row->running && !row->nothing_learnt && row->outcome == TRIAL_CRASHED && row->text != NULL &&
           strcmp(row->text, JOB_END_WITHOUT_EPOCH) == 0;
}

const char *job_row_said(const struct job_row *row)
{
    return job_row_without_epoch(row) ? "no epoch" : job_row_outcome(row);
}

bool job_row_is_untold(const struct job_row *row)
{
    return row->running && row->epochs == 0 && !(row->time_s > 0.0);
}

int job_history_read_newest(const struct jobs *jobs, const char *job, uint64_t trials, struct arena *arena,
                            struct job_history *out_history, struct fly_error *out_error)
{
    const struct history_source source = {jobs->backend->read, jobs->self, job, 0};
    struct history_fold fold;
    struct buffer bytes;
    int code;

    buffer_init(&bytes, DIGEST_BYTES_MAX);
    if (jobs->backend->digest != NULL && jobs->backend->digest(jobs->self, job, trials, &bytes, NULL) < 0)
        buffer_clear(&bytes);
    code = history_fold(&source, &(struct history_digest){bytes.data, bytes.length}, arena, &fold, out_error);
    buffer_deinit(&bytes);
    if (code < 0)
        return code;
    if (trials > 0 && fold.history.count > trials) {
        fold.history.rows += fold.history.count - trials;
        fold.history.count = (size_t)trials;
    }
    *out_history = fold.history;
    return 0;
}

int job_history_read(const struct jobs *jobs, const char *job, struct arena *arena,
                     struct job_history *out_history, struct fly_error *out_error)
{
    return job_history_read_newest(jobs, job, 0, arena, out_history, out_error);
}

/* ---- operating points ---- */

static struct fly_operating_point *find_point(struct job_points *points, uint32_t batch_size, double limit_w)
{
    for (size_t i = 0; i < points->count; i++) {
        if (points->points[i].batch_size == batch_size && points->points[i].power_limit_w == limit_w)
            return &points->points[i];
    }
    points->points[points->count] =
        (struct fly_operating_point){.batch_size = batch_size, .power_limit_w = limit_w};
    points->trials[points->count] = 0;
    return &points->points[points->count++];
}

int job_history_points(const struct job_history *history, size_t machine, struct arena *arena,
                       struct job_points *out_points, struct fly_error *out_error)
{
    size_t room = history->count > 0 ? history->count : 1;
    struct job_points points = {.points = arena_alloc(arena, room, sizeof points.points[0]),
                                .trials = arena_alloc(arena, room, sizeof points.trials[0])};

    if (points.points == NULL || points.trials == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        struct fly_operating_point *point;

        if (row->running || row->outcome != TRIAL_REACHED || row->profiled || isnan(row->limit_w) ||
            isnan(row->energy_j) || row->machine != machine || row->revision != history->revision)
            continue;
        point = find_point(&points, row->batch_size, row->limit_w);
        point->energy_j += row->energy_j;
        point->time_s += row->time_s;
        points.trials[point - points.points]++;
    }
    for (size_t i = 0; i < points.count; i++) {
        points.points[i].energy_j /= (double)points.trials[i];
        points.points[i].time_s /= (double)points.trials[i];
    }
    *out_points = points;
    return 0;
}

struct job_grid_sum job_history_grid_sum(const struct job_history *history)
{
    struct job_grid_sum sum = {0};

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];

        if (row->running || !(row->run_energy_j > 0.0))
            continue;
        if (isnan(row->run_grid_amount)) {
            sum.unknown++;
            continue;
        }
        sum.known++;
        sum.amount += row->run_grid_amount;
    }
    if (sum.known == 0)
        sum.amount = NAN;
    return sum;
}
