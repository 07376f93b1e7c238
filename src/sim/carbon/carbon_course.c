/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/carbon_course.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "model/grid_series.h"

enum { SLICES_MAX = 4 * GRID_PERIODS_MAX };

static const double work_slack = 1e-9;

struct walker {
    const struct carbon_course_request *request;
    struct carbon_course *course;
    struct carbon_plan plan;
    double at_s;    /* since the start */
    double left_s;  /* of the work */
    double limit_w; /* NaN before the first */
    double held_s;
    double known_s; /* since 1970: when the outlook was made; NaN before the first */
};

static int add_slice(struct walker *walker, double length_s, double gpu_j, double limit_w, double work_s,
                     struct fly_error *out_error)
{
    struct carbon_course *course = walker->course;
    double from_s = (double)walker->request->start_s + walker->at_s;
    struct energy_slice *last = NULL, *grown;

    walker->at_s += length_s;
    if (course->slices != NULL && course->count > 0)
        last = &course->slices[course->count - 1];
    if (last != NULL && last->limit_w == limit_w && work_s > 0.0 && last->steps > 0.0) {
        last->end_s = from_s + length_s;
        last->gpu_j += gpu_j;
        last->steps += work_s;
        return 0;
    }
    if (course->count == SLICES_MAX)
        return error_set(out_error, FLY_ELIMIT, "the plan has more than %d stretches; plan less far",
                         SLICES_MAX);
    grown = array_grow(course->slices, course->count, &course->capacity, sizeof grown[0]);
    if (grown == NULL)
        return error_no_memory(out_error);
    course->slices = grown;
    course->slices[course->count++] = (struct energy_slice){.start_s = from_s,
                                                            .end_s = from_s + length_s,
                                                            .gpu_j = gpu_j,
                                                            .host_j = NAN,
                                                            .limit_w = limit_w,
                                                            .steps = work_s};
    return 0;
}

/* The cost of a pause when it ends. No work is done in that time, so it counts as part of the pause. */
static int restore(struct walker *walker, double length_s, struct fly_error *out_error)
{
    const struct carbon_profile *profile = walker->request->profile;
    double power_w = profile->points[profile->fastest].power_w / profile->pue;

    return length_s > 0.0 ? add_slice(walker, length_s, power_w * length_s, 0.0, 0.0, out_error) : 0;
}

/* Runs at a point for a time, or until the work is done. */
static int run_at(struct walker *walker, const struct carbon_point *point, double length_s,
                  struct fly_error *out_error)
{
    const struct carbon_profile *profile = walker->request->profile;
    bool runs = point->limit_w > 0.0,
         done = runs && point->rate * length_s >= walker->left_s * (1.0 - work_slack);
    double gpu_w = point->power_w / profile->pue - (runs ? profile->host_w : 0.0);
    int code = 0;

    if (walker->limit_w == 0.0 && runs)
        code = restore(walker, walker->request->plan.pause.checkpoint_s, out_error);
    if (point->limit_w != walker->limit_w) {
        walker->course->changes += isnan(walker->limit_w) ? 0U : 1U;
        walker->held_s = 0.0;
        walker->limit_w = point->limit_w;
    }
    if (done)
        length_s = walker->left_s / point->rate;
    if (!(length_s > 0.0) || code < 0)
        return code;
    code = add_slice(walker, length_s, gpu_w * length_s, point->limit_w, point->rate * length_s, out_error);
    walker->held_s += length_s;
    walker->left_s = done ? 0.0 : walker->left_s - point->rate * length_s;
    return code;
}

/*
 * Returns until when a forecast counts that was published earlier: only for the current period,
 * since nobody knows when it was published.
 */
static int64_t published_until(const struct grid_answer *answer, double from_s)
{
    const struct grid_series *series[] = {&answer->actual, &answer->published};

    for (int i = 0; i < 2; i++) {
        const struct grid_period *period = grid_series_at(series[i], (int64_t)floor(from_s));

        if (period != NULL)
            return period->end_s;
    }
    return INT64_MIN;
}

