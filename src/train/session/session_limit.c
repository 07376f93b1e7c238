/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which limits may be turned, and measures the power profile. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/math/order.h"
#include "base/math/portable_math.h"
#include "meter/meter.h"
#include "train/session/session_private.h"
#include "train/tuner/tuner.h"

/*
 * The power profile of a batch size: the first trainings with it measure it, tell the log, and take its
 * choice.
 */

static void share_others(struct fly_session *session)
{
    struct job_proposal *proposal = &session->proposal;
    double count[] = {(double)proposal->other_count};

    session_share(session, count, 1);
    proposal->other_count = (size_t)count[0];
    for (size_t i = 0; i < proposal->other_count; i++) {
        struct job_other_point *point = &proposal->others[i];
        double shared[] = {point->batch_size, point->limit_w, point->power_w, point->time_s};

        session_share(session, shared, sizeof shared / sizeof shared[0]);
        *point = (struct job_other_point){(uint32_t)shared[0], shared[1], shared[2], shared[3]};
    }
}

/* Gives all ranks what earlier trainings measured. */
static void session_profile_share(struct fly_session *session)
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
    share_others(session);
}

/* Lets other batch sizes' profiles say what is measured, unless a plan along the grid needs every limit. */
static void plan_by_others(struct fly_session *session)
{
    const struct job_proposal *proposal = &session->proposal;
    struct fly_power_point points[JOB_OTHERS_MAX];
    struct limit_curve curves[LIMIT_CURVES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < proposal->other_count; i++) {
        const struct job_other_point *other = &proposal->others[i];

        points[i] = (struct fly_power_point){other->limit_w, other->power_w, other->time_s};
        if (i == 0 || other->batch_size != other[-1].batch_size) {
            if (count == LIMIT_CURVES_MAX)
                break;
            curves[count++] = (struct limit_curve){
                .points = &points[i],
                .octaves =
                    portable_log((double)other->batch_size / proposal->batch_size) / portable_log(2.0)};
        }
        curves[count - 1].count++;
    }
    if (!session->carbon.wanted && session->objective.kind != FLY_OBJECTIVE_LOWEST_LIMIT)
        tuner_plan(session->limit.tuner, curves, count);
}

/* Begins to measure a profile, as the proposal says. Collective. */
static void session_profile_begin(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_tuner_options options = {
        .size = sizeof options,
        .meter = session->meter,
        .turner = limit->turner,
        .turner_data = limit->data,
        .limits_w = limit->limits_w,
        .limit_count = limit->limit_count,
        .objective = session->objective,
        .warmup_steps = session->options.warmup_steps,
        .profile_steps = session->options.profile_steps,
        .energy_tolerance = session->options.energy_tolerance,
        .all_reduce = session_ranks(session) > 1 && !session->apart ? session->options.all_reduce : NULL,
        .all_reduce_data = session->options.all_reduce_data,
        .rank = session->options.rank,
    };
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_error error = {.text = ""};

    session_profile_share(session);
    limit->goes_on = session->proposal.known_count > 0;
    /*
     * The bound is on the whole training, and the log judges that; only the lowest limit has no other bound.
     */
    if (options.objective.kind != FLY_OBJECTIVE_LOWEST_LIMIT)
        options.objective.max_slowdown = INFINITY;
    if (session->meter == NULL)
        session_limit_explain(limit, "nothing is measured, so no power profile can be");
    else if (tuner_new(&options, session->clock, &limit->tuner, &error) < 0 ||
             tuner_know(limit->tuner, session->proposal.known, session->proposal.known_count, &error) < 0)
        session_limit_explain(limit, error.text);
    if (limit->tuner != NULL) {
        tuner_measure_profile(limit->tuner);
        plan_by_others(session);
    }
    limit->told = limit->tuner != NULL ? tuner_measured_points(limit->tuner, points) : 0;
}

