/* SPDX-License-Identifier: Apache-2.0 */
/* What a self-test's figures mean, as a table of checks. */
#include "meter/selftest/selftest.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* A period longer than the stated one by this factor makes stated uncertainties too small. */
static const double period_tolerance = 1.25;
/* Fewer periods than this are not a measurement. */
enum { PERIODS_MIN = 5 };
/* The counter and the integral of one board differ by no more than this if both are sound. */
static const double excess_tolerance = 0.05;
/* A load raises the power by at least this share; otherwise there was no load. */
static const double load_tolerance = 0.1;
/* A counter that counts in larger steps says little of short windows. */
static const double step_tolerance_j = 0.1;
/* A device that was busier than this was not idle. */
static const double idle_tolerance = 0.05;

/* The mean of readings may exceed a limit that holds by this share. */
static const double reading_tolerance = 0.01;
/* At a limit that binds the work decreases by more than this; otherwise the load was not affected. */
static const double work_tolerance = 0.02;
/* The limit that was in force before must be back this soon after its holder was killed. */
static const double back_promised_s = 1.0;
/* Two limits, read in whole milliwatts, are the same if they differ by less. */
static const double same_w = 0.0005;

static const char *const outcome_words[] = {[SELFTEST_AS_EXPECTED] = "as_expected",
                                            [SELFTEST_DIFFERS] = "differs",
                                            [SELFTEST_NOT_KNOWN] = "not_known"};
_Static_assert(sizeof outcome_words / sizeof outcome_words[0] == SELFTEST_OUTCOME_COUNT,
               "one word for every outcome");

const char *selftest_outcome_word(enum selftest_outcome outcome)
{
    return outcome_words[outcome];
}

__attribute__((format(printf, 3, 4))) static void say(struct selftest_finding *finding,
                                                      enum selftest_outcome outcome, const char *format, ...)
{
    va_list arguments;

    finding->outcome = outcome;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

/* Returns the stage that tells more: the loaded one if there was one. */
static const struct selftest_window *best_window(const struct selftest_result *result)
{
    const struct selftest_window *loaded = &result->windows[SELFTEST_LOADED];

    return loaded->measured ? loaded : &result->windows[SELFTEST_IDLE];
}

static void check_excess(const struct selftest_window *window, const char *when,
                         struct selftest_finding *finding)
{
    double percent = 100.0 * window->integral_excess;

    if (isnan(window->counter_j))
        say(finding, SELFTEST_NOT_KNOWN, "%s: there is no figure of an energy counter%s%s", when,
            window->note[0] != '\0' ? ": " : "", window->note);
    else if (isnan(window->integral_excess))
        say(finding, SELFTEST_NOT_KNOWN, "%s: there is no integral of the power to compare the counter with",
            when);
    else if (fabs(window->integral_excess) <= excess_tolerance)
        say(finding, SELFTEST_AS_EXPECTED, "%s: the integrated power is %+.1f %% off the counter", when,
            percent);
    else
        say(finding, SELFTEST_DIFFERS,
            "%s: the integrated power is %+.1f %% off the counter; one of the two misses a part of the power",
            when, percent);
}

static void check_idle(const struct device_info *info, const struct selftest_result *result,
                       struct selftest_finding *finding)
{
    (void)info;
    check_excess(&result->windows[SELFTEST_IDLE], "idle", finding);
}

static void check_loaded(const struct device_info *info, const struct selftest_result *result,
                         struct selftest_finding *finding)
{
    (void)info;
    if (!result->windows[SELFTEST_LOADED].measured)
        say(finding, SELFTEST_NOT_KNOWN, "loaded: it was not measured");
    else
        check_excess(&result->windows[SELFTEST_LOADED], "loaded", finding);
}

/* Compares a measured period with the stated one, on which stated uncertainties depend. */
static void compare_period(const struct update_finding *updates, const char *what, double assumed_s,
                           struct selftest_finding *finding)
{
    double measured_s = updates->period_s.median;

