/* SPDX-License-Identifier: Apache-2.0 */
/* The knob's settings: which ones are tried, whether all of them, and how texts name them. `limit_w` inside
 * may be MHz outside. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "train/tuner/tuner_private.h"
#include "train/tuner/workload_setting.h"

/* What differs between the knobs. */
static const struct knob_facts {
    const char *name, *noun, *unit;
    double usual_step;
    double same; /* a driver makes no difference between settings nearer than this */
} facts[] = {
    [FLY_TUNER_POWER_LIMIT] = {"power", "limit", "W", 25.0, 0.5},
    [FLY_TUNER_CLOCK] = {"clock", "ceiling", "MHz", 60.0, 0.5},
    [FLY_TUNER_BOTH] = {"both", "limit", "W", 25.0, 0.5}, /* these two are several knobs */
    [FLY_TUNER_AUTO] = {"auto", "limit", "W", 25.0, 0.5},
    [FLY_TUNER_PROFILE] = {"profile", "profile", "", 1.0, 0.25},
};
_Static_assert(sizeof facts / sizeof facts[0] == FLY_TUNER_PROFILE + 1, "a row for every knob");

static const struct knob_facts *facts_of(const struct fly_tuner *tuner)
{
    return &facts[tuner->options.knob];
}

const char *fly_tuner_knob_name(enum fly_tuner_knob knob)
{
    return (unsigned)knob <= FLY_TUNER_PROFILE ? facts[knob].name : "unknown";
}

const char *fly_tuner_knob_unit(enum fly_tuner_knob knob)
{
    return (unsigned)knob <= FLY_TUNER_PROFILE ? facts[knob].unit : "unknown";
}

char *tuner_value_text(const struct fly_tuner *tuner, double limit_w, char text[TUNER_SETTING_MAX])
{
    char name[WORKLOAD_SETTING_MAX];

    if (tuner->options.knob == FLY_TUNER_PROFILE)
        snprintf(text, TUNER_SETTING_MAX, "%s", workload_setting_text(limit_w, name));
    else
        snprintf(text, TUNER_SETTING_MAX, "%g %s", limit_w, facts_of(tuner)->unit);
    return text;
}

char *tuner_setting_text(const struct fly_tuner *tuner, double limit_w, char text[TUNER_SETTING_MAX])
{
    char value[TUNER_SETTING_MAX];
    const char *of = tuner->options.knob == FLY_TUNER_PROFILE ? "" : "of ";

    snprintf(text, TUNER_SETTING_MAX, "%s %s%.32s", facts_of(tuner)->noun, of,
             tuner_value_text(tuner, limit_w, value));
    return text;
}

bool tuner_is_same(const struct fly_tuner *tuner, double one_w, double other_w)
{
    return fabs(one_w - other_w) <= facts_of(tuner)->same;
}

static int compare_points(const void *left, const void *right)
{
    const struct fly_tuner_point *a = left, *b = right;

    return (a->limit_w < b->limit_w) - (a->limit_w > b->limit_w);
}

static int add(struct fly_tuner *tuner, double limit_w, struct fly_error *out_error)
{
    if (tuner->limit_count == FLY_POWER_SEARCH_LIMITS_MAX)
        return error_set(out_error, FLY_EUSAGE, "tuner: more than %d %ss; give a larger step",
                         FLY_POWER_SEARCH_LIMITS_MAX, facts_of(tuner)->noun);
    tuner->enforced_w[tuner->limit_count] = INFINITY;
    tuner->points[tuner->limit_count++] = (struct fly_tuner_point){.limit_w = limit_w,
                                                                   .power_w = NAN,
                                                                   .time_s = NAN,
                                                                   .time_error = NAN,
                                                                   .energy_error = NAN,
                                                                   .capped_share = NAN};
    return 0;
}

static int take_range(struct fly_tuner *tuner, struct fly_turner_range *out_range,
                      struct fly_error *out_error)
{
    const struct knob_facts *of = facts_of(tuner);
    struct fly_turner_range range = {0};
    int code = tuner->options.turner->range(tuner->options.turner_data, &range, out_error);

    if (code < 0)
        return code;
    if (!(range.lowest > 0.0) || !(range.highest >= range.lowest) || !isfinite(range.highest))
        return error_set(out_error, FLY_EDATA, "tuner: the GPU says it takes %ss of %g to %g %s", of->noun,
                         range.lowest, range.highest, of->unit);
    if (!(range.step > 0.0))
        range.step = of->usual_step;
    if (!(range.lowest_tried >= range.lowest))
        range.lowest_tried = range.lowest;
    if (tuner->options.knob == FLY_TUNER_POWER_LIMIT && !(range.highest_power_w > 0.0))
        range.highest_power_w = range.highest;
    tuner->highest_power_w = range.highest_power_w;
    *out_range = range;
    return 0;
}

/* Takes the options' settings; there must be none of a knob that is not to be turned. */
static int take_given(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                      const struct fly_turner_range *range, struct fly_error *out_error)
{
    const struct knob_facts *of = facts_of(tuner);
    bool clock = tuner->options.knob == FLY_TUNER_CLOCK;
    const double *given = clock ? options->ceilings_mhz : options->limits_w;
    size_t count = clock ? options->ceiling_count : options->limit_count;
    int code = 0;

    if (tuner->wish == FLY_TUNER_PROFILE && options->limit_count + options->ceiling_count > 0)
        return error_set(out_error, FLY_EUSAGE,
                         "tuner: limits or ceilings are given, and the knob is 'profile'; leave them out");
    if (tuner->wish <= FLY_TUNER_CLOCK && (clock ? options->limit_count : options->ceiling_count) > 0)
        return error_set(out_error, FLY_EUSAGE, "tuner: %s are given, and the knob is '%s'; name one of both",
                         clock ? "limits_w" : "ceilings_mhz", of->name);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!(given[i] >= range->lowest && given[i] <= range->highest))
            return error_set(out_error, FLY_EUSAGE, "tuner: %s %g %s; the GPU takes %g to %g %s", of->noun,
                             given[i], of->unit, range->lowest, range->highest, of->unit);
        code = add(tuner, given[i], out_error);
    }
    return code;
}

int tuner_take_settings(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                        struct fly_error *out_error)
{
    struct fly_turner_range range = {0};
    int code = take_range(tuner, &range, out_error);

    if (code == 0)
        code = take_given(tuner, options, &range, out_error);
    if (code < 0)
        return code;
    for (size_t i = 0; i < range.setting_count && code == 0; i++)
        code = add(tuner, range.settings[i], out_error);
    for (unsigned i = 0, given = (unsigned)tuner->limit_count; given == 0 && code == 0; i++) {
        double limit_w = range.highest - i * range.step;

        if (limit_w < range.lowest_tried)
            break;
        code = add(tuner, limit_w, out_error);
    }
    qsort(tuner->points, tuner->limit_count, sizeof tuner->points[0], compare_points);
    return code;
}

void tuner_measure_every_limit(struct fly_tuner *tuner)
{
    tuner->every_limit = true;
    tuner->races = false;
}

void tuner_measure_profile(struct fly_tuner *tuner)
{
    tuner->races = false;
}
