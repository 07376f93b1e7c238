/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/carbon_planning.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/carbon/carbon_view.h"
#include "cli/options/carbon_options.h"
#include "cli/options/small_options.h"
#include "grid/forecast.h"
#include "grid/providers.h"

enum { NS_PER_S = 1000000000, DAY_S = 86400, AHEAD_MOST_S = 366 * DAY_S, MEMORY_MAX = 1 << 30 };

/* The values of a live training. */
static const double least_gain = 0.002, dwell_s = 300.0;
static const double hour_s = 3600.0;

static int read_profile(const struct cli_call *call, struct carbon_planning *planning,
                        struct fly_error *out_error)
{
    planning->request.profile = &planning->profile;
    return carbon_read_profile(call, &planning->source, &planning->profile,
                               &planning->ledger.head.surroundings, out_error);
}

/* Reads the work as a time at the fastest limit. */
static int read_work(const struct cli_call *call, struct carbon_planning *planning,
                     struct fly_error *out_error)
{
    double step_s = INFINITY;

    if (cli_set(call, "work") == cli_set(call, "steps"))
        return cli_usage(call, out_error,
                         "how much there is to do has to be said by one of --work and --steps");
    if (cli_set(call, "work"))
        return carbon_read_duration(call, "work", &planning->request.work_s, out_error);
    for (size_t i = 0; i < planning->source.count; i++)
        step_s = fmin(step_s, planning->source.points[i].time_s);
    planning->request.work_s = (double)cli_integer(call, "steps") * step_s;
    return 0;
}

static int read_deadline(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error)
{
    struct carbon_course_request *request = &planning->request;
    const char *finish = cli_text(call, "finish-by");
    int64_t finish_s;
    int code = carbon_read_duration(call, "deadline", &request->bound_s, out_error);

    if (code < 0)
        return code;
    if (finish != NULL) {
        if (!finish_time_parse(finish, request->start_s, &finish_s))
            return cli_value_error(call, "finish-by", finish,
                                   "a time as 07:30, 2026-11-22T07:30 or 2026-11-22T07:30Z", out_error);
        request->bound_s = (double)(finish_s - request->start_s);
    }
    if (request->bound_s < request->work_s)
        return cli_usage(call, out_error,
                         "%g s of work cannot end within %g s even at the fastest limit; give it more time",
                         request->work_s, request->bound_s);
    return 0;
}

static int read_bound(const struct cli_call *call, struct carbon_planning *planning,
                      struct fly_error *out_error)
{
    struct carbon_course_request *request = &planning->request;
    int given = cli_given(call, "max-slowdown") + cli_set(call, "deadline") + cli_set(call, "finish-by");
    double factor = 1.0;
    int code = 0;

    if (given > 1)
        return cli_usage(call, out_error,
                         "--max-slowdown, --deadline and --finish-by all bound the time; give one of them");
    if (cli_set(call, "deadline") || cli_set(call, "finish-by")) {
        code = read_deadline(call, planning, out_error);
    } else {
        code = slowdown_option_read_finite(call, &factor, out_error);
        request->bound_s = request->work_s * factor;
    }
    if (code == 0 && !(request->bound_s <= AHEAD_MOST_S))
        return cli_usage(call, out_error, "a plan reaches at most 366 days; give it less work or time");
    planning->ledger.head.max_slowdown = fmax(request->bound_s / request->work_s, 1.0);
    return code;
}

static int read_times(const struct cli_call *call, struct carbon_planning *planning,
                      struct fly_error *out_error)
{
    struct carbon_course_request *request = &planning->request;
    int code;

    request->now_s = clock_real.date(clock_real.state).ns / NS_PER_S;
    code = carbon_view_time(call, "from", request->now_s, &request->start_s, out_error);
    if (code == 0 && request->start_s > request->now_s + AHEAD_MOST_S)
        return cli_value_error(call, "from", cli_text(call, "from"), "a time at most 366 days ahead",
                               out_error);
    return code;
}

static int read_settings(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error)
{
    struct carbon_plan_settings *plan = &planning->request.plan;

    *plan = (struct carbon_plan_settings){
        .least_gain = least_gain, .dwell_s = dwell_s, .doubt = CARBON_USUAL_DOUBT};
    return carbon_read_pause(call, &plan->pause, out_error);
}

static int read_signal(const struct cli_call *call, struct carbon_planning *planning, int signal,
                       struct fly_error *out_error)
{
    static const char *const nouns[CARBON_SIGNALS] = {"carbon intensities", "prices"};
    static const enum grid_quantity quantities[CARBON_SIGNALS] = {GRID_CARBON, GRID_PRICE};
    const struct carbon_course_request *plan = &planning->request;
    int64_t known_s = plan->start_s < plan->now_s ? plan->start_s : plan->now_s;
    struct grid_request request = {.quantity = quantities[signal],
                                   .from_s = known_s - GRID_FORECAST_DAYS * (int64_t)DAY_S,
                                   .to_s = plan->start_s + (int64_t)ceil(plan->bound_s),
                                   .now_s = plan->now_s,
                                   .cached_only = cli_flag(call, "cached")};
    struct grid_answer *answer = &planning->answers[signal];
    int code;

