/* SPDX-License-Identifier: Apache-2.0 */
#include "train/carbon/carbon_governor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grid/forecast.h"
#include "train/carbon/carbon_head.h"

/* ---- figures of the grid ---- */

/*
 * The grid's figures from a keeper, and what they say of the time ahead. Start with all zeros; moments are
 * seconds since 1970.
 */
struct carbon_ahead {
    const struct grid_answer *answers[CARBON_SIGNALS]; /* owned by the keeper */
    uint64_t mark;                                     /* checksum of what a forecast uses of them */
    struct grid_outlook outlook;
};

/* Figures of the grid further ahead than this are of no use. */
static const double farthest_s = 60.0 * 86400.0;

enum { DAY_S = 86400, WEEK_S = 7 * DAY_S, FORECAST_LOOKS_BACK_S = (GRID_FORECAST_DAYS + 2) * DAY_S };

static void carbon_ahead_deinit(struct carbon_ahead *ahead)
{
    grid_outlook_deinit(&ahead->outlook);
}

/* FNV-1a. */
static uint64_t mix(uint64_t mark, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        mark = (mark ^ at[i]) * 1099511628211u;
    return mark;
}

static uint64_t mix_series(uint64_t mark, const struct grid_series *series, int64_t from_s)
{
    for (size_t i = grid_series_find(series, from_s); i < series->count; i++) {
        const struct grid_period *period = &series->periods[i];

        mark = mix(mark, &period->start_s, sizeof period->start_s);
        mark = mix(mark, &period->end_s, sizeof period->end_s);
        mark = mix(mark, &period->value, sizeof period->value);
    }
    return mix(mark, &series->count, sizeof series->count);
}

/* Takes the keeper's newest figures; returns whether they differ: the same figures need no new plan. */
static bool carbon_ahead_take(struct carbon_ahead *ahead, struct carbon_keeper *keeper, double date_s)
{
    int64_t from_s = ((int64_t)date_s - FORECAST_LOOKS_BACK_S) / DAY_S * DAY_S;
    uint64_t mark = 14695981039346656037u;
    bool changed;

    if (!carbon_keeper_take(keeper, ahead->answers))
        return false;
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (ahead->answers[i] != NULL) {
            mark = mix_series(mark, &ahead->answers[i]->actual, from_s);
            mark = mix_series(mark, &ahead->answers[i]->published, from_s);
        }
        mark = mix(mark, &i, sizeof i);
    }
    changed = mark != ahead->mark;
    ahead->mark = mark;
    return changed;
}

/*
 * Fills in a question's outlook up to its deadline, in seconds spent in steps: steps take `share` of the
 * time, and the rest passes without work.
 */
static void carbon_ahead_look(struct carbon_ahead *ahead, const struct carbon_objective *objective,
                              double date_s, double share, struct carbon_question *question)
{
    const struct grid_outlook_request request = {
        .answers = {ahead->answers[CARBON_INTENSITY], ahead->answers[CARBON_PRICE]},
        .published_until_s = {INT64_MAX, INT64_MAX},
        .objective = *objective,
        .from_s = date_s,
        .to_s = date_s + fmin(question->time_s / share, farthest_s),
    };
    size_t capacity;

    if (!(question->time_s > 0.0))
        return;
    capacity = grid_outlook_capacity(&request);
    if (capacity > ahead->outlook.capacity) {
        grid_outlook_deinit(&ahead->outlook);
        if (grid_outlook_init(&ahead->outlook, capacity, NULL) < 0)
            return; /* nothing is known of the grid */
    }
    grid_outlook_foretell(&ahead->outlook, &request);
    for (size_t i = 0; i < ahead->outlook.count; i++)
        ahead->outlook.spans[i].duration_s *= share;
    question->outlook = ahead->outlook.spans;
    question->outlook_count = ahead->outlook.count;
    question->stale = ahead->outlook.stale;
    question->scarce = ahead->outlook.scarce;
}

/* The assumed intensity of the current period; NAN: not known. */
static double carbon_ahead_intensity(const struct carbon_ahead *ahead, double date_s)
{
    const struct grid_outlook *outlook = &ahead->outlook;
    const struct grid_answer *answer = ahead->answers[CARBON_INTENSITY];
    const struct grid_period *period;
    int64_t now_s = (int64_t)date_s;

    for (size_t i = 0; i < outlook->period_counts[CARBON_INTENSITY]; i++) {
        period = &outlook->periods[CARBON_INTENSITY][i];
        if (period->start_s <= now_s && now_s < period->end_s)
            return period->value;
    }
    period = answer != NULL ? grid_series_at(&answer->published, now_s) : NULL;
    return period != NULL ? period->value : NAN;
}

