/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, texts and arrays of Python's as the library takes them. */
#include "arguments.h"

/* Sets the address to bytes that the caller owns; NULL frees them: another argument was wrong. */
static int convert(PyObject *value, void *address, PyObject *(*make)(PyObject *value))
{
    PyObject **bytes = address;

    if (value == NULL) {
        Py_CLEAR(*bytes);
        return 1;
    }
    if (value == Py_None)
        return Py_CLEANUP_SUPPORTED;
    *bytes = make(value);
    return *bytes != NULL ? Py_CLEANUP_SUPPORTED : 0;
}

/* The library's texts end at the first zero byte. */
static PyObject *whole_text(PyObject *bytes)
{
    char *text;

    if (bytes != NULL && PyBytes_AsStringAndSize(bytes, &text, NULL) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

static PyObject *make_text(PyObject *value)
{
    if (PyUnicode_Check(value))
        return whole_text(PyUnicode_AsUTF8String(value));
    PyErr_Format(PyExc_TypeError, "expected a str, got %R", value);
    return NULL;
}

int argument_text(PyObject *value, void *address)
{
    return convert(value, address, make_text);
}

int argument_path(PyObject *value, void *address)
{
    if (value != NULL && value == Py_None)
        return Py_CLEANUP_SUPPORTED;
    return PyUnicode_FSConverter(value, address);
}

/* As PyLong_AsUnsignedLongLong, with the exceptions of this package. */
static int read_count(PyObject *value, uint64_t highest, uint64_t *out_count)
{
    PyObject *number = PyNumber_Index(value);
    unsigned long long count;

    if (number == NULL)
        return 0;
    count = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred() == NULL && count <= highest) {
        *out_count = count;
        return 1;
    }
    PyErr_Clear();
    number =
        PyUnicode_FromFormat("expected a number from 0 to %llu, got %R", (unsigned long long)highest, value);
    if (number != NULL) {
        PyObject *bytes = PyUnicode_AsUTF8String(number);

        if (bytes != NULL)
            error_raise_text(FLY_EUSAGE, PyBytes_AsString(bytes));
        Py_XDECREF(bytes);
        Py_DECREF(number);
    }
    return 0;
}

int argument_u64(PyObject *value, void *address)
{
    return value == Py_None || read_count(value, UINT64_MAX, address);
}

int argument_u32(PyObject *value, void *address)
{
    uint64_t count;

    if (value == Py_None)
        return 1;
    if (!read_count(value, UINT32_MAX, &count))
        return 0;
    *(uint32_t *)address = (uint32_t)count;
    return 1;
}

static int write_real(PyObject *value, void *place)
{
    double number = PyFloat_AsDouble(value);

    memcpy(place, &number, sizeof number);
    return PyErr_Occurred() == NULL;
}

static int write_count(PyObject *value, void *place)
{
    uint32_t count = 0;

    if (!argument_u32(value, &count))
        return 0;
    memcpy(place, &count, sizeof count);
    return 1;
}

static PyObject *make_array(PyObject *value, size_t item_size, int (*write)(PyObject *value, void *place))
{
    PyObject *items = PySequence_Tuple(value), *bytes = NULL;
    Py_ssize_t count = items != NULL ? PyTuple_Size(items) : 0;

    if (items != NULL)
        bytes = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)item_size);
    for (Py_ssize_t i = 0; i < count && bytes != NULL; i++) {
        if (!write(PyTuple_GetItem(items, i), PyBytes_AsString(bytes) + (size_t)i * item_size))
            Py_CLEAR(bytes);
    }
    Py_XDECREF(items);
    return bytes;
}

static PyObject *make_reals(PyObject *value)
{
    return make_array(value, sizeof(double), write_real);
}

static PyObject *make_counts(PyObject *value)
{
    return make_array(value, sizeof(uint32_t), write_count);
}

int argument_reals(PyObject *value, void *address)
{
    return convert(value, address, make_reals);
}

int argument_counts(PyObject *value, void *address)
{
    return convert(value, address, make_counts);
}

const char *argument_bytes(PyObject *bytes)
{
    return bytes != NULL ? PyBytes_AsString(bytes) : NULL;
}

size_t argument_count(PyObject *bytes, size_t item_size)
{
    return bytes != NULL ? (size_t)PyBytes_Size(bytes) / item_size : 0;
}

int argument_patience(PyObject *value, void *address)
{
    double *seconds = address;

    if (value == Py_None)
        return 1;
    *seconds = PyFloat_AsDouble(value);
    if (PyErr_Occurred() != NULL)
        return 0;
    if (!(*seconds >= 0.0)) {
        error_raise_text(FLY_EUSAGE, "give_back_s is a number of seconds from 0");
        return 0;
    }
    if (*seconds == 0.0)
        *seconds = INFINITY;
    return 1;
}
