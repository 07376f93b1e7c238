/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_ALL_REDUCE_H
#define FLYBALL_PYTHON_EXTENSION_ALL_REDUCE_H

#include "extension.h"

/*
 * A function of Python's that joins the ranks of a training, for the library. It takes two lists of floats
 * and changes them in place: the first to the sums over all ranks, the second to the maxima.
 *
 *     if (all_reduce_take(&self->all_reduce, callable) < 0)
 *         return NULL;
 *     options.all_reduce = self->all_reduce.callable != NULL ? all_reduce_call : NULL;
 *     options.all_reduce_data = &self->all_reduce;
 *     ...
 *     Py_BEGIN_ALLOW_THREADS
 *     fly_tuner_step_begin(self->tuner);
 *     Py_END_ALLOW_THREADS
 *     if (all_reduce_check(&self->all_reduce) < 0)
 *         return NULL;
 *
 * What the function raises never passes through the library: the exchange fails there, which ends tuning.
 * It must stay where it is while the library knows it, and belongs to one handle.
 */
struct all_reduce {
    PyObject *callable; /* NULL: one rank */
    PyObject *raised;   /* what it raised last, until it is asked for */
};

/* Takes the function; None is one rank. 0, or -1 with TypeError. The next three need the GIL too. */
int all_reduce_take(struct all_reduce *self, PyObject *callable);

/*
 * After a call into the library: raises KeyboardInterrupt and what else is no Exception, which are meant for
 * the program, and writes an Exception to sys.unraisablehook. 0, or -1 with an exception.
 */
int all_reduce_check(struct all_reduce *self);

/* As error_raise, with what the function raised as the cause, or that itself if it is no Exception. */
PyObject *all_reduce_error(struct all_reduce *self, int code, const struct fly_error *error);

/* A fly_all_reduce; `data` is a struct all_reduce. With the GIL and without. */
int all_reduce_call(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count);

/* For a type's tp_traverse and tp_clear. Once cleared, an exchange fails. */
int all_reduce_traverse(struct all_reduce *self, visitproc visit, void *arg);
void all_reduce_clear(struct all_reduce *self);

#endif