/* The mean of a figure's actual values in the past week; NAN: not known. */
static double carbon_ahead_reference(const struct carbon_ahead *ahead, int signal, double date_s)
{
    const struct grid_answer *answer = ahead->answers[signal];
    double coverage;

    if (answer == NULL)
        return NAN;
    return grid_series_mean(&answer->actual, (int64_t)date_s - WEEK_S, (int64_t)date_s, &coverage);
}

/* The newest decision; times in seconds of the governor's clock. */
struct decided {
    bool made;
    struct carbon_point first, second;
    double first_until_s, until_s;
    double finish_s;
    double pace;        /* the pace factor when it was made */
    double wall_lead_s; /* the wall clock minus the governor's */
    bool behind;
    enum carbon_reason reason;
    const char *text;
};

struct carbon_governor {
    struct ledger_head head; /* the options, with defaults filled in */
    double all_host_w, gpu_share;
    bool leads; /* rank 0 */
    const struct clock *clock;
    struct mono_time opened;
    struct carbon_keeper *keeper;
    bool keeper_owned;
    double steps_told; /* to a keeper of its own */

    struct carbon_ahead ahead;
    bool figures_changed;
    struct carbon_pace pace;
    struct carbon_plan plan;
    size_t plan_capacity; /* 0: there is none */
    struct decided decided;

    bool fresh;        /* no decision since the newest profile */
    double standing_w; /* NAN: none of the profile's, or not known */
    double stands_since_s;
    double asked_w; /* the limit that the newest answer asked for; NAN: none */
    uint32_t decisions, changes;
};

/* ---- options ---- */

/* Checks the options for following the grid, and fills in defaults. */

static int take_text(const char *what, const char *from, char to[LEDGER_TEXT_MAX],
                     struct fly_error *out_error)
{
    if (from != NULL && strlen(from) >= LEDGER_TEXT_MAX)
        return error_set(out_error, FLY_EUSAGE, "carbon: %s is longer than %d bytes", what,
                         LEDGER_TEXT_MAX - 1);
    snprintf(to, LEDGER_TEXT_MAX, "%s", from != NULL ? from : "");
    return 0;
}

static int take_texts(const struct carbon_governor_options *options, struct ledger_head *head,
                      struct fly_error *out_error)
{
    const struct {
        const char *what, *from;
        char *to;
    } texts[] = {
        {"the source", options->carbon.source, head->sources[CARBON_INTENSITY]},
        {"the source of prices", options->carbon.price, head->sources[CARBON_PRICE]},
        {"the job's name", options->job, head->job},
        {"the run's name", options->run, head->run},
        {"the program's name", options->program, head->program},
    };
    int code = 0;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && code == 0; i++)
        code = take_text(texts[i].what, texts[i].from, texts[i].to, out_error);
    return code;
}

static bool is_weight(double weight)
{
    return isfinite(weight) && weight >= 0.0;
}

static int take_objective(const struct fly_carbon_options *carbon, struct ledger_head *head,
                          struct fly_error *out_error)
{
    struct carbon_objective *objective = &head->objective;
    bool has_source = head->sources[CARBON_INTENSITY][0] != '\0', has_price = head->sources[CARBON_PRICE][0];

    *objective = (struct carbon_objective){carbon->per_g, carbon->per_money, carbon->per_kwh};
    if (!is_weight(carbon->per_g) || !is_weight(carbon->per_money) || !is_weight(carbon->per_kwh))
        return error_set(
            out_error, FLY_EUSAGE,
            "carbon: weights of %g for a gram, %g for money and %g for a kWh: expected 0 or more",
            carbon->per_g, carbon->per_money, carbon->per_kwh);
    if ((carbon->per_g > 0.0 && !has_source) || (carbon->per_money > 0.0 && !has_price))
        return error_set(out_error, FLY_EUSAGE, "carbon: %s has a weight and no source; name one",
                         has_source ? "money" : "a gram");
    if (carbon->per_g > 0.0 || carbon->per_money > 0.0 || carbon->per_kwh > 0.0)
        return 0;
    if (!has_source && !has_price)
        return error_set(out_error, FLY_EUSAGE,
                         "carbon: neither a source of intensities nor one of prices; name one, as in "
                         "'gb:national'");
    *(has_source ? &objective->per_g : &objective->per_money) = 1.0;
    return 0;
}

