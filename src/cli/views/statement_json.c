/* SPDX-License-Identifier: Apache-2.0 */
/* A statement for programs: what is not known is null. */
#include <math.h>

#include "base/text/iso_time.h"
#include "cli/views/statement_lines.h"

static const char *const host_names[] = {[STATEMENT_HOST_LEFT_OUT] = "left out",
                                         [STATEMENT_HOST_STATED] = "stated",
                                         [STATEMENT_HOST_MEASURED] = "measured"};
static const char *const part_keys[STATEMENT_PARTS] = {
    [STATEMENT_GPUS] = "gpus", [STATEMENT_HOST] = "host", [STATEMENT_PUE] = "pue", [STATEMENT_ALL] = "all"};
static const char *const amount_keys[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = "carbon_g", [CARBON_PRICE] = "money"};
static const char *const kind_keys[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = "intensity", [CARBON_PRICE] = "price"};

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *moment(double time_s)
{
    char text[ISO_TIME_TEXT_MAX];

    return isfinite(time_s) ? json_string(iso_time_format((int64_t)time_s, text)) : json_null();
}

static json_t *parts_json(const double parts[STATEMENT_PARTS])
{
    json_t *object = json_object();

    for (int i = 0; i < STATEMENT_PARTS; i++)
        json_object_set_new(object, part_keys[i], number(parts[i]));
    return object;
}

static json_t *shares_json(const double share[GRID_QUALITY_COUNT])
{
    json_t *object = json_object();

    for (int i = 0; i < GRID_QUALITY_COUNT; i++)
        json_object_set_new(object, grid_quality_name((enum grid_quality)i), number(100.0 * share[i]));
    return object;
}

static json_t *way_json(const struct carbon_statement *statement, enum statement_way way)
{
    const struct statement_figures *figures = &statement->ways[way];
    json_t *object = json_object(), *coverage = json_object();
    bool planned = way == STATEMENT_AS_RUN && statement->planned;

    json_object_set_new(object, "way", json_string(planned ? "as planned" : statement_way_name(way)));
    json_object_set_new(object, "estimated", json_boolean(way != STATEMENT_AS_RUN || planned));
    json_object_set_new(object, "limit_w", number(figures->limit_w));
    json_object_set_new(object, "start", moment(figures->start_s));
    json_object_set_new(object, "end", moment(figures->end_s));
    json_object_set_new(object, "time_s", number(figures->time_s));
    json_object_set_new(object, "energy_j", parts_json(figures->energy_j));
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        json_object_set_new(object, amount_keys[i],
                            statement->kinds[i] != NULL ? parts_json(figures->amount[i]) : json_null());
        json_object_set_new(coverage, kind_keys[i],
                            statement->kinds[i] != NULL ? shares_json(figures->share[i]) : json_null());
    }
    json_object_set_new(object, "coverage_percent", coverage);
    json_object_set_new(object, "unmeasured_s", number(figures->unmeasured_s));
    return object;
}

static json_t *saving_json(const struct statement_saving *saving)
{
    json_t *object = json_object();

    json_object_set_new(object, "time_s", number(saving->time_s));
    json_object_set_new(object, "energy_j", number(saving->energy_j));
    for (int i = 0; i < CARBON_SIGNALS; i++)
        json_object_set_new(object, amount_keys[i], number(saving->amount[i]));
    return object;
}

static json_t *kind_json(const struct grid_kind *kind)
{
    json_t *object;

    if (kind == NULL)
        return json_null();
    object = json_object();
    json_object_set_new(object, "provider", json_string(kind->provider));
    json_object_set_new(object, "zone", text_or_null(kind->zone));
    json_object_set_new(object, "signal", json_string(grid_signal_name(kind->signal)));
    json_object_set_new(object, "scope", json_string(grid_scope_name(kind->scope)));
    json_object_set_new(object, "currency", text_or_null(kind->currency));
    return object;
}

/* What the best constant speed is made of; null where it is not known. */
static json_t *mix_json(const struct carbon_statement *statement)
{
    const struct carbon_mix *mix = &statement->mix;

    if (!statement->ways[STATEMENT_MIX].known)
        return json_null();
    return json_pack("{s:f, s:f, s:f}", "low_limit_w", mix->low.limit_w, "high_limit_w", mix->high.limit_w,
                     "high_share", mix->high_share);
}

json_t *statement_json(const struct carbon_statement *statement)
{
    json_t *object = json_object(), *ways = json_array();

    /* The first one had no best mixture, and what it saves by the lower limit is by the best single one. */
    json_object_set_new(object, "schema", json_string("flyball.carbon.statement/2"));
    for (int way = 0; way < STATEMENT_WAYS; way++) {
        if (statement->ways[way].known)
            json_array_append_new(ways, way_json(statement, (enum statement_way)way));
    }
    for (int i = 0; i < CARBON_SIGNALS; i++)
        json_object_set_new(object, kind_keys[i], kind_json(statement->kinds[i]));
    json_object_set_new(object, "ways", ways);
    json_object_set_new(object, "best_mixture", mix_json(statement));
    json_object_set_new(object, "saved", saving_json(&statement->saved));
    json_object_set_new(object, "by_lower_limit", saving_json(&statement->by_limit));
    json_object_set_new(object, "by_following", saving_json(&statement->by_grid));
    json_object_set_new(object, "nothing_to_compare", text_or_null(statement->missing));
    json_object_set_new(object, "bound", number(statement->bound));
    json_object_set_new(object, "host", json_string(host_names[statement->host]));
    json_object_set_new(object, "pue", number(statement->pue));
    json_object_set_new(object, "modelled_percent", number(100.0 * statement->modelled_share));
    json_object_set_new(object, "measured_per_modelled", number(statement->measured_per_modelled));
    json_object_set_new(object, "limit_changes", json_integer(statement->changes));
    return object;
}