    if (planning->sources[signal] == NULL)
        return 0;
    if (signal == CARBON_INTENSITY)
        carbon_view_choose(call, &request);
    code = grid_read(planning->sources[signal], &request, answer, out_error);
    if (code < 0)
        return code;
    planning->has[signal] = true;
    planning->request.answers[signal] = answer;
    if (answer->remark[0] != '\0')
        cli_warn(call, "%s", answer->remark);
    if (answer->actual.kind.quantity != quantities[signal])
        return cli_usage(call, out_error, "'%s' has no %s", planning->sources[signal], nouns[signal]);
    return 0;
}

static int read_objective(const struct cli_call *call, struct carbon_planning *planning,
                          struct fly_error *out_error)
{
    struct carbon_objective *objective = &planning->request.objective;
    const char *text = cli_text(call, "objective");
    int code;

    if (text == NULL)
        text = planning->has[CARBON_INTENSITY] ? "carbon" : "money";
    code = carbon_read_objective(call, text, objective, out_error);
    if (code < 0)
        return code;
    if (objective->per_g > 0.0 && !planning->has[CARBON_INTENSITY])
        return cli_usage(call, out_error, "the objective counts carbon, but there is no source of it");
    if (objective->per_money > 0.0 && !planning->has[CARBON_PRICE])
        return cli_usage(call, out_error, "the objective counts money, but there is no --price");
    return 0;
}

int carbon_planning_read(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error)
{
    int code;

    arena_init(&planning->arena, MEMORY_MAX);
    code = read_profile(call, planning, out_error);
    planning->sources[CARBON_INTENSITY] =
        cli_operand_count(call) > 0 ? cli_operand(call, 0) : cli_text(call, "source");
    planning->sources[CARBON_PRICE] = cli_text(call, "price");
    if (code == 0 && planning->sources[CARBON_INTENSITY] == NULL && planning->sources[CARBON_PRICE] == NULL)
        code = cli_usage(call, out_error,
                         "no source of the grid's figures given; name one as gb:national or "
                         "electricity-maps:DE, or set carbon.source");
    if (code == 0)
        code = read_work(call, planning, out_error);
    if (code == 0)
        code = read_times(call, planning, out_error);
    if (code == 0)
        code = read_bound(call, planning, out_error);
    if (code == 0)
        code = read_settings(call, planning, out_error);
    for (int signal = 0; signal < CARBON_SIGNALS && code == 0; signal++)
        code = read_signal(call, planning, signal, out_error);
    return code == 0 ? read_objective(call, planning, out_error) : code;
}

static void tell(void *context, double done_s)
{
    struct carbon_planning *planning = context;

    progress_add(&planning->progress, (uint64_t)(done_s / hour_s) - planning->progress.done);
    progress_tick(&planning->progress);
}

static int walk(const struct cli_call *call, struct carbon_planning *planning, struct fly_error *out_error)
{
    int code;

    cli_progress_begin(call, &planning->progress, "hours of work",
                       (uint64_t)ceil(planning->request.work_s / hour_s));
    planning->request.progress = tell;
    planning->request.progress_context = planning;
    code = carbon_course_walk(&planning->request, &planning->course, out_error);
    progress_end(&planning->progress);
    return code;
}

int carbon_planning_walk(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error)
{
    struct statement_request request = {
        .ledgers = &planning->ledger, .ledger_count = 1, .yearly_means = {NAN, NAN}};
    struct ledger_content *ledger = &planning->ledger;
    int code = walk(call, planning, out_error);

    if (code < 0)
        return code;
    for (int signal = 0; signal < CARBON_SIGNALS && code == 0; signal++) {
        if (!planning->has[signal])
            continue;
        code = carbon_course_answer(&planning->course, &planning->answers[signal], signal,
                                    &planning->seen[signal], out_error);
        planning->saw[signal] = code == 0;
        request.answers[signal] = &planning->seen[signal];
    }
    ledger->head.gpus = (uint32_t)planning->source.gpus;
    ledger->head.start_s = planning->request.start_s;
    ledger->slices = planning->course.slices;
    ledger->slice_count = planning->course.count;
    ledger->points = planning->source.points;
    ledger->point_count = planning->source.count;
    if (code == 0)
        code = carbon_statement_make(&request, &planning->arena, &planning->statement, out_error);
    planning->statement.planned = true;
    return code;
}

void carbon_planning_free(struct carbon_planning *planning)
{
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (planning->saw[signal])
            grid_series_deinit(&planning->seen[signal].published);
        if (planning->has[signal])
            grid_answer_deinit(&planning->answers[signal]);
    }
    carbon_course_deinit(&planning->course);
    arena_deinit(&planning->arena);
}