static int take_bounds(const struct carbon_governor_options *options, struct ledger_head *head,
                       struct fly_error *out_error)
{
    const struct fly_carbon_options *carbon = &options->carbon;

    head->surroundings = (struct carbon_surroundings){carbon->host_w, carbon->pue == 0.0 ? 1.0 : carbon->pue};
    if (!is_weight(carbon->host_w) || !isfinite(carbon->pue) || head->surroundings.pue < 1.0)
        return error_set(out_error, FLY_EUSAGE,
                         "carbon: host power of %g W and PUE of %g: expected 0 or more, and 1 or more",
                         carbon->host_w, carbon->pue);
    if (carbon->finish_by_unix_s < 0)
        return error_set(out_error, FLY_EUSAGE, "carbon: a deadline before 1970");
    if (!(options->max_slowdown >= 1.0))
        return error_set(out_error, FLY_EUSAGE, "carbon: a bound of %g times the fastest: expected 1 or more",
                         options->max_slowdown);
    head->finish_by_s = carbon->finish_by_unix_s;
    head->max_slowdown = isinf(options->max_slowdown) ? carbon_usual_slowdown : options->max_slowdown;
    if (head->finish_by_s > 0)
        head->max_slowdown = NAN;
    head->steps = carbon->steps;
    head->gpus = options->gpus;
    head->rank = options->rank;
    return 0;
}

int carbon_governor_head(const struct carbon_governor_options *options, struct ledger_head *out_head,
                         struct fly_error *out_error)
{
    struct ledger_head head = {.run = ""};
    int code = 0;

    if (options->carbon.size < sizeof options->carbon)
        return error_set(out_error, FLY_EUSAGE, "carbon: options.size is %zu; set it to sizeof options",
                         options->carbon.size);
    code = take_texts(options, &head, out_error);
    if (code == 0)
        code = take_objective(&options->carbon, &head, out_error);
    if (code == 0)
        code = take_bounds(options, &head, out_error);
    if (code == 0)
        *out_head = head;
    return code;
}

/* ---- the plan ---- */

/* The governor's plan: when to make another, what to ask of it, and what to take from its answer. */

/*
 * How often the governor should be asked, and how long an answer that depends on no period stays valid at
 * most.
 */
static const double every_s = 5.0, static_s = 300.0;
/* A new plan is made when the time of steps has changed by this share. */
static const double pace_change = 0.01;
/* The share of the remaining work that is reserved for errors of its profile, when the bound is a moment. */
static const double deadline_reserve = 0.002;
/* A wall clock that moves by more than this against the monotonic one was set. */
static const double jump_s = 2.0;
static const struct carbon_plan_settings settings = {
    .least_gain = 0.002, .dwell_s = 300.0, .doubt = CARBON_USUAL_DOUBT};

/* Seconds of the governor's clock since it was opened; of the wall clock since 1970. */
static double governor_now_s(const struct carbon_governor *governor)
{
    return mono_elapsed_s(governor->opened, governor->clock->now(governor->clock->state));
}

static double governor_date_s(const struct carbon_governor *governor)
{
    return (double)governor->clock->date(governor->clock->state).ns * 1e-9;
}

uint64_t carbon_governor_every(double step_time_s)
{
    double steps = floor(every_s / step_time_s);

    return steps >= 1.0 ? (uint64_t)fmin(steps, 1e6) : 1;
}

/* Makes room for a plan of so many spans; a held limit stays held. */
static int make_plan(struct carbon_governor *governor, size_t capacity)
{
    double held_w = governor->plan_capacity > 0 ? governor->plan.held_static_w : 0.0;
    int code;

    if (governor->plan_capacity >= capacity)
        return 0;
    if (governor->plan_capacity > 0)
        carbon_plan_deinit(&governor->plan);
    governor->plan_capacity = 0;
    code = carbon_plan_init(&governor->plan, &settings, capacity, NULL);
    if (code < 0)
        return code;
    governor->plan_capacity = capacity;
    governor->plan.held_static_w = held_w;
    return 0;
}

