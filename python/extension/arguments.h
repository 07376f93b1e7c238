/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_ARGUMENTS_H
#define FLYBALL_PYTHON_EXTENSION_ARGUMENTS_H

#include "extension.h"

#include <stddef.h>
#include <stdint.h>

#include <flyball/carbon.h>
#include <flyball/objective.h>

/*
 * Arguments of Python's as the library takes them. The first ones are converters for "O&" of PyArg, and leave
 * their value alone for None; bytes and arrays belong to the caller, who frees them with Py_CLEAR.
 */
int argument_text(PyObject *value, void *address); /* PyObject *: bytes in UTF-8 */
int argument_path(PyObject *value, void *address); /* PyObject *: bytes as the file system has them */
int argument_u32(PyObject *value, void *address);  /* uint32_t: UsageError beyond its range */
int argument_u64(PyObject *value, void *address);  /* uint64_t */
int argument_patience(PyObject *value,
                      void *address); /* double: give_back_s; INFINITY of 0, which is never */

/* PyObject *: bytes that are an array of double, or of uint32_t, from any sequence of numbers. */
int argument_reals(PyObject *value, void *address);
int argument_counts(PyObject *value, void *address);

/* What such bytes hold; NULL and 0 of NULL. */
const char *argument_bytes(PyObject *bytes);
size_t argument_count(PyObject *bytes, size_t item_size);

/*
 * Reads an objective: `objective` is a text such as 'energy' or 'cost:0.5', or None for energy; `eta` a
 * number in place of it, or None; `max_slowdown` a text such as '3%', '3 %', '1.03x' or 'none', a fraction
 * such as 0.03, None for no bound, or NULL or 'auto' for the usual one, read as 0. 0, or -1 with UsageError
 * or TypeError.
 */
int argument_objective(PyObject *objective, PyObject *eta, PyObject *max_slowdown,
                       struct fly_objective *out_objective);

/*
 * Reads a dict with the members of struct fly_carbon_options as its keys. `texts`, a list that the caller
 * frees, holds on to what the options point to. 0, or -1 with an exception.
 */
int argument_carbon(PyObject *dict, struct fly_carbon_options *out_options, PyObject **out_texts);

#endif
