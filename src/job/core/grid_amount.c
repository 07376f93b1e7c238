/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/grid_amount.h"

#include <math.h>
#include <stdio.h>

static const double j_per_kwh = 3.6e6;

bool job_counts_money(const struct fly_job_definition *definition)
{
    return definition->objective.kind == FLY_OBJECTIVE_MONEY;
}

double job_grid_amount(double energy_j, double reference_per_kwh)
{
    return reference_per_kwh > 0.0 ? energy_j / j_per_kwh * reference_per_kwh : NAN;
}

char *job_grid_amount_text(const struct fly_job_definition *definition, double amount,
                           char text[GRID_AMOUNT_MAX])
{
    if (job_counts_money(definition))
        snprintf(text, GRID_AMOUNT_MAX, "%.4g in money", amount);
    else if (amount >= 1000.0)
        snprintf(text, GRID_AMOUNT_MAX, "%.4g kg of CO2", amount / 1000.0);
    else
        snprintf(text, GRID_AMOUNT_MAX, "%.4g g of CO2", amount);
    return text;
}

char *job_grid_reference_text(const struct fly_job_definition *definition, double reference_per_kwh,
                              char text[GRID_AMOUNT_MAX])
{
    snprintf(text, GRID_AMOUNT_MAX, "%.4g %s", reference_per_kwh,
             job_counts_money(definition) ? "in money per kWh" : "g/kWh");
    return text;
}
