/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own way to set limits. */
#include "turner.h"

#include <stdio.h>

#include "kept.h"

static int code_of(PyObject *raised, int otherwise)
{
    if (PyObject_IsInstance(raised, PyExc_PermissionError) == 1)
        return FLY_EPERM;
    return PyObject_IsInstance(raised, PyExc_NotImplementedError) == 1 ? FLY_EUNSUPPORTED : otherwise;
}

/* Turns the exception that is set into the library's error. */
static int fail(struct turner *self, int otherwise, struct fly_error *out_error)
{
    PyObject *raised = NULL, *text, *bytes = NULL;
    int code;

    kept_take(&raised);
    code = code_of(raised, otherwise);
    text = PyObject_Str(raised);
    if (text != NULL)
        bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    PyErr_Clear();
    if (out_error != NULL) {
        out_error->code = code;
        snprintf(out_error->text, sizeof out_error->text, "%s",
                 bytes != NULL ? PyBytes_AsString(bytes) : fly_error_sentence(code));
    }
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    if (PyObject_IsInstance(raised, PyExc_Exception) == 1) {
        Py_DECREF(raised);
    } else {
        Py_XDECREF(self->raised);
        self->raised = raised;
    }
    return code;
}

/* A call of the object's method: what it gives is read into the data, which returns whether that worked. */
struct turner_call {
    const char *method;
    double setting; /* of set */
    int otherwise;  /* code of what it raises */
    int (*read)(PyObject *result, void *out);
    void *out;
};

static int call(struct turner *self, const struct turner_call *call, struct fly_error *out_error)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *trace, *result;
    int code = 0;

    PyErr_Fetch(&type, &value, &trace);
    result = call->read != NULL ? PyObject_CallMethod(self->object, call->method, NULL)
                                : PyObject_CallMethod(self->object, call->method, "d", call->setting);
    if (result == NULL || (call->read != NULL && !call->read(result, call->out)))
        code = fail(self, call->otherwise, out_error);
    Py_XDECREF(result);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(state);
    return code;
}

static int read_range(PyObject *result, void *out)
{
    struct fly_turner_range *range = out;
    PyObject *tuple = PySequence_Tuple(result);
    int read = tuple != NULL &&
               PyArg_ParseTuple(tuple, "dd|d;range() gives (lowest, highest) or (lowest, highest, step)",
                                &range->lowest, &range->highest, &range->step);

    Py_XDECREF(tuple);
    return read;
}

static int read_real(PyObject *result, void *out)
{
    *(double *)out = PyFloat_AsDouble(result);
    return PyErr_Occurred() == NULL;
}

static int turner_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct fly_turner_range range = {0};
    struct turner_call how = {.method = "range", .otherwise = FLY_EREAD, .read = read_range, .out = &range};
    int code = call(data, &how, out_error);

    if (code == 0)
        *out_range = range;
    return code;
}

static int turner_set(void *data, double setting, struct fly_error *out_error)
{
    struct turner_call how = {.method = "set", .setting = setting, .otherwise = FLY_EWRITE};

    return call(data, &how, out_error);
}

static int turner_standing(void *data, double *out_setting, struct fly_error *out_error)
{
    double setting = 0.0;
    struct turner_call how = {
        .method = "standing", .otherwise = FLY_EREAD, .read = read_real, .out = &setting};
    int code = call(data, &how, out_error);

    if (code == 0)
        *out_setting = setting;
    return code;
}

const struct fly_turner turner_of_python = {turner_range, turner_set, turner_standing};
