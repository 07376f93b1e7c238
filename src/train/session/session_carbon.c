/* SPDX-License-Identifier: Apache-2.0 */
/* How far a training is, its limit and its account, and the limit that follows the grid. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "train/carbon/carbon_head.h"
#include "train/session/session_private.h"

/* Joins the ranks of a data-parallel training. When that fails, each rank goes on by itself. */

enum { SHARED_MAX = 32 };

uint32_t session_ranks(const struct fly_session *session)
{
    return session->options.world_size;
}

uint32_t session_replicas(const struct fly_session *session)
{
    return session->options.replicas > 0 ? session->options.replicas : session_ranks(session);
}

void session_join(struct fly_session *session, double *sums, size_t sum_count, double *maxima,
                  size_t max_count)
{
    if (session_ranks(session) == 1 || session->apart)
        return;
    session->apart =
        session->options.all_reduce(session->options.all_reduce_data, sums, sum_count, maxima, max_count) < 0;
}

void session_share(struct fly_session *session, double *values, size_t count)
{
    double shared[SHARED_MAX] = {0.0}, nothing[1] = {0.0};

    if (session->options.rank == 0)
        memcpy(shared, values, count * sizeof shared[0]);
    session_join(session, shared, count, nothing, 1);
    /* When values could not be shared, each rank keeps its own. */
    if (session_ranks(session) > 1 && !session->apart)
        memcpy(values, shared, count * sizeof shared[0]);
}

/* ---- how far the training of a session is, and how much of it is left ---- */

/* A step takes at least this share of what it usually takes. */
static const double least_share = 0.1;

double session_time_s(const struct fly_session *session)
{
    return session->stopped ? session->stopped_time_s
                            : mono_elapsed_s(session->begin, session->clock->now(session->clock->state));
}

bool session_has_ended(const struct fly_session *session)
{
    return session->answer == FLY_STOP ||
           (session->answer == FLY_REACHED && session->proposal.stops_at_target);
}

double session_expected_steps(const struct fly_session *session)
{
    uint64_t batch_size = session->proposal.batch_size;
    uint64_t every = session->options.job.report_every_samples;
    uint64_t samples = every > 0 ? every : session->options.samples_per_epoch;
    uint64_t steps = (samples + batch_size - 1) / batch_size;

    if (steps > 0)
        return (double)steps;
    return session->proposal.known_units_per_epoch > 1.0 ? session->proposal.known_units_per_epoch : 0.0;
}

/*
 * Steps of a whole epoch: as the program told, as in earlier trainings, or as counted; NAN: not known yet.
 * Once known, it stays the same.
 */
static double steps_per_epoch(const struct fly_session *session)
{
    double expected = session_expected_steps(session);

    if (expected > 0.0)
        return expected;
    return session->count.longest > 0 ? (double)session->count.longest : NAN;
}

/* The time of a step; NAN: not known. */
static double session_step_s(const struct fly_session *session)
{
    double usual_s = session->carbon.usual_step_s,
           time_s = step_count_time_s(&session->count, session->clock);
    uint64_t steps = session->count.begun;

    if (steps < 2 || !(time_s > 0.0))
        return usual_s;
    /* The first steps may only have been queued on the GPU. */
    return isnan(usual_s) ? time_s / (double)(steps - 1)
                          : fmax(time_s / (double)(steps - 1), least_share * usual_s);
}

/*
 * How many epochs have ended. Until the program says or shows how far its checkpoint was, the log's count of
 * earlier attempts holds.
 */
static double epochs_ended(const struct fly_session *session)
{
    return session->reported || session->resumed ? (double)session->epoch
                                                 : (double)session->proposal.epochs_done;
}

/*
 * The time that earlier attempts spent in steps. The log has their whole time, with evaluation. The same
 * share of it counts as in this attempt; until that share is known, at most what the chosen limit takes.
 */
static double earlier_step_time_s(const struct fly_session *session)
{
    double all_s = session->proposal.time_s, own_s = session_time_s(session);
    double usual_s =
        (double)session->proposal.epochs_done * steps_per_epoch(session) * session->carbon.usual_step_s;

    if (!(all_s > 0.0))
        return 0.0;
    if (session->reported && own_s > 0.0)
        return all_s * fmin(1.0, step_count_time_s(&session->count, session->clock) / own_s);
    return usual_s < all_s ? usual_s : all_s;
}

