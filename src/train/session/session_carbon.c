/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the grid with a session: the plan sets the limit, and the log's choice need not stand. */
#include <math.h>
#include <stdio.h>

#include "train/session/session_private.h"

/* A board that rounds a limit by less than this has honoured it. */
static const double rounding_w = 0.5;

static const char not_whole[] = "the power profile of this batch size is not whole yet";
static const char not_turned[] = "no power limit is turned here";
static const char baseline[] =
    "the default batch size at the highest limit, with which the job's log compares all others";
static const char one_limit[] = "the job's objective names one limit";
static const char pinned[] = "the choice is pinned";
static const char not_known[] = "the log has no power profile for its choice";
static const char by_rank_0[] = "rank 0 holds the limit as it is, and says why";
static const char somebody_elses[] = "the limit is not ours any more";
static const char not_opened[] = "there is no account, and so no plan";
static const char ranks_apart[] = "the ranks could not be joined, so the limit stays";

void session_carbon_begin(struct fly_session *session)
{
    struct session_carbon *carbon = &session->carbon;

    carbon->steers = false;
    carbon->countdown = carbon->steps_told = 0;
    carbon->usual_step_s = carbon->told_w = NAN;
    carbon->text[0] = '\0';
    carbon->last.size = 0;
    carbon->note = session->limit.turner == NULL     ? not_turned
                   : session->proposal.wants_profile ? not_whole
                                                     : not_known;
    if (carbon->wanted && !session->disabled)
        session_account_open(session);
}

void session_carbon_end(struct fly_session *session)
{
    struct session_carbon *carbon = &session->carbon;

    session_account_steps(session);
    if (carbon->keeper != NULL)
        session_account_stands(session, NAN);
    if (carbon->governor != NULL) {
        carbon->last.size = sizeof carbon->last;
        (void)fly_session_carbon(session, &carbon->last);
    }
    carbon_governor_close(carbon->governor);
    carbon->governor = NULL;
    carbon->steers = false;
}

