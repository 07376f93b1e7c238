/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carbon/period_table.h"

#include "base/text/iso_time.h"

#define AT(member) offsetof(struct statement_period, member)

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

static const struct shown all[] = {
    {{"start", "start", MEANING_DATE, 0, NULL, MEANING_FACT, "When the period begins."},
     MOMENT,
     AT(start_s),
     "",
     ALWAYS},
    {{"end", "end", MEANING_DATE, 0, NULL, MEANING_FACT, "When it ends."}, MOMENT, AT(end_s), "", ALWAYS},
    {{"intensity_g_per_kwh", "g/kWh", MEANING_REAL, 1, "g/kWh", MEANING_GAUGE,
      "CO2 of a kWh in that period."},
     NUMBER,
     AT(value[0]),
     no_figure,
     WITH_INTENSITY},
    {{"intensity_quality", "based on", MEANING_TEXT, 0, NULL, MEANING_FACT,
      "What that figure is: 'measured', 'estimated', 'forecast', 'own forecast', 'fall-back' or 'unknown'."},
     QUALITY,
     AT(quality[0]),
     "",
     WITH_INTENSITY},
    {{"price_per_kwh", "money/kWh", MEANING_REAL, 4, "money/kWh", MEANING_GAUGE,
      "Price of a kWh in that period."},
     NUMBER,
     AT(value[1]),
     no_figure,
     WITH_PRICE},
    {{"price_quality", "based on", MEANING_TEXT, 0, NULL, MEANING_FACT, "How good that figure is."},
     QUALITY,
     AT(quality[1]),
     "",
     WITH_PRICE},
    {{"limit_w", "limit (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
      "Mean power limit of each GPU in that period."},
     NUMBER,
     AT(limit_w),
     no_limit,
     ALWAYS},
    {{"first_limit_w", "first (W)", MEANING_REAL, 1, "W", MEANING_GAUGE,
      "Power limit at the period's beginning."},
     NUMBER,
     AT(first_limit_w),
     no_limit,
     FOR_PROGRAMS},
    {{"last_limit_w", "last (W)", MEANING_REAL, 1, "W", MEANING_GAUGE, "Power limit at the period's end."},
     NUMBER,
     AT(last_limit_w),
     no_limit,
     FOR_PROGRAMS},
    {{"time_s", "time (s)", MEANING_REAL, 0, "s", MEANING_COUNTER,
      "Time that the training ran in that period."},
     NUMBER,
     AT(time_s),
     "",
     ALWAYS},
    {{"steps", "steps", MEANING_REAL, 0, NULL, MEANING_COUNTER, "Steps that it did."},
     NUMBER,
     AT(steps),
     "",
     FOR_PROGRAMS},
    {{"energy_j", "energy (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
      "All energy of the training in that period, the host's and the PUE's share included."},
     NUMBER,
     AT(energy_j[STATEMENT_ALL]),
     no_energy,
     ALWAYS},
    {{"gpu_energy_j", "GPUs (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy of the GPUs in it."},
     NUMBER,
     AT(energy_j[STATEMENT_GPUS]),
     no_energy,
     FOR_PROGRAMS},
    {{"host_energy_j", "host (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy of the host in it."},
     NUMBER,
     AT(energy_j[STATEMENT_HOST]),
     no_host,
     FOR_PROGRAMS},
    {{"pue_energy_j", "PUE (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "What the PUE adds to both."},
     NUMBER,
     AT(energy_j[STATEMENT_PUE]),
     no_energy,
     FOR_PROGRAMS},
    {{"carbon_g", "carbon (g)", MEANING_REAL, 2, "g", MEANING_COUNTER, "CO2 of all that energy."},
     NUMBER,
     AT(amount[0]),
     no_amount,
     WITH_INTENSITY},
    {{"money", "money", MEANING_REAL, 4, "money", MEANING_COUNTER, "Money for all that energy."},
     NUMBER,
     AT(amount[1]),
     no_amount,
     WITH_PRICE},
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
    const char *fact = (const char *)period + shown->offset;
    char time[ISO_TIME_TEXT_MAX];
    double number;

    switch (shown->kind) {
    case MOMENT:
        table_add_text(table, iso_time_format(*(const int64_t *)(const void *)fact, time));
        return;
    case QUALITY:
        table_add_text(table, grid_quality_name(*(const enum grid_quality *)(const void *)fact));
        return;
    case NUMBER:
        break;
    }
    number = *(const double *)(const void *)fact;
    table_add_known(table, number, shown->missing);
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
