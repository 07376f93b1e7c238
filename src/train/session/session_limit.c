/* SPDX-License-Identifier: Apache-2.0 */
/* The power limit of a session: finds what may be turned, and what each hook does with it. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/math/order.h"
#include "meter/meter.h"
#include "train/session/session_private.h"

static const double usual_step_w = 25.0;

/* Opens Flyball's own knobs, if all GPUs of this rank may be turned. */
static int open_knob(struct fly_session *session, bool resumes, struct fly_error *out_error)
{
    static const struct knob_options usual = {.program = "a flyball session"};
    struct session_limit *limit = &session->limit;
    struct knob_options options = session->knobs != NULL ? *session->knobs : usual;
    int result;

    options.resumes |= resumes;
    result = knob_open(&options, limit->gpus, limit->gpu_count, &limit->knob, out_error);

    for (size_t i = 0; result == 0 && i < limit->gpu_count; i++)
        result = knob_may_turn(limit->knob, i, out_error);
    limit->knob_turner.knob = limit->knob;
    return result;
}

/* Finds what to turn. The range is useful even when nothing may be turned. */
static int find_turner(struct fly_session *session, struct fly_turner_range *out_range,
                       struct fly_error *out_error)
{
    struct session_limit *limit = &session->limit;
    int result;

    if (session->options.turner != NULL) {
        limit->turner = session->options.turner;
        limit->data = session->options.turner_data;
        result = limit->turner->range(limit->data, out_range, out_error);
        limit->highest_w = result == 0 ? out_range->highest : 0.0;
        return result;
    }
    if (limit->gpu_count == 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "there is no GPU whose power could be limited");
    limit->turner = &knob_turner;
    limit->data = &limit->knob_turner;
    limit->knob_turner = (struct knob_turner){.devices = limit->gpus, .count = limit->gpu_count};
    result = limit->turner->range(limit->data, out_range, out_error);
    if (result == 0)
        limit->highest_w = out_range->highest;
    if (result == 0 && !session->options.leave_limits)
        result = open_knob(session, false, out_error);
    return result;
}

static int take_limits(struct fly_session *session, const struct fly_turner_range *range,
                       struct fly_error *out_error)
{
    struct session_limit *limit = &session->limit;
    double step_w = range->step > 0.0 ? range->step : usual_step_w;

    limit->highest_w = range->highest;
    for (size_t i = 0; i < session->options.limit_count; i++) {
        double limit_w = session->options.limits_w[i];

        if (!(limit_w >= range->lowest && limit_w <= range->highest))
            return error_set(out_error, FLY_EUSAGE, "limit %g W; the GPU takes %g to %g W", limit_w,
                             range->lowest, range->highest);
        limit->limits_w[limit->limit_count++] = limit_w;
    }
    for (unsigned i = 0; session->options.limit_count == 0 && i < FLY_POWER_SEARCH_LIMITS_MAX; i++) {
        double limit_w = range->highest - i * step_w;

        if (limit_w < range->lowest)
            break;
        limit->limits_w[limit->limit_count++] = limit_w;
    }
    qsort(limit->limits_w, limit->limit_count, sizeof limit->limits_w[0], order_doubles);
    return limit->turner->standing(limit->data, &limit->start_w, out_error);
}

/* The knob is given back and opened again by the idle turner. */
static int take_knob(void *data, struct fly_error *out_error)
{
    return open_knob(data, true, out_error);
}

static void give_knob_back(void *data)
{
    struct fly_session *session = data;

    knob_close(session->limit.knob, NULL);
    session->limit.knob = session->limit.knob_turner.knob = NULL;
}

static void guard_idling(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;

    idle_turner_init(&limit->idle, &(struct idle_options){
                                       .steps = &session->count.begun,
                                       .clock = session->clock,
                                       .give_back_s = session->options.give_back_s,
                                       .open = limit->knob != NULL ? take_knob : NULL,
                                       .close = limit->knob != NULL ? give_knob_back : NULL,
                                       .data = session,
                                   });
    idle_turner_add(&limit->idle, &limit->turner, &limit->data);
}

/* Sets again what was given back while no step came. A tuner does so itself. */
static void wake(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    double gap_s;

    if (limit->tuner == NULL && !isnan(limit->held_w) && idle_turner_wake(&limit->idle, &gap_s, &error) < 0) {
        session_limit_explain(limit, error.text);
        limit->held_w = NAN;
    }
}

