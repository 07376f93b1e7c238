/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange between ranks as a function of Python's. */
#include "all_reduce.h"

#include <stdbool.h>

#include "kept.h"

int all_reduce_take(struct all_reduce *self, PyObject *callable)
{
    if (callable == Py_None)
        return 0;
    if (!PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "all_reduce is a function of two lists, which it changes in place");
        return -1;
    }
    Py_INCREF(callable);
    self->callable = callable;
    return 0;
}

static PyObject *list_of(const double *values, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; i < count && list != NULL; i++) {
        PyObject *value = PyFloat_FromDouble(values[i]);

        if (value == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, value);
    }
    return list;
}

/* Copies what stands in the list now. The __float__ of a value may do anything, also to the list. */
static bool read_list(PyObject *list, double *out_values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *value = PyList_Size(list) == (Py_ssize_t)count ? PyList_GetItem(list, (Py_ssize_t)i) : NULL;

        if (value == NULL)
            break;
        Py_INCREF(value);
        out_values[i] = PyFloat_AsDouble(value);
        Py_DECREF(value);
        if (PyErr_Occurred() != NULL)
            return false;
    }
    if (PyList_Size(list) == (Py_ssize_t)count)
        return true;
    PyErr_SetString(PyExc_ValueError, "all_reduce must leave the lists as long as they are");
    return false;
}

static bool join(PyObject *callable, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    PyObject *first = list_of(sums, sum_count), *second = list_of(maxima, max_count), *result = NULL;
    bool joined = false;

    if (first != NULL && second != NULL)
        result = PyObject_CallFunctionObjArgs(callable, first, second, NULL);
    if (result != NULL)
        joined = read_list(first, sums, sum_count) && read_list(second, maxima, max_count);
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(result);
    return joined;
}

int all_reduce_call(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    struct all_reduce *self = data;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *callable = self->callable, *type, *value, *trace;
    bool joined = false;

    PyErr_Fetch(&type, &value, &trace);
    if (callable != NULL) {
        Py_INCREF(callable);
        joined = join(callable, sums, sum_count, maxima, max_count);
        if (!joined)
            kept_take(&self->raised);
        Py_DECREF(callable);
    }
    PyErr_Restore(type, value, trace);
    PyGILState_Release(state);
    return joined ? 0 : FLY_EUNREACHABLE;
}

int all_reduce_check(struct all_reduce *self)
{
    return kept_check(&self->raised, self->callable);
}

PyObject *all_reduce_error(struct all_reduce *self, int code, const struct fly_error *error)
{
    return kept_error(&self->raised, code, error);
}

int all_reduce_traverse(struct all_reduce *self, visitproc visit, void *arg)
{
    Py_VISIT(self->callable);
    Py_VISIT(self->raised);
    return 0;
}

void all_reduce_clear(struct all_reduce *self)
{
    Py_CLEAR(self->callable);
    Py_CLEAR(self->raised);
}