/* Gets the log's choice; false when the log could not be asked. */
static bool ask_log(struct fly_session *session, double units, struct job_choice *out_choice)
{
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    const struct spool_entry entry = {
        .kind = SPOOL_PROFILE,
        .profile = {.job = session->options.job.name,
                    .trial = session->proposal.trial,
                    .points = points,
                    .point_count = tuner_measured_points(session->limit.tuner, points),
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

/* Closes the tuner; stores its points and its choice, and returns how many points. */
static size_t end_tuner(struct session_limit *limit, struct fly_power_point *out_points, double *out_choice_w)
{
    struct fly_tuner_report report = {.size = sizeof report, .limit_w = NAN};
    size_t count = tuner_measured_points(limit->tuner, out_points);

    if (fly_tuner_report(limit->tuner, &report) == 0 && report.given_back)
        (void)tuner_report_chosen(limit->tuner, &report);
    *out_choice_w = report.limit_w;
    fly_tuner_free(limit->tuner);
    limit->tuner = NULL;
    return count;
}

/*
 * Takes the epochs that the trial may run; they may have ended already, and then it ends here. One that
 * may run all its epochs ends with them, whatever else is still to be settled.
 */
static void take_epochs(struct fly_session *session, uint32_t epochs)
{
    bool over = epochs < session->options.job.max_epochs && epochs <= session->epoch && !session->reached;

    session->epochs = epochs;
    session->limit.refused = over && session->epoch == 0;
    session->limit.spent = over && session->epoch > 0;
}

/* Settles the choice; `choice` NULL: the log has not told one. */
static void settle_choice(struct fly_session *session, const struct job_choice *choice)
{
    struct session_limit *limit = &session->limit;
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    double own_w;
    size_t count = end_tuner(limit, points, &own_w);

    if (choice != NULL) {
        take_epochs(session, choice->epochs);
        own_w = choice->limit_w;
    }
    if (isfinite(own_w) && !limit->refused && !limit->spent) {
        session_limit_hold_choice(session, own_w);
        session_carbon_profiled(session, points, count);
    }
}

/*
 * Tells the log the profile, and holds the limit that the log chooses. An answer that comes later is still
 * heard, unless other ranks would have to hear it at the same step; until then the tuner's own choice stands.
 * When no answer can come for now and the limit is to follow the grid, the session goes on with the tuner's
 * choice.
 */
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

void session_profile_hear(struct fly_session *session, const struct job_choice *choice)
{
    if (session->limit.asked && session->limit.tuner != NULL)
        settle_choice(session, choice);
    session->limit.asked = false;
}

/* Whether the profile is measured and the log does not have it yet; notes why when the tuner has stopped. */
static bool is_ready(struct session_limit *limit)
{
    struct fly_tuner_report report = {.size = sizeof report};

    if (limit->tuner == NULL || limit->measured || fly_tuner_state(limit->tuner) == FLY_TUNER_SEARCHING)
        return false;
    if (fly_tuner_state(limit->tuner) != FLY_TUNER_STOPPED)
        return true;
    if (fly_tuner_report(limit->tuner, &report) == 0)
        session_limit_explain(limit, report.text);
    limit->measured = true;
    return false;
}

/* Tells the account each limit that the tuner tries. */
static void watch_tuner(struct fly_session *session)
{
    struct fly_tuner_report report = {.size = sizeof report};

    if ((session->carbon.governor != NULL || session->carbon.keeper != NULL) &&
        fly_tuner_report(session->limit.tuner, &report) == 0)
        session_account_stands(session, report.limit_w);
}

/* Takes a late choice, for callers that do not call session_heed. */
static void listen_for_choice(struct fly_session *session)
{
    union spool_answer answer;

    if (session->limit.asked && !session->heeds && post_news(session->post, SPOOL_PROFILE, &answer))
        session_profile_hear(session, &answer.choice);
}

/* The hooks while a profile is measured. Collective. */
static void session_profile_step(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    double steps;

    (void)fly_tuner_step_begin(limit->tuner);
    watch_tuner(session);
    listen_for_choice(session);
    steps = session_expected_steps(session);
    if (steps > 0.0 && is_ready(limit))
        choose(session, steps);
}

static void session_profile_epoch_end(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;

    (void)fly_tuner_epoch_end(limit->tuner);
    /* When no training was long enough for the whole search, do without second looks. */
    if (is_ready(limit) || (limit->goes_on && tuner_only_looks(limit->tuner)))
        choose(session, session->options.job.report_every_samples > 0
                            ? session_expected_steps(session)
                            : (double)step_count_in_epoch(&session->count));
}

void session_profile_tell_part(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct spool_entry entry = {.kind = SPOOL_PROFILE,
                                .profile = {.job = session->options.job.name,
                                            .trial = session->proposal.trial,
                                            .points = points,
                                            .partial = true}};

    if (limit->tuner == NULL || limit->measured || session->options.rank != 0 || !session->known)
        return;
    entry.profile.point_count = tuner_measured_points(limit->tuner, points);
    if (entry.profile.point_count <= limit->told)
        return;
    limit->told = entry.profile.point_count;
    (void)post_send(session->post, &entry, POST_RARELY);
}

void session_profile_end(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;

    if (limit->tuner != NULL && !limit->measured && session_ranks(session) == 1)
        tuner_keep_unfinished(limit->tuner);
    session_profile_tell_part(session);
}

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
