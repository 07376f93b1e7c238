/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_DEVICE_FIGURES_H
#define FLYBALL_METER_DEVICE_FIGURES_H

#include <stddef.h>

#include <flyball/meter.h>

/* The figures of struct fly_device_energy by name, for what writes all of them. */
struct device_figure {
    const char *key; /* as the member is called, with its unit: "energy_j" */
    size_t offset;
};

enum { DEVICE_FIGURES = 13 };
extern const struct device_figure device_figures[DEVICE_FIGURES];

/* NAN where it is not known. */
double device_figure_of(const struct fly_device_energy *energy, const struct device_figure *figure);

#endif
