/* SPDX-License-Identifier: Apache-2.0 */
/* The power limit of a session: what may be turned, a profile to measure, a choice to hold. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/math/order.h"
#include "meter/meter.h"
#include "train/session/session.h"
#include "train/tuner/tuner.h"

static const double usual_step_w = 25.0;

static void explain(struct session_limit *limit, const char *text)
{
    if (limit->text[0] == '\0')
        snprintf(limit->text, sizeof limit->text, "%s", text);
}

/* Flyball's own knobs, where all GPUs of this rank may be turned. */
static int open_knob(struct fly_session *session, struct fly_error *out_error)
{
    static const struct knob_options usual = {.program = "a flyball session"};
    struct session_limit *limit = &session->limit;
    int result = knob_open(session->knobs != NULL ? session->knobs : &usual, limit->gpus, limit->gpu_count,
                           &limit->knob, out_error);

    for (size_t i = 0; result == 0 && i < limit->gpu_count; i++)
        result = knob_may_turn(limit->knob, i, out_error);
    limit->knob_turner.knob = limit->knob;
    return result;
}

/* What there is to turn; the range is worth knowing also where nothing may be. */
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
        result = open_knob(session, out_error);
    return result;
}

static int take_limits(struct fly_session *session, const struct fly_turner_range *range,
                       struct fly_error *out_error)
{
    struct session_limit *limit = &session->limit;
    double step_w = range->step > 0.0 ? range->step : usual_step_w;

    limit->highest_w = range->highest;
    for (size_t i = 0; i < session->options.limit_count; i++) {
        double limit_w = session->limits_w[i];

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

/* Whether all ranks may turn, and the same limits. */
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

void limit_open(struct fly_session *session)
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
            explain(limit, result < 0 ? error.text : "the ranks' GPUs cannot all be turned, or not alike");
        knob_close(limit->knob, NULL);
        limit->knob = NULL;
    }
    if (session->options.leave_limits)
        limit->turner = NULL;
}

/* Sets a limit, and what the GPUs made of it is what has to stand from now on. */
static void hold(struct fly_session *session, double limit_w)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    int result = limit->turner->set(limit->data, limit_w, &error);

    if (result == 0)
        result = limit->turner->standing(limit->data, &limit->held_w, &error);
    if (result == 0)
        return;
    explain(limit, error.text);
    limit->held_w = NAN;
}

/* The log's choice, or the tuner's where that could not be asked. */
static void hold_choice(struct fly_session *session, double limit_w)
{
    session->limit.choice_w = limit_w;
    hold(session, limit_w);
}

static size_t valid_points(const struct session_limit *limit, struct fly_power_point *out_points)
{
    struct fly_tuner_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    size_t all = fly_tuner_points(limit->tuner, points, FLY_POWER_SEARCH_LIMITS_MAX), count = 0;

    for (size_t i = 0; i < all && i < FLY_POWER_SEARCH_LIMITS_MAX; i++) {
        if (points[i].mark == FLY_TUNER_VALID)
            out_points[count++] =
                (struct fly_power_point){points[i].limit_w, points[i].power_w, points[i].time_s};
    }
    return count;
}

/* What earlier trainings measured, for all ranks. */
static void share_known(struct fly_session *session)
{
    struct job_proposal *proposal = &session->proposal;
    double count[] = {(double)proposal->known_count};

    session_share(session, count, 1);
    proposal->known_count = (size_t)count[0];
    for (size_t i = 0; i < proposal->known_count; i++) {
        struct fly_power_point *point = &proposal->known[i];
        double shared[] = {point->limit_w, point->power_w, point->time_s};

        session_share(session, shared, sizeof shared / sizeof shared[0]);
        *point = (struct fly_power_point){shared[0], shared[1], shared[2]};
    }
}

static void begin_profile(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_tuner_options options = {
        .size = sizeof options,
        .meter = session->meter,
        .turner = limit->turner,
        .turner_data = limit->data,
        .limits_w = limit->limits_w,
        .limit_count = limit->limit_count,
        .objective = session->definition.objective,
        .warmup_steps = session->options.warmup_steps,
        .profile_steps = session->options.profile_steps,
        .energy_tolerance = session->options.energy_tolerance,
        .all_reduce = session_ranks(session) > 1 && !session->apart ? session->options.all_reduce : NULL,
        .all_reduce_data = session->options.all_reduce_data,
        .rank = session->options.rank,
    };
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_error error = {.text = ""};

    share_known(session);
    limit->goes_on = session->proposal.known_count > 0;
    /* The bound is on the whole training, which the log judges; but for the lowest limit there is no other.
     */
    if (options.objective.kind != FLY_OBJECTIVE_LOWEST_LIMIT)
        options.objective.max_slowdown = INFINITY;
    if (session->meter == NULL)
        explain(limit, "nothing is measured, so no power profile can be");
    else if (tuner_new(&options, session->clock, &limit->tuner, &error) < 0 ||
             tuner_know(limit->tuner, session->proposal.known, session->proposal.known_count, &error) < 0)
        explain(limit, error.text);
    limit->told = limit->tuner != NULL ? valid_points(limit, points) : 0;
}

