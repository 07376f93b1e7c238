/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_MEASUREMENT_H
#define FLYBALL_PYTHON_EXTENSION_MEASUREMENT_H

#include "extension.h"

#include <flyball/meter.h>

/*
 * flyball.Measurement: what a window held. It copies the library's figures and turns them into Python's
 * only when they are asked for, so that the end of a window costs little.
 *
 *     PyObject *measurement = measurement_new(identities);
 *     code = fly_meter_end(meter, window, measurement_room(measurement), &error);
 *
 * Figures that are not known (NAN) are None.
 */

/* The identities of a meter's devices: a tuple of flyball.Device. NULL with an exception. */
PyObject *measurement_identities(const struct fly_meter *meter);

/* A measurement with room for devices of these identities. NULL with an exception. */
PyObject *measurement_new(PyObject *identities);

/* Where the library writes it; size, devices and capacity are set. Borrowed. */
struct fly_measurement *measurement_room(PyObject *measurement);

#endif