/* Whether all ranks may turn, and have the same limits. */
static bool ranks_agree(struct fly_session *session, bool may)
{
    const struct session_limit *limit = &session->limit;
    double count = (double)limit->limit_count, lowest_w = count > 0 ? limit->limits_w[0] : 0.0,
           nothing[1] = {0.0};
    double maxima[] = {may ? 0.0 : 1.0,   count,    -count,   limit->highest_w,
                       -limit->highest_w, lowest_w, -lowest_w};

    session_join(session, nothing, 1, maxima, sizeof maxima / sizeof maxima[0]);
    return maxima[0] == 0.0 && maxima[1] == -maxima[2] && maxima[3] == -maxima[4] && maxima[5] == -maxima[6];
}

void session_limit_open(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_turner_range range = {0};
    struct fly_error error = {.text = ""};
    int result;

    limit->start_w = limit->held_w = NAN;
    for (size_t i = 0; session->meter != NULL && i < meter_devices(session->meter)->count; i++) {
        if (meter_devices(session->meter)->devices[i].info.kind == DEVICE_GPU)
            limit->gpus[limit->gpu_count++] = &meter_devices(session->meter)->devices[i];
    }
    result = find_turner(session, &range, &error);
    if (result == 0 && !session->options.leave_limits)
        result = take_limits(session, &range, &error);
    if (!ranks_agree(session, result == 0 && !session->options.leave_limits) || result < 0) {
        limit->turner = NULL;
        limit->limit_count = 0;
        if (!session->options.leave_limits)
            session_limit_explain(limit, result < 0 ? error.text
                                                    : "the ranks' GPUs cannot all be turned, or not alike");
        knob_close(limit->knob, NULL);
        limit->knob = NULL;
    }
    if (session->options.leave_limits)
        limit->turner = NULL;
    if (limit->turner != NULL)
        guard_idling(session);
}

/* Whether the log's profile of this batch size is settled: it has its choice and the points behind it. */
static bool is_chosen(const struct fly_session *session)
{
    return session->limit.turner != NULL && !session->proposal.wants_profile &&
           isfinite(session->proposal.limit_w);
}

void session_limit_begin(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    bool follows = session->carbon.wanted || session->carbon.keeper != NULL;

    limit->measured = limit->refused = limit->spent = limit->goes_on = limit->asked = false;
    limit->choice_w = NAN;
    if (follows && is_chosen(session))
        session_profile_share(session);
    session_carbon_begin(session);
    if (is_chosen(session)) {
        session_limit_hold_choice(session, session->proposal.limit_w);
        if (follows)
            session_carbon_profiled(session, session->proposal.known, session->proposal.known_count);
    } else if (limit->turner != NULL && session->proposal.wants_profile) {
        session_profile_begin(session);
    }
}

void session_limit_epoch_begin(struct fly_session *session)
{
    step_count_epoch_begin(&session->count, session->clock);
    if (session->limit.tuner != NULL)
        (void)fly_tuner_epoch_begin(session->limit.tuner);
}

void session_limit_step(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;

    idle_turner_look(&limit->idle);
    if (idle_turner_is_idle(&limit->idle))
        wake(session);
    step_count_step(&session->count);
    idle_turner_look(&limit->idle);
    if (limit->tuner != NULL)
        session_profile_step(session);
    else if (session->carbon.steers && --session->carbon.countdown == 0)
        session_carbon_follow(session);
}

void session_limit_epoch_end(struct fly_session *session)
{
    idle_turner_look(&session->limit.idle);
    step_count_epoch_end(&session->count, session->clock);
    session_account_steps(session);
    if (session->limit.tuner != NULL)
        session_profile_epoch_end(session);
}

void session_limit_end(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error;
    double standing_w;

    fly_tuner_free(limit->tuner);
    limit->tuner = NULL;
    if (limit->idle.count > 0 && limit->idle.options.close != NULL) {
        idle_turner_hold(&limit->idle);
        if (limit->knob != NULL)
            (void)knob_restore(limit->knob, &error);
        idle_turner_forget(&limit->idle);
        idle_turner_let_go(&limit->idle);
    } else if (!isnan(limit->held_w) && limit->turner->standing(limit->data, &standing_w, &error) == 0 &&
               standing_w == limit->held_w)
        (void)limit->turner->set(limit->data, limit->start_w, &error);
    limit->held_w = NAN;
}

void session_limit_close(struct fly_session *session)
{
    session_limit_end(session);
    idle_turner_end(&session->limit.idle);
    knob_close(session->limit.knob, NULL);
    session->limit.knob = NULL;
}
