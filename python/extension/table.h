/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_TABLE_H
#define FLYBALL_PYTHON_EXTENSION_TABLE_H

#include "extension.h"

#include <stddef.h>

/*
 * Structs of the library as named tuples: a table says which members they have. A real number that is not
 * known (NAN) becomes None.
 */
enum table_kind {
    TABLE_REAL,     /* double */
    TABLE_COUNT,    /* uint64_t */
    TABLE_COUNT_32, /* uint32_t */
    TABLE_NUMBERED, /* uint64_t that counts from 1, of which 0 is None */
    TABLE_NUMBER,   /* int */
    TABLE_OPTIONAL, /* int, of which -1 is None */
    TABLE_FLAG,     /* bool */
    TABLE_TEXT,     /* char array */
    TABLE_POINTED,  /* const char * */
    TABLE_WORD,     /* an enum; `word` names its values */
};

struct table_field {
    const char *name, *doc;
    enum table_kind kind;
    size_t offset;
    const char *(*word)(int value);
};

/* One row of a table, of a struct's member. */
#define TABLE_FIELD(type, name, kind, doc)           \
    {                                                \
#name, doc, kind, offsetof(type, name), NULL \
    }
/* A row for a dict, under a name of its own; the member may be one of a member. */
#define TABLE_KEY(key, type, member, kind)            \
    {                                                 \
        key, NULL, kind, offsetof(type, member), NULL \
    }
#define TABLE_FIELD_WORD(type, name, word, doc)            \
    {                                                      \
#name, doc, TABLE_WORD, offsetof(type, name), word \
    }

enum { TABLE_FIELDS_MAX = 48 };

/*
 * Adds a named tuple with these fields to the module, of which the first `unpacked` come when it is unpacked.
 * The name is "flyball.X", and stays, as the table does. NULL with an exception.
 */
PyTypeObject *table_add(PyObject *module, const char *name, const char *doc, const struct table_field *fields,
                        size_t count, int unpacked);

/* Fills a tuple from its place `at` on: 0, or -1 with an exception. */
int table_fill(PyObject *tuple, Py_ssize_t at, const struct table_field *fields, size_t count,
               const void *data);

/* A tuple of that type, filled. NULL with an exception. */
PyObject *table_make(PyTypeObject *type, const struct table_field *fields, size_t count, const void *data);

/* The value of one member. NULL with an exception. */
PyObject *table_value(const struct table_field *field, const void *data);

/* A str of a text of the library's, whatever bytes it holds. NULL with an exception. */
PyObject *table_text(const char *text);

#endif
