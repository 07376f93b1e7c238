/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_EXTENSION_H
#define FLYBALL_PYTHON_EXTENSION_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <flyball/error.h>

/*
 * The module flyball._flyball: what all of its files share. It is made for Python's stable ABI of 3.9, which
 * has no state per type, so types and exceptions stand in one place for the whole process; the module refuses
 * a second interpreter.
 */
struct extension_types {
    PyTypeObject *device, *device_energy; /* named tuples */
    PyTypeObject *measurement, *window, *monitor;
};
extern struct extension_types extension_types;

/* Add their types to the module: 0, or -1 with an exception. */
int errors_add(PyObject *module);
int measurement_add(PyObject *module);
int window_add(PyObject *module);
int monitor_add(PyObject *module);
int power_knob_add(PyObject *module);
int samples_add(PyObject *module);
int session_add(PyObject *module);
int job_add(PyObject *module);
int sim_add(PyObject *module);

/*
 * Raises the exception of a code with the library's sentence; `error` may be NULL. Returns NULL. Every
 * exception of the library has the name of its code as attribute `code`; FLY_ENOMEM is a MemoryError.
 */
PyObject *error_raise(int code, const struct fly_error *error);

/* Raises the exception of a code with a text of this module's. Returns NULL. */
PyObject *error_raise_text(int code, const char *text);

/* None, for the caller. */
static inline PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* Makes a type and adds it to the module under its name. Returns NULL with an exception. */
PyTypeObject *type_add(PyObject *module, PyType_Spec *spec);

/* tp_new of types that only the module itself makes: raises TypeError. */
PyObject *type_not_made_by_hand(PyTypeObject *type, PyObject *arguments, PyObject *keywords);

/* A new object of a type without arguments, all zeros after its head. NULL with an exception. */
PyObject *type_make(PyTypeObject *type);

/* What a notebook shows of an object, by the function of that name in notebook.py. NULL with an exception. */
PyObject *type_html(PyObject *self, const char *function);

/* Frees the memory of an object of a type of this module's, and its reference to the type. */
void type_free(PyObject *self);

#endif