    if (updates->period_s.count < PERIODS_MIN)
        say(finding, SELFTEST_NOT_KNOWN,
            "the %s changed %zu times in %zu polls, too seldom to tell its period", what, updates->changes,
            updates->polls);
    else if (!(assumed_s > 0.0))
        say(finding, SELFTEST_NOT_KNOWN,
            "the %s is updated %s %.1f ms; the table has no period to compare with", what,
            updates->at_most ? "at least every" : "every", 1e3 * measured_s);
    else if (measured_s <= assumed_s * period_tolerance + updates->poll_s)
        say(finding, SELFTEST_AS_EXPECTED, "the %s is updated %s %.1f ms; the table says %.1f ms", what,
            updates->at_most ? "at least every" : "every", 1e3 * measured_s, 1e3 * assumed_s);
    else
        say(finding, SELFTEST_DIFFERS,
            "the %s is updated every %.1f ms; the table says %.1f ms, so stated uncertainties are too small",
            what, 1e3 * measured_s, 1e3 * assumed_s);
}

static void check_counter_period(const struct device_info *info, const struct selftest_result *result,
                                 struct selftest_finding *finding)
{
    compare_period(&best_window(result)->updates[0], "energy counter", info->sensor.counter_period_s,
                   finding);
}

/* Whether the moments of updates can be known, on which the energy of short windows rests. */
static void check_counter_tracked(const struct device_info *info, const struct selftest_result *result,
                                  struct selftest_finding *finding)
{
    const struct account_counter *counter = &best_window(result)->counter;

    (void)info;
    switch (counter->state) {
    case PHASE_TRACKED:
        say(finding, SELFTEST_AS_EXPECTED,
            "the counter's updates come every %.2f ms, and each is known to within %.2f ms",
            1e3 * counter->period_s, 1e3 * counter->spread_s);
        return;
    case PHASE_FRESH:
        say(finding, SELFTEST_AS_EXPECTED, "%s, or at most %.2f ms old", phase_state_clause(counter->state),
            1e3 * counter->spread_s);
        return;
    case PHASE_UNSTEADY:
        say(finding, SELFTEST_DIFFERS,
            "%s, so the energy of short windows is the plain difference of the counter",
            phase_state_clause(counter->state));
        return;
    default:
        say(finding, SELFTEST_NOT_KNOWN, "%s", phase_state_clause(counter->state));
    }
}

static void check_counter_step(const struct device_info *info, const struct selftest_result *result,
                               struct selftest_finding *finding)
{
    double step_j = best_window(result)->counter.step_j;

    (void)info;
    if (step_j == 0.0)
        say(finding, SELFTEST_NOT_KNOWN, "the step in which the counter counts did not show");
    else
        say(finding, step_j <= step_tolerance_j ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
            "the counter counts in steps of %.3g J", step_j);
}

static void check_counter_against_power(const struct device_info *info, const struct selftest_result *result,
                                        struct selftest_finding *finding)
{
    const struct account_counter *counter = &best_window(result)->counter;

    (void)info;
    if (counter->state != PHASE_TRACKED)
        say(finding, SELFTEST_NOT_KNOWN, "%s", phase_state_clause(counter->state));
    else if (counter->disagrees)
        say(finding, SELFTEST_DIFFERS,
            "between its updates the counter rises otherwise than the power readings say");
    else
        say(finding, SELFTEST_AS_EXPECTED, "between its updates the counter rises as the power readings say");
}

static void check_power_period(const struct device_info *info, const struct selftest_result *result,
                               struct selftest_finding *finding)
{
    const struct update_finding *updates = best_window(result)->updates;
    bool instant = updates[1].polls > 0;

    compare_period(&updates[instant ? 1 : 2], instant ? "power reading" : "average power reading",
                   info->sensor.power_period_s, finding);
}

static void check_idleness(const struct device_info *info, const struct selftest_result *result,
                           struct selftest_finding *finding)
{
    double share = result->windows[SELFTEST_IDLE].utilization;

    (void)info;
    if (isnan(share))
        say(finding, SELFTEST_NOT_KNOWN, "the device does not say whether it was idle at first");
    else
        say(finding, share <= idle_tolerance ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
            "at first the device had work for %.0f %% of the time", 100.0 * share);
}

static void check_load(const struct device_info *info, const struct selftest_result *result,
                       struct selftest_finding *finding)
{
    double idle_w = result->windows[SELFTEST_IDLE].mean_power_w;
    double loaded_w = result->windows[SELFTEST_LOADED].mean_power_w;

