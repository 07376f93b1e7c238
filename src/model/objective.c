/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/objective.h>

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"
#include "model/objective_check.h"

enum { TEXT_MAX = 63 };

static const double usual_bound = 1.05;

static const char *const kind_names[] = {
    [FLY_OBJECTIVE_ENERGY] = "energy", [FLY_OBJECTIVE_TIME] = "time",
    [FLY_OBJECTIVE_COST] = "cost",     [FLY_OBJECTIVE_LOWEST_LIMIT] = "lowest-limit",
    [FLY_OBJECTIVE_CARBON] = "carbon", [FLY_OBJECTIVE_MONEY] = "money",
};
enum { KIND_COUNT = sizeof kind_names / sizeof kind_names[0] };
_Static_assert(KIND_COUNT == FLY_OBJECTIVE_MONEY + 1, "one name for every kind");

static int unknown_objective(const char *text, const char *word, struct fly_error *out_error)
{
    int nearest = word_nearest(word, kind_names, KIND_COUNT);

    return error_set(
        out_error, FLY_EUSAGE,
        "objective '%.60s': expected energy, time, cost:ETA, lowest-limit, carbon or money; did you "
        "mean '%s'?",
        text, kind_names[nearest >= 0 ? nearest : FLY_OBJECTIVE_ENERGY]);
}

const char *objective_kind_name(enum fly_objective_kind kind)
{
    return kind_names[kind];
}

int fly_objective_parse(const char *text, struct fly_objective *out_objective, struct fly_error *out_error)
{
    struct fly_objective objective = {.eta = 0.5, .max_slowdown = INFINITY};
    size_t word_length = strcspn(text, ":");
    char word[TEXT_MAX + 1] = "";
    int kind;

    if (word_length <= TEXT_MAX)
        memcpy(word, text, word_length);
    kind = word_index(word, kind_names, KIND_COUNT);
    if (kind < 0 || (text[word_length] == ':' && kind != FLY_OBJECTIVE_COST))
        return unknown_objective(text, word, out_error);
    objective.kind = (enum fly_objective_kind)kind;
    if (text[word_length] == ':' && (!number_parse_double(text + word_length + 1, &objective.eta) ||
                                     objective.eta < 0.0 || objective.eta > 1.0))
        return error_set(
            out_error, FLY_EUSAGE,
            "objective '%.60s': expected an eta from 0 (time) to 1 (energy) after 'cost:', as in cost:0.5",
            text);
    *out_objective = objective;
    return 0;
}

int fly_slowdown_parse(const char *text, double *out_factor, struct fly_error *out_error)
{
    size_t length = strlen(text);
    char number[TEXT_MAX + 1] = "";
    double value;

    if (strcmp(text, "none") == 0) {
        *out_factor = INFINITY;
        return 0;
    }
    if (length >= 2 && length <= TEXT_MAX) {
        memcpy(number, text, length - 1);
        if (number_parse_double(number, &value)) {
            double factor = text[length - 1] == '%'   ? 1.0 + value / 100.0
                            : text[length - 1] == 'x' ? value
                                                      : NAN;

            if (isfinite(factor) && factor >= 1.0) {
                *out_factor = factor;
                return 0;
            }
        }
    }
    return error_set(
        out_error, FLY_EUSAGE,
        "slowdown '%.60s': expected a percentage from 0%% or a factor from 1x; write 3%%, 1.03x or none",
        text);
}

double fly_objective_usual_bound(enum fly_objective_kind kind)
{
    return kind == FLY_OBJECTIVE_COST || kind == FLY_OBJECTIVE_TIME ? INFINITY : usual_bound;
}

int objective_check(const struct fly_objective *objective, double max_power_w, struct fly_error *out_error)
{
    if ((unsigned)objective->kind > FLY_OBJECTIVE_MONEY)
        return error_set(out_error, FLY_EUSAGE, "objective kind %d is unknown", (int)objective->kind);
    if (!(objective->max_slowdown >= 1.0))
        return error_set(out_error, FLY_EUSAGE, "max_slowdown %g: expected a factor from 1, or infinity",
                         objective->max_slowdown);
    if (objective->kind != FLY_OBJECTIVE_COST)
        return 0;
    if (!(objective->eta >= 0.0 && objective->eta <= 1.0))
        return error_set(out_error, FLY_EUSAGE, "eta %g: expected a number from 0 to 1", objective->eta);
    if (!objective_positive(max_power_w))
        return error_set(out_error, FLY_EUSAGE, "max_power_w %g: expected a number above 0", max_power_w);
    return 0;
}
