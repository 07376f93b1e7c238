/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions that wait until the library has returned. */
#include "kept.h"

void kept_take(PyObject **kept)
{
    PyObject *type, *value, *trace, *older = *kept;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != NULL && trace != NULL)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    *kept = value;
    Py_XDECREF(older);
}

/* Gives what was kept to the caller, or sets it as Python's exception if it is no Exception: then NULL. */
static PyObject *ask(PyObject **kept)
{
    PyObject *raised = *kept;

    *kept = NULL;
    if (raised == NULL || PyObject_IsInstance(raised, PyExc_Exception) == 1)
        return raised;
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    Py_DECREF(raised);
    return NULL;
}

int kept_check(PyObject **kept, PyObject *function)
{
    PyObject *raised;

    if (*kept == NULL)
        return 0;
    raised = ask(kept);
    if (raised == NULL)
        return -1;
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    PyErr_WriteUnraisable(function);
    Py_DECREF(raised);
    return 0;
}

PyObject *kept_error(PyObject **kept, int code, const struct fly_error *error)
{
    PyObject *cause = ask(kept), *type, *value, *trace;

    if (PyErr_Occurred() != NULL)
        return NULL;
    error_raise(code, error);
    if (cause == NULL)
        return NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyException_SetCause(value, cause); /* takes it */
    PyErr_Restore(type, value, trace);
    return NULL;
}