    (void)info;
    if (!result->windows[SELFTEST_LOADED].measured || isnan(idle_w) || isnan(loaded_w))
        say(finding, SELFTEST_NOT_KNOWN, "the power with and without a load is not known");
    else if (!result->load_ran)
        say(finding, SELFTEST_NOT_KNOWN, "no load was put on it; the power went from %.1f W to %.1f W",
            idle_w, loaded_w);
    else
        say(finding, loaded_w > idle_w * (1.0 + load_tolerance) ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
            "the power went from %.1f W to %.1f W", idle_w, loaded_w);
}

/* ---- limits that were set ---- */

/* Returns whether the load would have drawn more than this limit allows, as far as was observed. */
static bool binds(const struct selftest_turning *turning, int level)
{
    const struct selftest_level *highest = &turning->levels[0], *at = &turning->levels[level];

    if (!(at->limit_w > 0) || isnan(at->mean_power_w))
        return false;
    return level == 0 ? at->capped_share > 0.5 : highest->mean_power_w > at->limit_w;
}

static int count_binding(const struct selftest_turning *turning)
{
    int count = 0;

    for (int i = 0; i < SELFTEST_LEVELS; i++)
        count += binds(turning, i) ? 1 : 0;
    return count;
}

/* Writes "300 W: 298.1 ± 4.0 W; 200 W: ..." for the limits that bind. */
static void put_powers(const struct selftest_turning *turning, char *text, size_t capacity)
{
    const char *between = "";
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < SELFTEST_LEVELS && length < capacity; i++) {
        const struct selftest_level *level = &turning->levels[i];

        if (!binds(turning, i))
            continue;
        length += (size_t)snprintf(text + length, capacity - length, "%s%.10g W: %.1f ± %.1f W", between,
                                   level->limit_w, level->mean_power_w, level->uncertainty_w);
        between = "; ";
    }
}

/* Reports if no limit was below what the load draws: then the test tells nothing about any limit. */
static bool none_binds(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    const struct selftest_level *levels = turning->levels;
    double lowest_w = NAN;

    if (count_binding(turning) > 0)
        return false;
    for (int i = 0; i < SELFTEST_LEVELS; i++)
        lowest_w = levels[i].limit_w > 0 ? levels[i].limit_w : lowest_w;
    if (isnan(levels[0].mean_power_w) || isnan(lowest_w))
        say(finding, SELFTEST_NOT_KNOWN, "the power at the limits is not known");
    else
        say(finding, SELFTEST_NOT_KNOWN,
            "the load's %.1f W stayed below every limit, down to %.10g W; one that draws more would "
            "tell",
            levels[0].mean_power_w, lowest_w);
    return true;
}

/*
 * Returns whether the mean is above the limit by more than its uncertainty, and the readings are
 * too. Without the second condition sound boards would fail: the interval holds only 95 of 100
 * means, so one of a few levels may lie outside.
 */
static bool is_over(const struct selftest_level *level)
{
    return level->mean_power_w > level->limit_w + level->uncertainty_w &&
           !(level->mean_reading_w <= level->limit_w * (1 + reading_tolerance));
}

static void check_bind(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    char powers[SELFTEST_TEXT_MAX / 2];
    bool over = false, known = true;

    if (none_binds(turning, finding))
        return;
    put_powers(turning, powers, sizeof powers);
    for (int i = 0; i < SELFTEST_LEVELS; i++) {
        const struct selftest_level *level = &turning->levels[i];

        known = known && (!binds(turning, i) || isfinite(level->uncertainty_w));
        over = over || (binds(turning, i) && is_over(level));
    }
    if (!known)
        say(finding, SELFTEST_NOT_KNOWN, "how certain the mean power is is not known: %s", powers);
    else
        say(finding, over ? SELFTEST_DIFFERS : SELFTEST_AS_EXPECTED, "the mean power %s: %s",
            over ? "is above a limit by more than it is uncertain"
                 : "keeps each limit that is below what the load draws",
            powers);
}

static void check_slow(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    const struct selftest_level *highest = &turning->levels[0], *lowest = highest;
    double share;

    if (none_binds(turning, finding))
        return;
    for (int i = 0; i < SELFTEST_LEVELS; i++)
        lowest = binds(turning, i) ? &turning->levels[i] : lowest;
    share = lowest->work_per_s / highest->work_per_s;
    if (lowest == highest || !isfinite(share))
        say(finding, SELFTEST_NOT_KNOWN,
            "the work done is not known, as no load of this test's ran throughout");
    else
        say(finding, share < 1 - work_tolerance ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
            "at %.10g W the load does %.0f %% of the work a second that it does at %.10g W, and "
            "draws %.0f %% of the power",
            lowest->limit_w, 100 * share, highest->limit_w,
            100 * lowest->mean_power_w / highest->mean_power_w);
}

