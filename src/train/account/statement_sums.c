/* SPDX-License-Identifier: Apache-2.0 */
/* Sums energy, grams and money of one way to run. */
#include <math.h>
#include <string.h>

#include "train/account/statement_private.h"

/* Sums one part of a way; a host that is not counted is left out. */
static void sum_part(const struct statement_maker *maker, enum statement_way way, enum statement_part part,
                     struct grid_account accounts[CARBON_SIGNALS])
{
    struct statement_figures *figures = &maker->statement->ways[way];
    struct grid_account_sum sums[CARBON_SIGNALS];
    double energy_j = 0.0;
    bool any = false;

    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < maker->count; i++) {
        const struct statement_stretch *stretch = &maker->stretches[way][i];
        double part_j = stretch->energy_j[part];

        if (isnan(part_j) || stretch->end_s <= stretch->start_s)
            continue;
        any = true;
        energy_j += part_j;
        for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
            if (maker->filled[signal])
                grid_account_add(&sums[signal], &maker->fillers[signal], stretch->start_s, stretch->end_s,
                                 part_j);
        }
    }
    figures->energy_j[part] = any ? energy_j : NAN;
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        accounts[signal] = grid_account_read(&sums[signal]);
        figures->amount[signal][part] = !maker->filled[signal] ? NAN : accounts[signal].amount;
        if (maker->filled[signal] && any && energy_j == 0.0)
            figures->amount[signal][part] = 0.0;
    }
}

/* Parts that are not counted add nothing; the GPUs are always in the sum. */
static double sum_of_parts(const double parts[STATEMENT_PARTS])
{
    double sum = parts[STATEMENT_GPUS];

    for (int part = STATEMENT_HOST; part < STATEMENT_ALL; part++)
        sum += isnan(parts[part]) ? 0.0 : parts[part];
    return sum;
}

void statement_sum(const struct statement_maker *maker, enum statement_way way)
{
    struct statement_figures *figures = &maker->statement->ways[way];
    struct grid_account accounts[STATEMENT_ALL][CARBON_SIGNALS];

    for (int part = 0; part < STATEMENT_ALL; part++)
        sum_part(maker, way, (enum statement_part)part, accounts[part]);
    figures->energy_j[STATEMENT_ALL] = sum_of_parts(figures->energy_j);
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        double all_j = 0.0;

        figures->amount[signal][STATEMENT_ALL] = sum_of_parts(figures->amount[signal]);
        for (int part = 0; part < STATEMENT_ALL; part++)
            all_j += accounts[part][signal].all_j;
        for (int quality = 0; quality < GRID_QUALITY_COUNT && all_j > 0.0; quality++) {
            for (int part = 0; part < STATEMENT_ALL; part++)
                figures->share[signal][quality] += accounts[part][signal].energy_j[quality] / all_j;
        }
        if (all_j > 0.0 || maker->filled[signal])
            continue;
        figures->share[signal][GRID_UNKNOWN] = 1.0;
    }
}