/*
 * How many epochs the whole training is expected to have; NAN: not known. A training that stops at its target
 * ends with an epoch.
 */
static double epochs_expected(const struct fly_session *session)
{
    double most = (double)session->options.job.max_epochs;

    if (session->options.job.target == FLY_TARGET_NONE || !session->proposal.stops_at_target)
        return most;
    if (isnan(session->proposal.expected_epochs))
        return NAN;
    return fmin(session->proposal.expected_epochs, fmin(most, (double)session->epochs));
}

/* Stores how far the training is; false when the length of an epoch is not known. */
static bool session_progress(const struct fly_session *session, struct carbon_progress *out_progress)
{
    double per_epoch = steps_per_epoch(session), own = (double)session->count.begun;
    double in_epoch = session->count.open ? (double)step_count_in_epoch(&session->count) : 0.0;
    double done = epochs_ended(session) * per_epoch + in_epoch;
    double all = session->carbon.options.steps > 0 ? (double)session->carbon.options.steps
                                                   : epochs_expected(session) * per_epoch;
    /* Beyond what was expected, only the rest of this epoch is known. */
    double least = fmax(per_epoch - in_epoch, 1.0);

    if (isnan(per_epoch))
        return false;
    *out_progress = (struct carbon_progress){
        .steps_done = fmax(done, own),
        .steps_earlier = fmax(done - own, 0.0),
        .steps_left = isnan(all) ? NAN : fmax(all - done, least),
        .step_time_s = earlier_step_time_s(session) + step_count_time_s(&session->count, session->clock),
    };
    return true;
}

/*
 * Sets a session's power limit, checks whether it stands, and lets go of it when another program has set one.
 */

void session_limit_explain(struct session_limit *limit, const char *text)
{
    if (limit->text[0] == '\0')
        snprintf(limit->text, sizeof limit->text, "%s", text);
}

/* Sets a limit. The limit that the GPUs report afterwards is the one that must stand from now on. */
static void hold(struct fly_session *session, double limit_w)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    int result = limit->turner->set(limit->data, limit_w, &error);

    if (result == 0)
        result = limit->turner->standing(limit->data, &limit->held_w, &error);
    if (result == 0)
        return;
    session_limit_explain(limit, error.text);
    limit->held_w = NAN;
}

/* Lets go of the limit without putting anything back, as another program has set one. */
static void let_go(struct session_limit *limit, const char *text)
{
    session_limit_explain(limit, text);
    limit->held_w = NAN;
}

/* The session's own knob, which a thread may give back. */
static int check_knob(struct session_limit *limit, struct fly_error *out_error)
{
    int code = 0;

    idle_turner_hold(&limit->idle);
    if (limit->knob != NULL)
        code = knob_check(limit->knob, out_error);
    idle_turner_let_go(&limit->idle);
    return code;
}

void session_limit_check(struct fly_session *session)
{
    struct session_limit *limit = &session->limit;
    struct fly_error error = {.text = ""};
    double standing_w;

    if (isnan(limit->held_w))
        return;
    if (check_knob(limit, &error) < 0) {
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

/* Sets another limit in place of the one that this session holds, if that still stands. */
static void session_limit_change(struct fly_session *session, double limit_w)
{
    session_limit_check(session);
    if (!isnan(session->limit.held_w))
        hold(session, limit_w);
}

/* Sets the limit that the log chose, or the tuner when the log could not be asked. */
void session_limit_hold_choice(struct fly_session *session, double limit_w)
{
    session->limit.choice_w = limit_w;
    hold(session, limit_w);
}

/* ---- the account of each training: writes its head, and tells it steps and limits ---- */

/* A moment to finish by bounds only the last try: an earlier one must leave time for another. */
static int64_t session_finish_by_s(const struct fly_session *session)
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
static double session_time_at_s(const struct fly_power_point *points, size_t count, double limit_w)
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
static double session_bound_of(const struct fly_session *session, const struct fly_power_point *points,
                               size_t count, double choice_w)
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
static void session_account_open(struct fly_session *session)
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
