/* SPDX-License-Identifier: Apache-2.0 */
/* What a self-test's figures mean, as a table of checks. */
#include <math.h>

#include "meter/selftest/selftest_turning_findings.h"

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
        selftest_say(finding, SELFTEST_NOT_KNOWN, "%s: there is no figure of an energy counter%s%s", when,
                     window->note[0] != '\0' ? ": " : "", window->note);
    else if (isnan(window->integral_excess))
        selftest_say(finding, SELFTEST_NOT_KNOWN,
                     "%s: there is no integral of the power to compare the counter with", when);
    else if (fabs(window->integral_excess) <= excess_tolerance)
        selftest_say(finding, SELFTEST_AS_EXPECTED, "%s: the integrated power is %+.1f %% off the counter",
                     when, percent);
    else
        selftest_say(
            finding, SELFTEST_DIFFERS,
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
        selftest_say(finding, SELFTEST_NOT_KNOWN, "loaded: it was not measured");
    else
        check_excess(&result->windows[SELFTEST_LOADED], "loaded", finding);
}

/* Compares a measured period with the stated one, on which stated uncertainties depend. */
static void compare_period(const struct update_finding *updates, const char *what, double assumed_s,
                           struct selftest_finding *finding)
{
    double measured_s = updates->period_s.median;

    if (updates->period_s.count < PERIODS_MIN)
        selftest_say(finding, SELFTEST_NOT_KNOWN,
                     "the %s changed %zu times in %zu polls, too seldom to tell its period", what,
                     updates->changes, updates->polls);
    else if (!(assumed_s > 0.0))
        selftest_say(finding, SELFTEST_NOT_KNOWN,
                     "the %s is updated %s %.1f ms; the table has no period to compare with", what,
                     updates->at_most ? "at least every" : "every", 1e3 * measured_s);
    else if (measured_s <= assumed_s * period_tolerance + updates->poll_s)
        selftest_say(finding, SELFTEST_AS_EXPECTED, "the %s is updated %s %.1f ms; the table says %.1f ms",
                     what, updates->at_most ? "at least every" : "every", 1e3 * measured_s, 1e3 * assumed_s);
    else
        selftest_say(
            finding, SELFTEST_DIFFERS,
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
        selftest_say(finding, SELFTEST_AS_EXPECTED,
                     "the counter's updates come every %.2f ms, and each is known to within %.2f ms",
                     1e3 * counter->period_s, 1e3 * counter->spread_s);
        return;
    case PHASE_FRESH:
        selftest_say(finding, SELFTEST_AS_EXPECTED, "%s, or at most %.2f ms old",
                     phase_state_clause(counter->state), 1e3 * counter->spread_s);
        return;
    case PHASE_UNSTEADY:
        selftest_say(finding, SELFTEST_DIFFERS,
                     "%s, so the energy of short windows is the plain difference of the counter",
                     phase_state_clause(counter->state));
        return;
    default:
        selftest_say(finding, SELFTEST_NOT_KNOWN, "%s", phase_state_clause(counter->state));
    }
}

static void check_counter_step(const struct device_info *info, const struct selftest_result *result,
                               struct selftest_finding *finding)
{
    double step_j = best_window(result)->counter.step_j;

    (void)info;
    if (step_j == 0.0)
        selftest_say(finding, SELFTEST_NOT_KNOWN, "the step in which the counter counts did not show");
    else
        selftest_say(finding, step_j <= step_tolerance_j ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
                     "the counter counts in steps of %.3g J", step_j);
}

static void check_counter_against_power(const struct device_info *info, const struct selftest_result *result,
                                        struct selftest_finding *finding)
{
    const struct account_counter *counter = &best_window(result)->counter;

    (void)info;
    if (counter->state != PHASE_TRACKED)
        selftest_say(finding, SELFTEST_NOT_KNOWN, "%s", phase_state_clause(counter->state));
    else if (counter->disagrees)
        selftest_say(finding, SELFTEST_DIFFERS,
                     "between its updates the counter rises otherwise than the power readings say");
    else
        selftest_say(finding, SELFTEST_AS_EXPECTED,
                     "between its updates the counter rises as the power readings say");
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
        selftest_say(finding, SELFTEST_NOT_KNOWN, "the device does not say whether it was idle at first");
    else
        selftest_say(finding, share <= idle_tolerance ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
                     "at first the device had work for %.0f %% of the time", 100.0 * share);
}

static void check_load(const struct device_info *info, const struct selftest_result *result,
                       struct selftest_finding *finding)
{
    double idle_w = result->windows[SELFTEST_IDLE].mean_power_w;
    double loaded_w = result->windows[SELFTEST_LOADED].mean_power_w;

    (void)info;
    if (!result->windows[SELFTEST_LOADED].measured || isnan(idle_w) || isnan(loaded_w))
        selftest_say(finding, SELFTEST_NOT_KNOWN, "the power with and without a load is not known");
    else if (!result->load_ran)
        selftest_say(finding, SELFTEST_NOT_KNOWN,
                     "no load was put on it; the power went from %.1f W to %.1f W", idle_w, loaded_w);
    else
        selftest_say(finding,
                     loaded_w > idle_w * (1.0 + load_tolerance) ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
                     "the power went from %.1f W to %.1f W", idle_w, loaded_w);
}

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
        selftest_say(&findings[0], SELFTEST_NOT_KNOWN,
                     "the energy is computed from use; there is no sensor to test");
        return 1;
    }
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].gpus_only && info->kind != DEVICE_GPU)
            continue;
        findings[count] = (struct selftest_finding){.check = checks[i].name};
        checks[i].run(info, result, &findings[count]);
        count++;
    }
    count += selftest_turning_findings(result, findings + count, SELFTEST_FINDINGS_MAX - count);
    return count;
}
