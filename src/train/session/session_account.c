/* SPDX-License-Identifier: Apache-2.0 */
/* The account of each training: writes its head, and tells it steps and limits. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "train/carbon/carbon_head.h"
#include "train/session/session_private.h"

/* A moment to finish by bounds only the last try: an earlier one must leave time for another. */
int64_t session_finish_by_s(const struct fly_session *session)
{
    return session->proposal.last_try ? session->carbon.options.finish_by_unix_s : 0;
}

static struct fly_carbon_options options_now(const struct fly_session *session)
{
    struct fly_carbon_options options = session->carbon.options;

    options.finish_by_unix_s = session_finish_by_s(session);
    if (options.per_g == 0.0 && options.per_money == 0.0 && options.per_kwh == 0.0 &&
        session->objective.kind == FLY_OBJECTIVE_MONEY)
        options.per_money = 1.0;
    return options;
}

/* The time of a step under that limit; NAN: not measured. */
double session_time_at_s(const struct fly_power_point *points, size_t count, double limit_w)
{
    for (size_t i = 0; i < count; i++) {
        if (points[i].limit_w == limit_w)
            return points[i].time_s;
    }
    return NAN;
}

/*
 * Returns the objective's bound. Without one, the log's choice may be slower than the usual limit and was
 * accepted as such: following the grid may then take as long, but no longer. INFINITY: not known yet.
 */
double session_bound_of(const struct fly_session *session, const struct fly_power_point *points, size_t count,
                        double choice_w)
{
    double fastest_s = INFINITY, choice_s = session_time_at_s(points, count, choice_w);

    if (isfinite(session->objective.max_slowdown) || isnan(choice_s))
        return session->objective.max_slowdown;
    for (size_t i = 0; i < count; i++)
        fastest_s = fmin(fastest_s, points[i].time_s);
    return fmax(carbon_usual_slowdown, choice_s / fastest_s);
}

/* The governor's options, as far as known before the training begins. */
static struct carbon_governor_options governor_options(const struct fly_session *session)
{
    const struct job_proposal *proposal = &session->proposal;
    size_t known_count = proposal->wants_profile ? 0 : proposal->known_count;

    return (struct carbon_governor_options){
        .carbon = options_now(session),
        .clock = session->clock,
        .meter = session->meter,
        .keeper = session->carbon.keeper,
        .max_slowdown = session_bound_of(session, proposal->known, known_count, proposal->limit_w),
        .job = session->options.job.name,
        .run = session->run,
        .program =
            session->knobs != NULL && session->knobs->program != NULL ? session->knobs->program : "session",
        .gpus = (uint32_t)session->limit.gpu_count,
        .rank = session->options.rank,
        .all_gpus = session->gpu_count,
    };
}

int session_account_check(const struct fly_session *session, struct fly_error *out_error)
{
    const struct carbon_governor_options options = governor_options(session);
    struct ledger_head head;

    if (!session->carbon.wanted)
        return 0;
    if (session->carbon.options.size < sizeof session->carbon.options)
        return error_set(out_error, FLY_EUSAGE, "session: carbon.size is %zu; set it to its sizeof",
                         session->carbon.options.size);
    return carbon_governor_head(&options, &head, out_error);
}

/* Collective: sums what the ranks' machines draw beside their GPUs. */
void session_account_open(struct fly_session *session)
{
    struct session_carbon *carbon = &session->carbon;
    struct carbon_governor_options options = governor_options(session);
    double host_w[] = {carbon->options.host_w}, nothing[] = {0.0};
    struct fly_error error = {.text = ""};

    session_join(session, host_w, 1, nothing, 1);
    options.all_host_w = host_w[0];
    if (carbon_governor_open(&options, &carbon->governor, &error) < 0)
        snprintf(carbon->text, sizeof carbon->text, "%s", error.text);
}

void session_account_stands(struct fly_session *session, double limit_w)
{
    struct session_carbon *carbon = &session->carbon;

    if (limit_w == carbon->told_w || (isnan(limit_w) && isnan(carbon->told_w)))
        return;
    carbon->told_w = limit_w;
    if (carbon->governor != NULL)
        carbon_governor_stands(carbon->governor, limit_w);
    else if (carbon->keeper != NULL)
        carbon_keeper_limit(carbon->keeper, limit_w);
}

/* Tells the steps that nobody counts while the session asks for the limit. */
void session_account_steps(struct fly_session *session)
{
    struct session_carbon *carbon = &session->carbon;
    uint64_t steps = session->count.begun;

    if (carbon->keeper != NULL && steps > carbon->steps_told)
        carbon_keeper_steps(carbon->keeper, steps - carbon->steps_told);
    else if (carbon->governor != NULL)
        carbon_governor_count(carbon->governor, (double)steps);
    carbon->steps_told = steps;
}

double session_account_reference_per_kwh(const struct fly_session *session)
{
    switch (session->objective.kind) {
    case FLY_OBJECTIVE_CARBON:
        return session->carbon.governor != NULL
                   ? carbon_governor_reference(session->carbon.governor, CARBON_INTENSITY)
                   : NAN;
    case FLY_OBJECTIVE_MONEY:
        return session->carbon.governor != NULL
                   ? carbon_governor_reference(session->carbon.governor, CARBON_PRICE)
                   : NAN;
    default:
        return NAN;
    }
}
