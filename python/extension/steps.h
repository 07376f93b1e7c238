/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_STEPS_H
#define FLYBALL_PYTHON_EXTENSION_STEPS_H

#include "extension.h"

/*
 * The steps of a loader, for `for batch in owner.steps(loader)`. Each iteration over it is an epoch: its
 * first batch begins the epoch, each batch begins a step once it is there, and the epoch ends when the loader
 * is exhausted, raises, or is left by a break.
 */
struct steps_hooks {
    /* 0, or -1 with an exception. */
    int (*epoch_begin)(PyObject *owner);
    int (*step_begin)(PyObject *owner); /* 1: no further step; the batch is dropped */
    int (*epoch_end)(PyObject *owner);
};

/* A new flyball.Steps; `hooks` stay. NULL with an exception. */
PyObject *steps_new(PyObject *owner, const struct steps_hooks *hooks, PyObject *loader);

/* Adds the type to the module: 0, or -1 with an exception. */
int steps_add(PyObject *module);

#endif
