/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_MONITOR_H
#define FLYBALL_PYTHON_EXTENSION_MONITOR_H

#include "extension.h"

#include <stdbool.h>

#include <flyball/meter.h>

/*
 * flyball.Monitor: a meter for Python's threads. Calls into the library run without the GIL, so another
 * thread may close the monitor meanwhile; the meter is freed when the last of them has returned.
 *
 *     if (monitor_enter(monitor) < 0)
 *         return NULL;
 *     Py_BEGIN_ALLOW_THREADS
 *     code = fly_meter_...(monitor->meter, ...);
 *     Py_END_ALLOW_THREADS
 *     monitor_leave(monitor);
 */
struct monitor {
    PyObject_HEAD struct fly_meter *meter; /* NULL: closed, or never opened */
    PyObject *identities;                  /* a tuple of flyball.Device */
    PyObject *synchronize;                 /* what to call before a window's edge, or NULL */
    PyObject *raised;                      /* by it, for the library's own windows (kept.h) */
    size_t calls;                          /* inside the library now, and objects that hold the meter */
    bool closing;
};

/* Begins a call: 0, or -1 with StateError when the monitor is closed. Needs the GIL, as does the next. */
int monitor_enter(struct monitor *monitor);
void monitor_leave(struct monitor *monitor);

/* For an object with windows of its own, such as a tuner: the meter stays open until it is released. */
int monitor_hold(struct monitor *monitor);
void monitor_release(struct monitor *monitor);

/* Closes it, once all calls have returned and nobody holds it. */
void monitor_end(struct monitor *monitor);

/* Waits for the device, if the monitor was told how: 0, or -1 with the exception that this raised. */
int monitor_synchronize(struct monitor *monitor);

/* Its methods that tell single readings (samples.c). */
PyObject *samples_read(PyObject *object, PyObject *place);
PyObject *samples_max_power_w(PyObject *object, PyObject *place);
PyObject *samples_power_limits(PyObject *object, PyObject *place);
PyObject *samples_clocks(PyObject *object, PyObject *arguments, PyObject *keywords);
PyObject *samples_keep(PyObject *object, PyObject *samples_max);
PyObject *samples_list(PyObject *object, PyObject *arguments, PyObject *keywords);

#endif
