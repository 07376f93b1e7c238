/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of the tested limits mean, as a table of checks. */
#include "meter/selftest/selftest_turning_findings.h"

#include <math.h>
#include <stdio.h>

/* The mean of readings may exceed a limit that holds by this share. */
static const double reading_tolerance = 0.01;
/* At a limit that binds the work decreases by more than this; otherwise the load was not affected. */
static const double work_tolerance = 0.02;
/* The limit that was in force before must be back this soon after its holder was killed. */
static const double back_promised_s = 1.0;
/* Two limits, read in whole milliwatts, are the same if they differ by less. */
static const double same_w = 0.0005;

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
        selftest_say(finding, SELFTEST_NOT_KNOWN, "the power at the limits is not known");
    else
        selftest_say(finding, SELFTEST_NOT_KNOWN,
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
        selftest_say(finding, SELFTEST_NOT_KNOWN, "how certain the mean power is is not known: %s", powers);
    else
        selftest_say(finding, over ? SELFTEST_DIFFERS : SELFTEST_AS_EXPECTED, "the mean power %s: %s",
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
        selftest_say(finding, SELFTEST_NOT_KNOWN,
                     "the work done is not known, as no load of this test's ran throughout");
    else
        selftest_say(finding, share < 1 - work_tolerance ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
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
            selftest_say(finding, SELFTEST_DIFFERS,
                         "the power's readings did not stay below %.1f W at a limit of %.10g W",
                         selftest_kept_w(level->limit_w), level->limit_w);
            return;
        }
        slowest = slowest == NULL || level->settled_s > slowest->settled_s ? level : slowest;
    }
    if (slowest != NULL)
        selftest_say(finding, SELFTEST_AS_EXPECTED,
                     "the power's readings stay under the limit %.3f s after it was set, or sooner (the "
                     "slowest: %.10g W)",
                     slowest->settled_s, slowest->limit_w);
}

static void check_back(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    if (!turning->killed)
        selftest_say(finding, SELFTEST_NOT_KNOWN, "no process was killed while it held the limit down: %s",
                     turning->not_killed);
    else if (isnan(turning->back_s))
        selftest_say(finding, SELFTEST_DIFFERS,
                     "%.1f s after a process was killed that held the limit at %.10g W it was not back",
                     turning->back_max_s, turning->killed_limit_w);
    else
        selftest_say(finding, turning->back_s <= back_promised_s ? SELFTEST_AS_EXPECTED : SELFTEST_DIFFERS,
                     "%.3f s after a process was killed that held the limit at %.10g W it was back",
                     turning->back_s, turning->killed_limit_w);
}

static void check_end(const struct selftest_turning *turning, struct selftest_finding *finding)
{
    if (isnan(turning->before_w) || isnan(turning->after_w))
        selftest_say(finding, SELFTEST_NOT_KNOWN, "the limit before or after the test is not known");
    else if (fabs(turning->before_w - turning->after_w) < same_w)
        selftest_say(finding, SELFTEST_AS_EXPECTED, "the limit is %.10g W again, as before the test",
                     turning->after_w);
    else
        selftest_say(finding, SELFTEST_DIFFERS,
                     "the limit is %.10g W, and was %.10g W before the test; see 'flyball power get'",
                     turning->after_w, turning->before_w);
}

static const struct check {
    const char *name;
    void (*run)(const struct selftest_turning *turning, struct selftest_finding *finding);
} checks[] = {
    {"limits_bind", check_bind},
    {"limits_slow_the_work", check_slow},
    {"limits_settle", check_settle},
    {"limit_comes_back_after_kill", check_back},
    {"limit_turned_back_at_end", check_end},
};

size_t selftest_turning_findings(const struct selftest_result *result, struct selftest_finding *findings,
                                 size_t maximum)
{
    const struct selftest_turning *turning = &result->turning;
    size_t count = 0;

    if (!turning->wanted)
        return 0;
    if (!turning->tried) {
        findings[0] = (struct selftest_finding){.check = checks[0].name};
        selftest_say(&findings[0], SELFTEST_NOT_KNOWN, "the power limit was not turned: %s",
                     turning->why_not);
        return 1;
    }
    for (; count < sizeof checks / sizeof checks[0] && count < maximum; count++) {
        findings[count] = (struct selftest_finding){.check = checks[count].name};
        checks[count].run(turning, &findings[count]);
    }
    return count;
}