/* The share of wall-clock time that is spent in steps. */
static double step_share(const struct carbon_governor *governor)
{
    double other_s = carbon_pace_other_s(&governor->pace);
    double step_s = governor->pace.fastest_s * governor->pace.factor;

    return step_s / (step_s + other_s);
}

static double lowest_rate(const struct carbon_profile *profile)
{
    double rate = 1.0;

    for (size_t i = 0; i < profile->count; i++)
        rate = fmin(rate, profile->points[i].rate);
    return rate;
}

/* What may be lost until the next answer, which comes after a few steps. */
static double reserve_s(const struct carbon_governor *governor)
{
    const struct carbon_pace *pace = &governor->pace;
    double lowest = lowest_rate(&pace->profile), step_s = pace->fastest_s * pace->factor / lowest;
    double reserve = (every_s + 2.0 * step_s) * (1.0 - lowest);

    if (governor->head.finish_by_s > 0)
        reserve += every_s + deadline_reserve * carbon_pace_work_s(pace);
    return reserve;
}

/* Time in steps up to the deadline; NAN when the amount of work is not known. */
static double time_left_s(const struct carbon_governor *governor)
{
    const struct carbon_pace *pace = &governor->pace;

    if (governor->head.finish_by_s > 0)
        return (double)governor->head.finish_by_s - governor_date_s(governor) -
               carbon_pace_other_left_s(pace) - reserve_s(governor);
    return carbon_pace_allowed_s(pace, governor->head.max_slowdown) - reserve_s(governor);
}

double carbon_governor_spare_s(const struct carbon_governor *governor, const struct carbon_progress *progress,
                               double step_s)
{
    if (!(progress->steps_left > 0.0))
        return INFINITY;
    if (governor->head.finish_by_s > 0)
        return (double)governor->head.finish_by_s - governor_date_s(governor) -
               progress->steps_left * (step_s + carbon_pace_other_s(&governor->pace));
    return carbon_pace_spare_s(&governor->pace, governor->head.max_slowdown, progress, step_s);
}

/* The question when nobody knows how much is left: do a share of the work in the same share of the time. */
static void ask_without_end(const struct carbon_governor *governor, struct carbon_question *question)
{
    const struct carbon_pace *pace = &governor->pace;

    question->work_s = static_s * pace->usual;
    question->time_s = governor->head.finish_by_s > 0
                           ? question->work_s
                           : static_s * fmin(pace->usual, 1.0) * governor->head.max_slowdown;
}

static const char *text_of(const struct carbon_governor *governor, enum carbon_reason reason, bool known)
{
    if (governor->head.finish_by_s > 0 && !known)
        return "fastest limit: how many steps are left is not known";
    if (reason == CARBON_BEHIND || known)
        return carbon_reason_text(reason);
    return "static limit: how many steps are left is not known";
}

static void take(struct carbon_governor *governor, const struct carbon_decision *decision, bool known,
                 double now_s)
{
    double share = step_share(governor), valid_s = decision->valid_s;
    struct decided *decided = &governor->decided;
    bool is_static = decision->reason >= CARBON_UNKNOWN_GRID;

    if (is_static)
        valid_s = fmin(valid_s, static_s);
    *decided = (struct decided){
        .made = true,
        .first = decision->first,
        .second = decision->second,
        .first_until_s = now_s + fmin(decision->first_s, valid_s) / share,
        .until_s = now_s + valid_s / share,
        .finish_s = known ? now_s + decision->finish_s / share : NAN,
        .pace = governor->pace.factor,
        .wall_lead_s = governor_date_s(governor) - now_s,
        .behind = decision->reason == CARBON_BEHIND,
        .reason = decision->reason,
        .text = text_of(governor, decision->reason, known),
    };
    governor->figures_changed = false;
    governor->decisions++;
}