static int look(struct walker *walker, struct fly_error *out_error)
{
    const struct carbon_course_request *request = walker->request;
    struct grid_outlook *outlook = &walker->course->outlook;
    double at_s = (double)request->start_s + walker->at_s, known_s = fmin(at_s, (double)request->now_s);
    double to_s = (double)request->start_s + request->bound_s;
    struct grid_outlook_request wanted = {.objective = request->objective, .from_s = known_s, .to_s = to_s};
    int code = 0;

    if (known_s == walker->known_s) {
        grid_outlook_merge(outlook, &request->objective, at_s, to_s);
        return 0;
    }
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        wanted.answers[i] = request->answers[i];
        wanted.published_until_s[i] = INT64_MAX;
        if (wanted.answers[i] != NULL && known_s < (double)request->now_s)
            wanted.published_until_s[i] = published_until(wanted.answers[i], known_s);
    }
    if (outlook->spans == NULL)
        code = grid_outlook_init(outlook, grid_outlook_capacity(&wanted), out_error);
    if (code < 0)
        return code;
    grid_outlook_foretell(outlook, &wanted);
    if (at_s > known_s)
        grid_outlook_merge(outlook, &request->objective, at_s, to_s);
    walker->known_s = known_s;
    return 0;
}

static int step(struct walker *walker, struct fly_error *out_error)
{
    const struct carbon_course_request *request = walker->request;
    struct carbon_course *course = walker->course;
    struct carbon_question question = {
        .profile = request->profile,
        .work_s = walker->left_s,
        .time_s = request->bound_s - walker->at_s,
        .limit_w = walker->limit_w,
        .held_s = walker->held_s,
    };
    struct carbon_decision decision;
    int code = look(walker, out_error);

    if (code < 0)
        return code;
    question.outlook = course->outlook.spans;
    question.outlook_count = course->outlook.count;
    question.stale = course->outlook.stale;
    question.scarce = course->outlook.scarce;
    code = carbon_plan_decide(&walker->plan, &question, &decision, out_error);
    if (code < 0)
        return code;
    course->decisions++;
    course->reasons[decision.reason]++;
    code = run_at(walker, &decision.first, decision.first_s - decision.restore_s, out_error);
    if (code == 0 && decision.valid_s > decision.first_s && walker->left_s > 0.0)
        code = run_at(walker, &decision.second, decision.valid_s - decision.first_s, out_error);
    return code;
}

int carbon_course_walk(const struct carbon_course_request *request, struct carbon_course *out_course,
                       struct fly_error *out_error)
{
    struct walker walker = {
        .request = request, .course = out_course, .left_s = request->work_s, .limit_w = NAN, .known_s = NAN};
    int code;

    *out_course = (struct carbon_course){0};
    code = look(&walker, out_error);
    if (code == 0)
        code = carbon_plan_init(&walker.plan, &request->plan, out_course->outlook.capacity, out_error);
    if (code == 0) {
        while (walker.left_s > 0.0 && code == 0) {
            code = step(&walker, out_error);
            if (request->progress != NULL)
                request->progress(request->progress_context, request->work_s - walker.left_s);
        }
        carbon_plan_deinit(&walker.plan);
    }
    out_course->finish_s = walker.at_s;
    out_course->late = walker.at_s > request->bound_s * (1.0 + work_slack);
    if (code < 0)
        carbon_course_deinit(out_course);
    return code;
}

void carbon_course_deinit(struct carbon_course *course)
{
    grid_outlook_deinit(&course->outlook);
    free(course->slices);
    *course = (struct carbon_course){0};
}

int carbon_course_answer(const struct carbon_course *course, const struct grid_answer *answer, int signal,
                         struct grid_answer *out_answer, struct fly_error *out_error)
{
    const struct grid_outlook *outlook = &course->outlook;
    int code = 0;

    *out_answer = (struct grid_answer){.actual = answer->actual};
    grid_series_init(&out_answer->published, &answer->actual.kind, GRID_PERIODS_MAX);
    for (size_t i = 0; i < answer->published.count && code == 0; i++)
        code = grid_series_add(&out_answer->published, &answer->published.periods[i], out_error);
    for (size_t i = 0; i < outlook->period_counts[signal] && code == 0; i++) {
        struct grid_period period = outlook->periods[signal][i];

        period.issued_s = INT64_MAX;
        if (!isnan(period.value))
            code = grid_series_add(&out_answer->published, &period, out_error);
    }
    if (code == 0)
        code = grid_series_settle(&out_answer->published, out_error);
    if (code < 0)
        grid_series_deinit(&out_answer->published);
    return code;
}
