/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_LIVE_H
#define FLYBALL_PYTHON_EXTENSION_LIVE_H

#include "extension.h"

#include <stdbool.h>

/*
 * Handles that must be closed before the interpreter ends, since they put limits back: the first that is
 * added registers a function with atexit. A handle is for one thread at a time, and calls into the library
 * run without the GIL; so each has a lock.
 *
 *     if (live_enter(&self->live) < 0)
 *         return NULL;
 *     ...
 *     live_leave(&self->live);
 *
 * In a process that was forked, handles are inert: live_is_foreign says so.
 */
struct live {
    struct live *next, *previous; /* in the list of all */
    PyObject *object;             /* whose handle it is; borrowed */
    PyThread_type_lock lock;
    unsigned long owner;              /* the thread inside; 0: none */
    unsigned long forks;              /* of this process, when it was made */
    void (*close)(struct live *live); /* at the interpreter's end, inside; with the GIL; raises nothing */
};

/* Adds the handle of an object: 0, or -1 with an exception. All of these need the GIL. */
int live_add(struct live *live, PyObject *object, void (*close)(struct live *live));

/* At the begin of tp_dealloc: takes it out of the list. At its end: frees the lock. Both also if never added.
 */
void live_remove(struct live *live);
void live_free(struct live *live);

/*
 * Waits for the lock, without the GIL. 0, or -1 with StateError if this thread is inside already, as a
 * function that the library called is.
 */
int live_enter(struct live *live);
void live_leave(struct live *live);

/* Whether this process is a child of the one that made the handle. */
bool live_is_foreign(const struct live *live);

/* The same without an exception, for objects that are collected. */
bool live_try_enter(struct live *live);

#endif
