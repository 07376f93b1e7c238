/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_GRID_UNITS_H
#define FLYBALL_MODEL_GRID_UNITS_H

#include <stdbool.h>

/*
 * The units in which intensities and prices of electricity are published, and the two that
 * Flyball computes with: g/kWh and money/kWh.
 *
 * Factors are exact by definition (a pound is 453.59237 g, a kWh 3.6 MJ), so a conversion is one
 * multiplication or one division by a number that a double holds, rounded once. Pure;
 * thread-safe.
 */
enum grid_unit {
    GRID_G_PER_KWH,
    GRID_KG_PER_MWH,
    GRID_KG_PER_KWH,
    GRID_T_PER_MWH,
    GRID_LB_PER_MWH,
    GRID_LB_PER_KWH,
    GRID_G_PER_MJ,
    GRID_MONEY_PER_KWH,
    GRID_MONEY_PER_MWH,
    GRID_UNIT_COUNT
};

/* Converts a value into g/kWh or money/kWh. */
double grid_unit_convert(enum grid_unit unit, double value);

/* Returns whether the unit is one of money. */
bool grid_unit_is_price(enum grid_unit unit);

/* Parses a unit as it is usually written: "g/kWh", "gCO2eq/kWh", "lbs_co2_per_mwh", ... in any case. */
bool grid_unit_parse(const char *text, enum grid_unit *out_unit);

#endif
