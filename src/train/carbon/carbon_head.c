/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the options for following the grid, and fills in defaults. */
#include "train/carbon/carbon_head.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

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