/* Why the log's choice must stand as it is; NULL: it need not. */
static const char *reason_to_stay(const struct fly_session *session)
{
    const struct session_limit *limit = &session->limit;
    const struct job_proposal *proposal = &session->proposal;
    double highest_w = limit->limits_w[limit->limit_count - 1];

    if (session->objective.kind == FLY_OBJECTIVE_TIME ||
        session->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return one_limit;
    if (proposal->reason == REASON_PINNED)
        return pinned;
    /* Also when the profile would choose the same: the log counts this trial in its baseline. */
    if (proposal->reason == REASON_CONTROL ||
        (!proposal->wants_profile && proposal->batch_size == session->options.job.default_batch_size &&
         limit->choice_w == highest_w))
        return baseline;
    return NULL;
}

/*
 * How many steps each point of the log's profile is of: it may have points of an epoch. NAN: it has, and the
 * steps in an epoch are not known.
 */
static double steps_of_point(const struct fly_session *session)
{
    bool of_epochs = !session->proposal.wants_profile && session->proposal.known_units_per_epoch == 1.0;
    double told = session_expected_steps(session);

    return !of_epochs ? 1.0 : told > 0.0 ? told : NAN;
}

/* Takes the points that can be set, converted to one step each; returns how many. */
static size_t take_settable(const struct fly_session *session, const struct fly_power_point *points,
                            size_t count, struct fly_power_point *out_points)
{
    const struct session_limit *limit = &session->limit;
    double steps = steps_of_point(session);
    size_t taken = 0;

    if (isnan(steps))
        return 0;

    for (size_t i = 0; i < count && taken < FLY_POWER_SEARCH_LIMITS_MAX; i++) {
        bool settable = false;

        for (size_t j = 0; j < limit->limit_count; j++)
            settable |= limit->limits_w[j] == points[i].limit_w;
        if (settable)
            out_points[taken++] =
                (struct fly_power_point){points[i].limit_w, points[i].power_w, points[i].time_s / steps};
    }
    return taken;
}

/* Gives this rank's governor the profile; returns whether it can steer. */
static bool tell_profile(struct fly_session *session, const struct fly_power_point *points, size_t count)
{
    struct session_carbon *carbon = &session->carbon;
    struct fly_error error = {.text = ""};

    if (carbon->governor == NULL)
        return false;
    if (carbon_governor_profile(carbon->governor, points, count, &error) < 0) {
        snprintf(carbon->text, sizeof carbon->text, "%s", error.text);
        return false;
    }
    carbon->usual_step_s = session_time_at_s(points, count, session->limit.choice_w);
    if (isnan(carbon->usual_step_s))
        return false;
    carbon_governor_bound(carbon->governor,
                          session_bound_of(session, points, count, session->limit.choice_w));
    return true;
}

void session_carbon_profiled(struct fly_session *session, const struct fly_power_point *points, size_t count)
{
    struct fly_power_point settable[FLY_POWER_SEARCH_LIMITS_MAX];
    struct session_carbon *carbon = &session->carbon;
    size_t settable_count = take_settable(session, points, count, settable);
    bool told;
    double steers[1];

    session_account_stands(session, session->limit.held_w);
    if (!carbon->wanted) {
        if (carbon->keeper != NULL && settable_count > 0)
            carbon_keeper_profile(carbon->keeper, settable, settable_count);
        return;
    }
    told = settable_count > 0 && tell_profile(session, settable, settable_count);
    carbon->note = told ? reason_to_stay(session) : carbon->governor != NULL ? not_known : not_opened;
    /* When only setting the limit failed, the session's limit_text says why. */
    if (carbon->note == NULL && isnan(session->limit.held_w))
        carbon->note = not_turned;
    steers[0] = told && carbon->note == NULL;
    session_share(session, steers, 1);
    carbon->steers = steers[0] == 1.0 && !session->apart;
    if (!carbon->steers && carbon->note == NULL)
        carbon->note = session->apart ? ranks_apart : by_rank_0;
    carbon->countdown = 1;
}

/*
 * When nothing is known of the grid, the log's choice stands if it is fast enough for what is left. Not so
 * with a moment to finish by, which the log does not know.
 */
static double choice_or(const struct fly_session *session, double wanted_w)
{
    enum carbon_reason reason = carbon_governor_reason(session->carbon.governor);
    bool unknown = reason >= CARBON_UNKNOWN_GRID && reason <= CARBON_SCARCE_GRID;

    return unknown && session_finish_by_s(session) == 0 ? fmax(wanted_w, session->limit.choice_w) : wanted_w;
}

void session_carbon_follow(struct fly_session *session)
{
    struct session_carbon *carbon = &session->carbon;
    struct carbon_progress progress;
    double shared[] = {NAN, (double)carbon_governor_every(session_step_s(session))};

    session_account_steps(session);
    if (carbon->governor != NULL && session_progress(session, &progress)) {
        shared[0] = carbon_governor_decide(carbon->governor, &progress);
        if (isfinite(shared[0]))
            shared[0] = choice_or(session, shared[0]);
    }
    if (isnan(session->limit.held_w))
        shared[0] = NAN;
    session_share(session, shared, 2);
    if (session->apart) {
        session_carbon_let_go(session, ranks_apart);
        return;
    }
    carbon->countdown = (uint64_t)shared[1];
    if (!isfinite(shared[0]) || isnan(session->limit.held_w) ||
        fabs(shared[0] - session->limit.held_w) < rounding_w)
        return;
    session_limit_change(session, shared[0]);
    session_account_stands(
        session, fabs(shared[0] - session->limit.held_w) < rounding_w ? shared[0] : session->limit.held_w);
}

void session_carbon_let_go(struct fly_session *session, const char *note)
{
    session->carbon.steers = false;
    session->carbon.note = note;
}

/* The report of a training without a governor. */
static struct fly_carbon_report report_alone(const struct session_carbon *carbon)
{
    if (carbon->last.size > 0)
        return carbon->last;
    return (struct fly_carbon_report){.limit_w = NAN, .intensity_g_per_kwh = NAN, .energy_j = NAN};
}

int fly_session_carbon(const struct fly_session *session, struct fly_carbon_report *out_report)
{
    const struct session_carbon *carbon = &session->carbon;
    bool steers = carbon->steers && !isnan(session->limit.held_w);
    size_t size = out_report->size;

    if (size < sizeof *out_report)
        return FLY_EUSAGE;
    if (!carbon->wanted || session->disabled)
        return FLY_ESTATE;
    if (carbon->governor != NULL)
        carbon_governor_report(carbon->governor, out_report);
    else
        *out_report = report_alone(carbon);
    out_report->size = size;
    if (!steers && (carbon->governor != NULL || carbon->last.size == 0)) {
        snprintf(out_report->reason, sizeof out_report->reason, "%s",
                 !carbon->steers ? carbon->note : somebody_elses);
        out_report->limit_w = out_report->finish_s = NAN;
    }
    if (carbon->text[0] != '\0')
        snprintf(out_report->text, sizeof out_report->text, "%.*s", FLY_CARBON_TEXT_MAX - 1, carbon->text);
    return 0;
}
