/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/period_table.h"

#include "base/text/iso_time.h"

/* How a fact of a period is shown: a time or a quality as a text, everything else as a number. */
struct shown {
    struct meaning column;
    enum { NUMBER, MOMENT, QUALITY } kind;
    size_t offset;
    const char *missing; /* why a number is not known */
    enum { ALWAYS, WITH_INTENSITY, WITH_PRICE, FOR_PROGRAMS } when;
};

static const char no_figure[] = "nothing is known of the grid then";
static const char no_limit[] = "it is not known which limit stood";
static const char no_energy[] = "the GPUs' energy is not known";
static const char no_amount[] = "energy or the grid's figure is not known";
static const char no_host[] = "it was neither measured nor stated";

#define SHOWN(kind, member, missing, when, ...)                                       \
    {                                                                                 \
        {__VA_ARGS__}, kind, offsetof(struct statement_period, member), missing, when \
    }
#define TEXT_OF(kind, member, when, key, title, type, sentence) \
    SHOWN(kind, member, "", when, key, title, type, 0, NULL, MEANING_FACT, sentence)
#define GAUGE(member, missing, when, key, title, decimals, unit, sentence) \
    SHOWN(NUMBER, member, missing, when, key, title, MEANING_REAL, decimals, unit, MEANING_GAUGE, sentence)
#define COUNTER(member, missing, when, key, title, decimals, unit, sentence) \
    SHOWN(NUMBER, member, missing, when, key, title, MEANING_REAL, decimals, unit, MEANING_COUNTER, sentence)

static const struct shown all[] = {
    TEXT_OF(MOMENT, start_s, ALWAYS, "start", "start", MEANING_DATE, "When the period begins."),
    TEXT_OF(MOMENT, end_s, ALWAYS, "end", "end", MEANING_DATE, "When it ends."),
    GAUGE(value[0], no_figure, WITH_INTENSITY, "intensity_g_per_kwh", "g/kWh", 1, "g/kWh",
          "CO2 of a kWh in that period."),
    TEXT_OF(QUALITY, quality[0], WITH_INTENSITY, "intensity_quality", "based on", MEANING_TEXT,
            "What that figure is: 'measured', 'estimated', 'forecast', 'own forecast', 'fall-back' or "
            "'unknown'."),
    GAUGE(value[1], no_figure, WITH_PRICE, "price_per_kwh", "money/kWh", 4, "money/kWh",
          "Price of a kWh in that period."),
    TEXT_OF(QUALITY, quality[1], WITH_PRICE, "price_quality", "based on", MEANING_TEXT,
            "How good that figure is."),
    GAUGE(limit_w, no_limit, ALWAYS, "limit_w", "limit (W)", 1, "W",
          "Mean power limit of each GPU in that period."),
    GAUGE(first_limit_w, no_limit, FOR_PROGRAMS, "first_limit_w", "first (W)", 1, "W",
          "Power limit at the period's beginning."),
    GAUGE(last_limit_w, no_limit, FOR_PROGRAMS, "last_limit_w", "last (W)", 1, "W",
          "Power limit at the period's end."),
    COUNTER(time_s, "", ALWAYS, "time_s", "time (s)", 0, "s", "Time that the training ran in that period."),
    COUNTER(steps, "", FOR_PROGRAMS, "steps", "steps", 0, NULL, "Steps that it did."),
    COUNTER(energy_j[STATEMENT_ALL], no_energy, ALWAYS, "energy_j", "energy (J)", 0, "J",
            "All energy of the training in that period, the host's and the PUE's share included."),
    COUNTER(energy_j[STATEMENT_GPUS], no_energy, FOR_PROGRAMS, "gpu_energy_j", "GPUs (J)", 0, "J",
            "Energy of the GPUs in it."),
    COUNTER(energy_j[STATEMENT_HOST], no_host, FOR_PROGRAMS, "host_energy_j", "host (J)", 0, "J",
            "Energy of the host in it."),
    COUNTER(energy_j[STATEMENT_PUE], no_energy, FOR_PROGRAMS, "pue_energy_j", "PUE (J)", 0, "J",
            "What the PUE adds to both."),
    COUNTER(amount[0], no_amount, WITH_INTENSITY, "carbon_g", "carbon (g)", 2, "g",
            "CO2 of all that energy."),
    COUNTER(amount[1], no_amount, WITH_PRICE, "money", "money", 4, "money", "Money for all that energy."),
};
const struct quantities period_quantities = {"a period of a training", QUANTITIES_IN(all, column)};
enum { ALL_COUNT = sizeof all / sizeof all[0] };
_Static_assert((size_t)ALL_COUNT <= (size_t)PERIOD_COLUMNS_MAX, "room for each");
_Static_assert(CARBON_INTENSITY == 0 && CARBON_PRICE == 1, "as the table has them");

static bool is_shown(const struct shown *shown, const struct carbon_statement *statement, bool for_people)
{
    if (!for_people || shown->when == ALWAYS)
        return true;
    if (shown->when == FOR_PROGRAMS)
        return false;
    return statement->kinds[shown->when == WITH_PRICE ? CARBON_PRICE : CARBON_INTENSITY] != NULL;
}

static void add_cell(struct table *table, const struct shown *shown, const struct statement_period *period)
{
    const void *fact = (const char *)period + shown->offset;
    char time[ISO_TIME_TEXT_MAX];

    if (shown->kind == MOMENT)
        table_add_text(table, iso_time_format(*(const int64_t *)fact, time));
    else if (shown->kind == QUALITY)
        table_add_text(table, grid_quality_name(*(const enum grid_quality *)fact));
    else
        table_add_known(table, *(const double *)fact, shown->missing);
}

struct table *period_table_new(const char *schema, const struct carbon_statement *statement, bool for_people,
                               struct meaning columns[PERIOD_COLUMNS_MAX])
{
    struct table *table;
    size_t count = 0;

    for (size_t i = 0; i < ALL_COUNT; i++) {
        if (is_shown(&all[i], statement, for_people))
            columns[count++] = all[i].column;
    }
    table = table_new(schema, columns, count);
    for (size_t row = 0; row < statement->period_count; row++) {
        for (size_t i = 0; i < ALL_COUNT; i++) {
            if (is_shown(&all[i], statement, for_people))
                add_cell(table, &all[i], &statement->periods[row]);
        }
    }
    return table;
}