static void check_settle(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    const struct selftest_level *slowest = NULL;

    if (none_binds(turning, finding))
        return;
    for (int i = 0; i < SELFTEST_LEVELS; i++) {
        const struct selftest_level *level = &turning->levels[i];

        if (!binds(turning, i))
            continue;
        if (isnan(level->settled_s)) {
            say(finding, SELFTEST_DIFFERS,
                "the power's readings did not stay below %.1f W at a limit of %.10g W",
                selftest_kept_w(level->limit_w), level->limit_w);
            return;
        }
        slowest = slowest == NULL || level->settled_s > slowest->settled_s ? level : slowest;
    }
    if (slowest != NULL)
        say(finding, SELFTEST_AS_EXPECTED,
            "the power's readings stay under the limit %.3f s after it was set, or sooner (the "
            "slowest: %.10g W)",
            slowest->settled_s, slowest->limit_w);
}

static void check_back(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    if (!turning->killed)
        say(finding, SELFTEST_NOT_KNOWN, "no process was killed while it held the limit down: %s",
            turning->not_killed);
    else if (isnan(turning->back_s))
        say(finding, SELFTEST_DIFFERS,
            "%.1f s after a process was killed that held the limit at %.10g W it was not back",
            turning->back_max_s, turning->killed_limit_w);
    else
        say(finding, turning->back_s <= back_promised_s ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
            "%.3f s after a process was killed that held the limit at %.10g W it was back", turning->back_s,
            turning->killed_limit_w);
}

static void check_end(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    if (isnan(turning->before_w) || isnan(turning->after_w))
        say(finding, SELFTEST_NOT_KNOWN, "the limit before or after the test is not known");
    else if (fabs(turning->before_w - turning->after_w) < same_w)
        say(finding, SELFTEST_AS_EXPECTED, "the limit is %.10g W again, as before the test",
            turning->after_w);
    else
        say(finding, SELFTEST_DIFFERS,
            "the limit is %.10g W, and was %.10g W before the test; see 'flyball power get'",
            turning->after_w, turning->before_w);
}

static const struct turning_check {
    const char *name;
    void (*run)(const struct selftest_turning *turning, struct selftest_finding *finding);
} turning_checks[] = {
    {"limits_bind", check_bind},
    {"limits_slow_the_work", check_slow},
    {"limits_settle", check_settle},
    {"limit_comes_back_after_kill", check_back},
    {"limit_turned_back_at_end", check_end},
};

/* Returns the number of findings, at most `maximum`. */
static size_t turning_findings(const struct selftest_result *result, struct selftest_finding *findings,
                               size_t maximum)
{
    const struct selftest_turning *turning = &result->turning;
    size_t count = 0;

    if (!turning->wanted)
        return 0;
    if (!turning->tried) {
        findings[0] = (struct selftest_finding){.check = turning_checks[0].name};
        say(&findings[0], SELFTEST_NOT_KNOWN, "the power limit was not turned: %s", turning->why_not);
        return 1;
    }
    for (; count < sizeof turning_checks / sizeof turning_checks[0] && count < maximum; count++) {
        findings[count] = (struct selftest_finding){.check = turning_checks[count].name};
        turning_checks[count].run(turning, &findings[count]);
    }
    return count;
}

/* ---- all of them ---- */

static const struct check {
    const char *name;
    bool gpus_only;
    void (*run)(const struct device_info *info, const struct selftest_result *result,
                struct selftest_finding *finding);
} checks[] = {
    {"counter_against_integral_idle", false, check_idle},
    {"counter_against_integral_loaded", false, check_loaded},
    {"counter_period", false, check_counter_period},
    {"counter_tracked", true, check_counter_tracked},
    {"counter_step", true, check_counter_step},
    {"counter_against_power", true, check_counter_against_power},
    {"power_period", true, check_power_period},
    {"idle_at_first", true, check_idleness},
    {"load_raises_power", true, check_load},
};
_Static_assert(sizeof checks / sizeof checks[0] <= SELFTEST_FINDINGS_MAX, "room for every check");

size_t selftest_findings(const struct device_info *info, const struct selftest_result *result,
                         struct selftest_finding findings[SELFTEST_FINDINGS_MAX])
{
    size_t count = 0;

    if (info->estimated) {
        findings[0] = (struct selftest_finding){.check = "sensor"};
        say(&findings[0], SELFTEST_NOT_KNOWN, "the energy is computed from use; there is no sensor to test");
        return 1;
    }
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].gpus_only && info->kind != DEVICE_GPU)
            continue;
        findings[count] = (struct selftest_finding){.check = checks[i].name};
        checks[i].run(info, result, &findings[count]);
        count++;
    }
    count += turning_findings(result, findings + count, SELFTEST_FINDINGS_MAX - count);
    return count;
}
