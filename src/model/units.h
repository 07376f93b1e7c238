/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_MODEL_UNITS_H
#define FLYBALL_MODEL_UNITS_H

#include <stdint.h>

/*
 * Unit conversions at the borders: drivers use integers in mW and mJ, Flyball uses W and J in
 * doubles, people read kWh and grams. Exact up to the rounding of one double operation each.
 * Pure.
 */
enum { JOULES_PER_KWH = 3600000 };

static inline double units_w_from_mw(uint64_t power_mw)
{
    return (double)power_mw / 1e3;
}

/* Rounds to the nearest milliwatt; power_w from 0 to 1e9. */
static inline uint64_t units_mw_from_w(double power_w)
{
    return (uint64_t)(power_w * 1e3 + 0.5);
}

static inline double units_j_from_mj(uint64_t energy_mj)
{
    return (double)energy_mj / 1e3;
}

static inline double units_kwh_from_j(double energy_j)
{
    return energy_j / JOULES_PER_KWH;
}

static inline double units_j_from_kwh(double energy_kwh)
{
    return energy_kwh * JOULES_PER_KWH;
}

/* Returns grams of CO2 equivalent for an energy at a carbon intensity. */
static inline double units_g_from_j(double energy_j, double intensity_g_per_kwh)
{
    return units_kwh_from_j(energy_j) * intensity_g_per_kwh;
}

#endif
