/* SPDX-License-Identifier: Apache-2.0 */
/* Named tuples of structs. */
#include "table.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

PyObject *table_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject *table_value(const struct table_field *field, const void *data)
{
    const void *member = (const char *)data + field->offset;

    switch (field->kind) {
    case TABLE_REAL:
        return isnan(*(const double *)member) ? none() : PyFloat_FromDouble(*(const double *)member);
    case TABLE_COUNT:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)member);
    case TABLE_NUMBERED:
        return *(const uint64_t *)member == 0 ? none()
                                              : PyLong_FromUnsignedLongLong(*(const uint64_t *)member);
    case TABLE_COUNT_32:
        return PyLong_FromUnsignedLong(*(const uint32_t *)member);
    case TABLE_NUMBER:
        return PyLong_FromLong(*(const int *)member);
    case TABLE_OPTIONAL:
        return *(const int *)member == -1 ? none() : PyLong_FromLong(*(const int *)member);
    case TABLE_FLAG:
        return PyBool_FromLong(*(const bool *)member);
    case TABLE_TEXT:
        return table_text(member);
    case TABLE_POINTED:
        return table_text(*(const char *const *)member);
    case TABLE_WORD:
        return table_text(field->word(*(const int *)member));
    }
    Py_UNREACHABLE();
}

PyTypeObject *table_add(PyObject *module, const char *name, const char *doc, const struct table_field *fields,
                        size_t count, int unpacked)
{
    PyStructSequence_Field shown[TABLE_FIELDS_MAX + 1] = {{NULL, NULL}};
    PyStructSequence_Desc desc = {name, doc, shown, unpacked};
    PyTypeObject *type;

    for (size_t i = 0; i < count && i < TABLE_FIELDS_MAX; i++)
        shown[i] = (PyStructSequence_Field){fields[i].name, fields[i].doc};
    type = PyStructSequence_NewType(&desc);
    if (type != NULL && PyObject_SetAttrString(module, strrchr(name, '.') + 1, (PyObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

int table_fill(PyObject *tuple, Py_ssize_t at, const struct table_field *fields, size_t count,
               const void *data)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *value = table_value(&fields[i], data);

        if (value == NULL)
            return -1;
        PyStructSequence_SetItem(tuple, at + (Py_ssize_t)i, value);
    }
    return 0;
}

PyObject *table_make(PyTypeObject *type, const struct table_field *fields, size_t count, const void *data)
{
    PyObject *tuple = PyStructSequence_New(type);

    if (tuple != NULL && table_fill(tuple, 0, fields, count, data) < 0)
        Py_CLEAR(tuple);
    return tuple;
}
