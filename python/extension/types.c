/* SPDX-License-Identifier: Apache-2.0 */
/* What the types of the module have in common. */
#include "extension.h"

struct extension_types extension_types;

PyTypeObject *type_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);

    if (type != NULL && PyObject_SetAttrString(module, strrchr(spec->name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

PyObject *type_not_made_by_hand(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    (void)type;
    (void)arguments;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "only methods of other objects make this one; help(flyball) says which");
    return NULL;
}

PyObject *type_make(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return allocate(type, 0);
}

void type_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

PyObject *type_html(PyObject *self, const char *function)
{
    PyObject *module = PyImport_ImportModule("flyball.notebook"), *text = NULL;

    if (module != NULL)
        text = PyObject_CallMethod(module, function, "O", self);
    Py_XDECREF(module);
    return text;
}
