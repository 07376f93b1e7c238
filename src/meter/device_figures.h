/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_DEVICE_FIGURES_H
#define FLYBALL_METER_DEVICE_FIGURES_H

#include <flyball/meter.h>

#include "shapes/shape_told.h"

/*
 * The figures of struct fly_device_energy as members named with their unit, for code that writes
 * all of them.
 */
enum { DEVICE_FIGURES = 16 };
extern const struct shape_field device_figures[DEVICE_FIGURES];

/* Returns NAN if the figure is unknown. */
double device_figure_of(const struct fly_device_energy *energy, const struct shape_field *figure);

#endif
