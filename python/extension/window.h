/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_WINDOW_H
#define FLYBALL_PYTHON_EXTENSION_WINDOW_H

#include "monitor.h"

/*
 * flyball.Window: a stretch of a program. It holds on to its monitor. A window that is collected while it is
 * open is forgotten: it takes no room in the meter any more.
 */

/* A window that has not begun. NULL with an exception. */
PyObject *window_new(struct monitor *monitor, PyObject *name);

/* Begins it: 0, or -1 with an exception. */
int window_begin(PyObject *window);

#endif
