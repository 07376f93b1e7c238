/* SPDX-License-Identifier: Apache-2.0 */
#include "coverage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/order.h"
#include "made_loads.h"

void coverage_add(struct coverage *coverage, unsigned load, double truth_j,
                  const struct fly_device_energy *energy)
{
    if (coverage->count == coverage->capacity) {
        coverage->capacity = coverage->capacity == 0 ? 4096 : 2 * coverage->capacity;
        coverage->windows = realloc(coverage->windows, coverage->capacity * sizeof coverage->windows[0]);
        if (coverage->windows == NULL)
            abort();
    }
    coverage->windows[coverage->count++] = (struct coverage_window){
        .load = load,
        .length_s = energy->time_s,
        .truth_j = truth_j,
        .figure = energy->source != FLY_ENERGY_UNAVAILABLE,
        .disputed = strstr(energy->note, "sampled power gives") != NULL,
        .energy_j = energy->energy_j,
        .half_j = energy->uncertainty_j,
    };
}

void coverage_deinit(struct coverage *coverage)
{
    free(coverage->windows);
    *coverage = (struct coverage){0};
}

/* 10 to 100 ms, to 1 s, to 10 s, to 100 s. */
static int decade_of(double length_s)
{
    int decade = (int)floor(log10(length_s)) + 2;

    return decade < 0 ? 0 : decade < COVERAGE_DECADES ? decade : COVERAGE_DECADES - 1;
}

static bool is_wanted(const struct coverage *coverage, const struct coverage_window *window, int load,
                      int decade)
{
    bool hidden = (made_loads[window->load].hidden_from & coverage->sensor) != 0;
    bool of_load = load < 0 ? !hidden : window->load == (unsigned)load;

    return of_load && (decade < 0 || decade_of(window->length_s) == decade);
}

struct coverage_finding coverage_find(const struct coverage *coverage, int load, int decade)
{
    struct coverage_finding finding = {.covered = NAN, .half_j = NAN, .error_j = NAN, .energy_j = NAN};
    double *values = malloc(3 * (coverage->count + 1) * sizeof values[0]);
    double *halves_j, *errors_j, *energies_j;
    size_t covered = 0;

    if (values == NULL)
        abort();
    halves_j = values;
    errors_j = halves_j + coverage->count;
    energies_j = errors_j + coverage->count;
    for (size_t i = 0; i < coverage->count; i++) {
        const struct coverage_window *window = &coverage->windows[i];
        size_t place = finding.figures;

        if (!is_wanted(coverage, window, load, decade))
            continue;
        finding.windows++;
        finding.disputed += window->disputed;
        if (!window->figure)
            continue;
        halves_j[place] = window->half_j;
        errors_j[place] = fabs(window->energy_j - window->truth_j);
        energies_j[place] = window->truth_j;
        covered += errors_j[place] <= halves_j[place];
        finding.figures++;
    }
    if (finding.figures > 0) {
        qsort(halves_j, finding.figures, sizeof(double), order_doubles);
        qsort(errors_j, finding.figures, sizeof(double), order_doubles);
        qsort(energies_j, finding.figures, sizeof(double), order_doubles);
        finding.covered = (double)covered / (double)finding.figures;
        finding.half_j = halves_j[finding.figures / 2];
        finding.error_j = errors_j[finding.figures * 95 / 100];
        finding.energy_j = energies_j[finding.figures / 2];
    }
    free(values);
    return finding;
}

static void print_line(const struct coverage *coverage, const char *name, int load)
{
    struct coverage_finding all = coverage_find(coverage, load, -1);

    printf("# %-28s %5.1f %% of %5zu, %4.1f %% without a figure |", name, 100.0 * all.covered, all.figures,
           100.0 * (double)(all.windows - all.figures) / (double)all.windows);
    for (int decade = 0; decade < COVERAGE_DECADES; decade++) {
        struct coverage_finding finding = coverage_find(coverage, load, decade);

        if (finding.figures < 20)
            printf("    -               |");
        else
            printf(" %5.1f %%  %4.1f  %4.1f %% |", 100.0 * finding.covered,
                   finding.error_j > 1e-4 * finding.energy_j ? finding.half_j / finding.error_j : NAN,
                   100.0 * finding.half_j / finding.energy_j);
    }
    printf("\n");
}

void coverage_print(const struct coverage *coverage, const char *title)
{
    printf("# %s\n# for windows of 10 to 100 ms, to 1 s, to 10 s, to 100 s: share covered, median half width "
           "against the 95th percentile of the error, and against the energy\n",
           title);
    for (unsigned load = 0; load < MADE_LOADS && made_loads[load].name != NULL; load++) {
        char name[64];

        snprintf(name, sizeof name, "%s%s", made_loads[load].name,
                 made_loads[load].hidden_from & coverage->sensor ? " (h)" : "");
        if (coverage_find(coverage, (int)load, -1).windows > 0)
            print_line(coverage, name, (int)load);
    }
    print_line(coverage, "all that show", -1);
}