/* Makes a plan. If that fails, what stands stays until the next attempt. */
static void decide(struct carbon_governor *governor, double now_s)
{
    struct carbon_question question = {
        .profile = &governor->pace.profile,
        .work_s = carbon_pace_work_s(&governor->pace),
        .time_s = time_left_s(governor),
        .limit_w = governor->fresh ? NAN : governor->standing_w,
        .held_s = (now_s - governor->stands_since_s) * step_share(governor),
    };
    bool known = question.work_s > 0.0;
    struct carbon_decision decision;

    if (known)
        carbon_ahead_look(&governor->ahead, &governor->head.objective, governor_date_s(governor),
                          step_share(governor), &question);
    else
        ask_without_end(governor, &question);
    if (make_plan(governor, question.outlook_count + 1) == 0 &&
        carbon_plan_decide(&governor->plan, &question, &decision, NULL) == 0) {
        take(governor, &decision, known, now_s);
        return;
    }
    governor->decided.until_s = governor->decided.first_until_s = now_s + static_s;
}

static bool needs_decision(const struct carbon_governor *governor, double now_s)
{
    const struct decided *decided = &governor->decided;
    double work_s = carbon_pace_work_s(&governor->pace), pace = governor->pace.factor;

    return !decided->made || now_s >= decided->until_s || governor->figures_changed ||
           fabs(pace - decided->pace) > pace_change * decided->pace ||
           fabs(governor_date_s(governor) - now_s - decided->wall_lead_s) > jump_s ||
           (!decided->behind && work_s >= time_left_s(governor));
}

/* Decides anew when that is due and both progress and a profile are known. */
static void governor_keep_plan(struct carbon_governor *governor, double now_s)
{
    if (needs_decision(governor, now_s))
        decide(governor, now_s);
}

/* The limit that was decided for that moment. */
static double governor_limit_w(const struct carbon_governor *governor, double now_s)
{
    const struct decided *decided = &governor->decided;

    return now_s < decided->first_until_s ? decided->first.limit_w : decided->second.limit_w;
}

/* ---- what a tuner or a session asks and tells ---- */

static int open_keeper(struct carbon_governor *governor, const struct carbon_governor_options *options,
                       struct fly_error *out_error)
{
    const struct carbon_keeper_options wanted = {
        .clock = options->clock,
        .meter = options->meter,
        .directory = options->carbon.directory,
        .head = governor->head,
        /* Rank 0 alone asks the network. */
        .cached_only = options->cached_only || options->rank != 0,
    };
    int code = carbon_keeper_open(&wanted, &governor->keeper, out_error);

    governor->keeper_owned = code == 0;
    return code;
}

int carbon_governor_open(const struct carbon_governor_options *options, struct carbon_governor **out_governor,
                         struct fly_error *out_error)
{
    struct carbon_governor *governor = calloc(1, sizeof *governor);
    int code;

    if (governor == NULL)
        return error_no_memory(out_error);
    code = carbon_governor_head(options, &governor->head, out_error);
    if (code == 0) {
        governor->clock = options->clock != NULL ? options->clock : &clock_real;
        governor->opened = governor->clock->now(governor->clock->state);
        governor->leads = options->rank == 0;
        governor->all_host_w = options->all_host_w > 0.0 ? options->all_host_w : options->carbon.host_w;
        governor->gpu_share = options->all_gpus > 0 ? (double)options->gpus / options->all_gpus : 1.0;
        governor->standing_w = governor->asked_w = NAN;
        governor->fresh = true;
        carbon_pace_init(&governor->pace);
        governor->keeper = options->keeper;
        if (governor->keeper == NULL)
            code = open_keeper(governor, options, out_error);
    }
    if (code < 0)
        carbon_governor_close(governor);
    else
        *out_governor = governor;
    return code;
}

void carbon_governor_close(struct carbon_governor *governor)
{
    struct carbon_keeper_summary summary;

    if (governor == NULL)
        return;
    if (governor->keeper_owned)
        carbon_keeper_close(governor->keeper, &summary);
    if (governor->plan_capacity > 0)
        carbon_plan_deinit(&governor->plan);
    carbon_ahead_deinit(&governor->ahead);
    free(governor);
}

int carbon_governor_profile(struct carbon_governor *governor, const struct fly_power_point *points,
                            size_t count, struct fly_error *out_error)
{
    const struct carbon_surroundings around = {governor->all_host_w, governor->head.surroundings.pue};
    struct fly_power_point own[CARBON_POINTS_MAX];
    struct carbon_profile profile;
    double fastest_s = INFINITY;
    int code = carbon_profile_init(&profile, points, count, &around, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        own[i] = points[i];
        own[i].power_w *= governor->gpu_share;
        fastest_s = fmin(fastest_s, points[i].time_s);
    }
    carbon_pace_profile(&governor->pace, &profile, fastest_s);
    carbon_pace_stands(&governor->pace, governor->standing_w, false);
    carbon_keeper_profile(governor->keeper, own, count);
    if (governor->plan_capacity > 0)
        carbon_plan_restart(&governor->plan);
    governor->decided.made = false;
    governor->fresh = true;
    return 0;
}