/* Whether the log knows the batch size: the limit of its choice, and the profile that it was chosen from. */
static bool is_chosen(const struct fly_session *session)
{
    return session->limit.turner != NULL && !session->proposal.wants_profile &&
           isfinite(session->proposal.limit_w);
}

void limit_begin(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    bool follows = session->carbon.wanted || session->carbon.keeper != NULL;

    limit->measured = limit->refused = limit->goes_on = limit->asked = false;
    limit->epoch_steps = 0;
    limit->choice_w = NAN;
    if (follows && is_chosen(session))
        share_known(session);
    carbon_begin(session);
    if (is_chosen(session)) {
        hold_choice(session, session->proposal.limit_w);
        if (follows)
            carbon_profiled(session, session->proposal.known, session->proposal.known_count);
    } else if (limit->turner != NULL && session->proposal.wants_profile) {
        begin_profile(session);
    }
}

void limit_epoch_begin(struct fly_session *session)
{
    session->limit.epoch_steps = 0;
    progress_epoch_begin(session);
    if (session->limit.tuner != NULL)
        (void)fly_tuner_epoch_begin(session->limit.tuner);
}

/* The log's choice; false where it could not be asked. */
static bool ask_log(struct fly_session *session, double units, struct job_choice *out_choice)
{
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    const struct spool_entry entry = {.kind = SPOOL_PROFILE,
                                      .profile = {.job = session->definition.name,
                                                  .trial = session->proposal.trial,
                                                  .points = points,
                                                  .point_count = valid_points(&session->limit, points),
                                                  .units_per_epoch = units}};
    union spool_answer answer = {.choice = {.limit_w = NAN}};
    double shared[] = {0.0, NAN, 0.0};

    if (session->options.rank == 0 && entry.profile.point_count > 0 && session->known &&
        post_settle(session->post, post_send(session->post, &entry, POST_RARELY), SPOOL_PROFILE, &answer)) {
        shared[0] = 1.0;
        shared[1] = answer.choice.limit_w;
        shared[2] = answer.choice.epochs;
    }
    session_share(session, shared, sizeof shared / sizeof shared[0]);
    *out_choice = (struct job_choice){.limit_w = shared[1], .epochs = (uint32_t)shared[2]};
    return shared[0] == 1.0;
}

/* Lets the tuner go; what it measured, and where its choice is. */
static size_t end_tuner(struct session_limit *limit, struct fly_power_point *out_points, double *out_choice_w)
{
    struct fly_tuner_report report = {.size = sizeof report};
    size_t count = valid_points(limit, out_points);

    *out_choice_w = fly_tuner_report(limit->tuner, &report) == 0 ? report.limit_w : NAN;
    fly_tuner_free(limit->tuner);
    limit->tuner = NULL;
    return count;
}

/* `choice` NULL: the log has not told it. */
static void settle_choice(struct fly_session *session, const struct job_choice *choice)
{
    struct session_limit *limit = &session->limit;
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    double own_w;
    size_t count = end_tuner(limit, points, &own_w);

    if (choice != NULL) {
        session->epochs = choice->epochs;
        limit->refused = choice->epochs == 0;
        own_w = choice->limit_w;
    }
    if (isfinite(own_w) && !limit->refused)
        hold_choice(session, own_w);
    if (isfinite(own_w) && !limit->refused)
        carbon_profiled(session, points, count);
}

/* Tells the log what was measured, and holds what it chooses. An answer that comes later is heard, where no
 * other rank has to hear it at the same step; until then the tuner's own choice stands. Where none can
 * come for now and the limit is to follow the grid, the session goes on with the tuner's. */
static void choose(struct fly_session *session, double units)
{
    struct job_choice choice;
    bool away;

    session->limit.measured = true;
    if (ask_log(session, units, &choice)) {
        settle_choice(session, &choice);
        return;
    }
    away = session->carbon.wanted && !post_look(session->post).connected;
    session->limit.asked = session->known && session_ranks(session) == 1 && !away;
    if (session->carbon.wanted && !session->limit.asked)
        settle_choice(session, NULL);
}

