/* SPDX-License-Identifier: Apache-2.0 */
#include "model/grid_units.h"

#include <stddef.h>
#include <strings.h>

static const struct {
    double factor, divisor; /* one of them is 1 */
    bool price;
} units[] = {
    [GRID_G_PER_KWH] = {1.0, 1.0, false},         [GRID_KG_PER_MWH] = {1.0, 1.0, false},
    [GRID_KG_PER_KWH] = {1000.0, 1.0, false},     [GRID_T_PER_MWH] = {1000.0, 1.0, false},
    [GRID_LB_PER_MWH] = {0.45359237, 1.0, false}, [GRID_LB_PER_KWH] = {453.59237, 1.0, false},
    [GRID_G_PER_MJ] = {3.6, 1.0, false},          [GRID_MONEY_PER_KWH] = {1.0, 1.0, true},
    [GRID_MONEY_PER_MWH] = {1.0, 1000.0, true},
};
_Static_assert(sizeof units / sizeof units[0] == GRID_UNIT_COUNT, "a factor for each");

static const struct {
    const char *text;
    enum grid_unit unit;
} spellings[] = {
    {"g/kWh", GRID_G_PER_KWH},
    {"gCO2/kWh", GRID_G_PER_KWH},
    {"gCO2eq/kWh", GRID_G_PER_KWH},
    {"g_per_kwh", GRID_G_PER_KWH},
    {"kg/MWh", GRID_KG_PER_MWH},
    {"kg_per_mwh", GRID_KG_PER_MWH},
    {"kg/kWh", GRID_KG_PER_KWH},
    {"kg_per_kwh", GRID_KG_PER_KWH},
    {"t/MWh", GRID_T_PER_MWH},
    {"t_per_mwh", GRID_T_PER_MWH},
    {"lb/MWh", GRID_LB_PER_MWH},
    {"lbs/MWh", GRID_LB_PER_MWH},
    {"lbs_co2_per_mwh", GRID_LB_PER_MWH},
    {"lb/kWh", GRID_LB_PER_KWH},
    {"g/MJ", GRID_G_PER_MJ},
    {"g_per_mj", GRID_G_PER_MJ},
    {"money/kWh", GRID_MONEY_PER_KWH},
    {"price_per_kwh", GRID_MONEY_PER_KWH},
    {"money/MWh", GRID_MONEY_PER_MWH},
    {"price_per_mwh", GRID_MONEY_PER_MWH},
};

double grid_unit_convert(enum grid_unit unit, double value)
{
    return units[unit].divisor == 1.0 ? value * units[unit].factor : value / units[unit].divisor;
}

bool grid_unit_is_price(enum grid_unit unit)
{
    return units[unit].price;
}

bool grid_unit_parse(const char *text, enum grid_unit *out_unit)
{
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        if (strcasecmp(text, spellings[i].text) == 0) {
            *out_unit = spellings[i].unit;
            return true;
        }
    }
    return false;
}