void carbon_governor_bound(struct carbon_governor *governor, double max_slowdown)
{
    if (governor->head.finish_by_s > 0 || !(max_slowdown >= 1.0) ||
        max_slowdown == governor->head.max_slowdown)
        return;
    governor->head.max_slowdown = max_slowdown;
    governor->decided.made = false;
}

void carbon_governor_stands(struct carbon_governor *governor, double limit_w)
{
    bool asked = limit_w == governor->asked_w;

    carbon_keeper_limit(governor->keeper, limit_w);
    carbon_pace_stands(&governor->pace, limit_w, asked);
    governor->asked_w = NAN;
    if (limit_w == governor->standing_w)
        return;
    governor->changes += asked && !governor->fresh;
    governor->standing_w = limit_w;
    governor->stands_since_s = governor_now_s(governor);
    governor->fresh = governor->fresh && !asked;
}

static void take_figures(struct carbon_governor *governor)
{
    if (governor->leads && carbon_ahead_take(&governor->ahead, governor->keeper, governor_date_s(governor)))
        governor->figures_changed = true;
}

void carbon_governor_count(struct carbon_governor *governor, double steps_done)
{
    double steps = steps_done - governor->steps_told;

    if (!governor->keeper_owned || !(steps > 0.0))
        return;
    carbon_keeper_steps(governor->keeper, (uint64_t)steps);
    governor->steps_told += floor(steps);
}

double carbon_governor_decide(struct carbon_governor *governor, const struct carbon_progress *progress)
{
    double now_s = governor_now_s(governor), wanted_w;

    carbon_governor_count(governor, progress->steps_done - progress->steps_earlier);
    take_figures(governor);
    governor->asked_w = NAN;
    if (!governor->leads || governor->pace.profile.count == 0)
        return NAN;
    carbon_pace_progress(&governor->pace, progress, now_s);
    governor_keep_plan(governor, now_s);
    if (!governor->decided.made)
        return NAN;
    wanted_w = governor_limit_w(governor, now_s);
    if (wanted_w == governor->standing_w) {
        governor->fresh = false;
        return NAN;
    }
    governor->asked_w = wanted_w;
    return wanted_w;
}

double carbon_governor_reference(struct carbon_governor *governor, int signal)
{
    take_figures(governor);
    return carbon_ahead_reference(&governor->ahead, signal, governor_date_s(governor));
}

enum carbon_reason carbon_governor_reason(const struct carbon_governor *governor)
{
    if (!governor->decided.made)
        return CARBON_UNKNOWN_GRID;
    return governor->decided.reason;
}

static const char *text_now(const struct carbon_governor *governor)
{
    if (!governor->leads)
        return "as rank 0 says";
    if (!governor->decided.made)
        return "the power profile is not measured yet";
    return governor->decided.text;
}

void carbon_governor_report(const struct carbon_governor *governor, struct fly_carbon_report *out_report)
{
    const struct decided *decided = &governor->decided;
    struct carbon_keeper_summary summary = carbon_keeper_look(governor->keeper);
    double now_s = governor_now_s(governor);
    struct fly_carbon_report report = {
        .size = out_report->size,
        .limit_w = NAN,
        .finish_s = NAN,
        .intensity_g_per_kwh = carbon_ahead_intensity(&governor->ahead, governor_date_s(governor)),
        .decisions = governor->decisions,
        .changes = governor->changes,
        .energy_j = summary.energy_j,
    };

    if (decided->made) {
        report.limit_w = governor_limit_w(governor, now_s);
        report.finish_s = decided->finish_s > now_s ? decided->finish_s - now_s : NAN;
    }
    snprintf(report.reason, sizeof report.reason, "%s", text_now(governor));
    snprintf(report.account, sizeof report.account, "%.255s", summary.path);
    snprintf(report.text, sizeof report.text, "%.255s", summary.text);
    *out_report = report;
}