void limit_hear(struct fly_session *session, const struct job_choice *choice)
{
    if (session->limit.asked && session->limit.tuner != NULL)
        settle_choice(session, choice);
    session->limit.asked = false;
}

/* Whether the profile is measured and not told yet; a tuner that has stopped says why. */
static bool is_ready(struct session_limit *limit)
{
    struct fly_tuner_report report = {.size = sizeof report};

    if (limit->tuner == NULL || limit->measured || fly_tuner_state(limit->tuner) == FLY_TUNER_SEARCHING)
        return false;
    if (fly_tuner_state(limit->tuner) != FLY_TUNER_STOPPED)
        return true;
    if (fly_tuner_report(limit->tuner, &report) == 0)
        explain(limit, report.text);
    limit->measured = true;
    return false;
}

/* The account tells the limits that were tried apart. */
static void watch_tuner(struct fly_session *session)
{
    struct fly_tuner_report report = {.size = sizeof report};

    if ((session->carbon.governor != NULL || session->carbon.keeper != NULL) &&
        fly_tuner_report(session->limit.tuner, &report) == 0)
        carbon_stands(session, report.limit_w);
}

/* Whoever does not call session_heed hears of a late choice here. */
static void listen_for_choice(struct fly_session *session)
{
    union spool_answer answer;

    if (session->limit.asked && !session->heeds && post_news(session->post, SPOOL_PROFILE, &answer))
        limit_hear(session, &answer.choice);
}

void limit_step(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    uint64_t batch_size = session->proposal.batch_size;
    uint64_t steps = (session->options.samples_per_epoch + batch_size - 1) / batch_size;

    limit->epoch_steps++;
    if (limit->tuner == NULL) {
        if (session->carbon.steers && --session->carbon.countdown == 0)
            carbon_follow(session);
        return;
    }
    (void)fly_tuner_step_begin(limit->tuner);
    watch_tuner(session);
    listen_for_choice(session);
    if (session->options.samples_per_epoch > 0 && is_ready(limit))
        choose(session, (double)steps);
}

void limit_epoch_end(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;

    carbon_epoch_end(session);
    if (limit->tuner == NULL)
        return;
    (void)fly_tuner_epoch_end(limit->tuner);
    /* A search that no training was long enough for does without second looks. */
    if (is_ready(limit) || (limit->goes_on && tuner_only_looks(limit->tuner)))
        choose(session, (double)limit->epoch_steps);
}

void limit_tell_part(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct spool_entry entry = {.kind = SPOOL_PROFILE,
                                .profile = {.job = session->definition.name,
                                            .trial = session->proposal.trial,
                                            .points = points,
                                            .partial = true}};

    if (limit->tuner == NULL || limit->measured || session->options.rank != 0 || !session->known)
        return;
    entry.profile.point_count = valid_points(limit, points);
    if (entry.profile.point_count <= limit->told)
        return;
    limit->told = entry.profile.point_count;
    (void)post_send(session->post, &entry, POST_RARELY);
}

/* Nothing is put back over another program's limit. */
static void let_go(struct session_limit *limit, const char *text)
{
    explain(limit, text);
    limit->held_w = NAN;
}

void limit_check(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    double standing_w;

    if (isnan(limit->held_w))
        return;
    if (limit->knob != NULL && knob_check(limit->knob, &error) < 0) {
        let_go(limit, error.text);
        return;
    }
    if (limit->turner->standing(limit->data, &standing_w, &error) < 0) {
        let_go(limit, error.text);
    } else if (standing_w != limit->held_w) {
        error_set(&error, FLY_ESTATE, "another program changed the limit to %g W; it stays", standing_w);
        let_go(limit, error.text);
    }
}

void limit_change(struct fly_session *session, double limit_w)
{
    limit_check(session);
    if (!isnan(session->limit.held_w))
        hold(session, limit_w);
}

void limit_end(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error;
    double standing_w;

    fly_tuner_free(limit->tuner);
    limit->tuner = NULL;
    if (limit->knob != NULL)
        (void)knob_restore(limit->knob, &error);
    else if (!isnan(limit->held_w) && limit->turner->standing(limit->data, &standing_w, &error) == 0 &&
             standing_w == limit->held_w)
        (void)limit->turner->set(limit->data, limit->start_w, &error);
    limit->held_w = NAN;
}

void limit_close(struct fly_session *session)
{
    limit_end(session);
    knob_close(session->limit.knob, NULL);
    session->limit.knob = NULL;
}
