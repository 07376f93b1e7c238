/* SPDX-License-Identifier: Apache-2.0 */
/* The family of exceptions: flyball.Error, and its kinds that are one of Python's own besides. */
#include "extension.h"

enum { ERROR_ANY, ERROR_USAGE, ERROR_STATE, ERROR_NOT_FOUND, ERROR_KINDS };

static const struct error_kind {
    const char *name, *full_name, *doc;
    PyObject **builtin; /* second base, besides Error */
} kinds[ERROR_KINDS] = {
    {"Error", "flyball.Error",
     "Misuse of Flyball, or something it needs that is not there. `code` is the name of the library's "
     "error,\n"
     "as 'FLY_EDATA'.",
     &PyExc_Exception},
    {"UsageError", "flyball.UsageError", "An argument is out of its range, or cannot be read.",
     &PyExc_ValueError},
    {"StateError", "flyball.StateError",
     "The call does not fit the state of its object: it is closed, has ended, or belongs to the process "
     "that\n"
     "this one was forked from.",
     &PyExc_RuntimeError},
    {"NotFoundError", "flyball.NotFoundError", "What was named does not exist.", &PyExc_LookupError},
};

static PyObject *types[ERROR_KINDS];

/* Python's own MemoryError serves for FLY_ENOMEM. */
static PyObject *type_of(int code)
{
    switch (code) {
    case FLY_EUSAGE:
        return types[ERROR_USAGE];
    case FLY_ESTATE:
        return types[ERROR_STATE];
    case FLY_ENOTFOUND:
        return types[ERROR_NOT_FOUND];
    default:
        return types[ERROR_ANY];
    }
}

PyObject *error_raise_text(int code, const char *text)
{
    PyObject *type = type_of(code), *sentence, *exception = NULL, *name;

    if (code == FLY_ENOMEM)
        return PyErr_NoMemory();
    sentence = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    name = PyUnicode_FromString(fly_error_name(code));
    if (sentence != NULL && name != NULL)
        exception = PyObject_CallFunctionObjArgs(type, sentence, NULL);
    if (exception != NULL && PyObject_SetAttrString(exception, "code", name) == 0)
        PyErr_SetObject(type, exception);
    Py_XDECREF(exception);
    Py_XDECREF(name);
    Py_XDECREF(sentence);
    return NULL;
}

PyObject *error_raise(int code, const struct fly_error *error)
{
    return error_raise_text(code,
                            error != NULL && error->text[0] != '\0' ? error->text : fly_error_sentence(code));
}

static PyObject *make_kind(int kind)
{
    const struct error_kind *is = &kinds[kind];
    PyObject *bases =
        kind == ERROR_ANY ? PyTuple_Pack(1, *is->builtin) : PyTuple_Pack(2, types[ERROR_ANY], *is->builtin);
    PyObject *type = bases != NULL ? PyErr_NewExceptionWithDoc(is->full_name, is->doc, bases, NULL) : NULL;

    Py_XDECREF(bases);
    return type;
}

int errors_add(PyObject *module)
{
    for (int kind = 0; kind < ERROR_KINDS; kind++) {
        if (types[kind] == NULL)
            types[kind] = make_kind(kind);
        if (types[kind] == NULL || PyObject_SetAttrString(module, kinds[kind].name, types[kind]) < 0)
            return -1;
    }
    return 0;
}
