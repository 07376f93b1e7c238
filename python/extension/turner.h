/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_TURNER_H
#define FLYBALL_PYTHON_EXTENSION_TURNER_H

#include "extension.h"

#include <flyball/tuner.h>

/*
 * An object of Python's that sets limits, for the library:
 *
 *     range()          (lowest, highest) or (lowest, highest, step), in W, or MHz of a clock
 *     set(setting)     sets it on all GPUs of this rank
 *     standing()       the setting that is in force now
 *
 * What a method raises becomes the text of the library's error; of PermissionError FLY_EPERM, of
 * NotImplementedError FLY_EUNSUPPORTED. KeyboardInterrupt and what else is no Exception is kept (kept.h).
 */
struct turner {
    PyObject *object; /* NULL: the library sets the limits of the meter's GPUs */
    PyObject *raised;
};

/* Its data is a struct turner. With the GIL and without. */
extern const struct fly_turner turner_of_python;

#endif
