/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_KEPT_H
#define FLYBALL_PYTHON_EXTENSION_KEPT_H

#include "extension.h"

/*
 * Exceptions of Python functions that the library calls: they must not pass through it. Such a function keeps
 * its exception in a PyObject pointer, NULL at first; the caller of the library asks for it afterwards. All
 * need the GIL.
 */

/* Keeps the exception that is set, in place of an older one. */
void kept_take(PyObject **kept);

/*
 * Raises KeyboardInterrupt and what else is no Exception, which are meant for the program, and writes an
 * Exception to sys.unraisablehook as one of `function`. 0, or -1 with an exception.
 */
int kept_check(PyObject **kept, PyObject *function);

/* As error_raise, with what was kept as the cause, or that itself if it is no Exception. Returns NULL. */
PyObject *kept_error(PyObject **kept, int code, const struct fly_error *error);

#endif
