/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that put something back: their locks, and the end of the interpreter. */
#include "live.h"

#include <pthread.h>

#include <pythread.h>

static struct live all = {.next = &all, .previous = &all};
static unsigned long forks;

static void count_fork(void)
{
    forks++;
}

bool live_is_foreign(const struct live *live)
{
    return live->forks != forks;
}

/* A second is enough for a call that another thread is in; one that is stuck there is left to the guard. */
enum { PATIENCE_US = 1000000 };

static void close_one(struct live *live)
{
    PyLockStatus status;

    if (live_is_foreign(live)) {
        live->close(live);
        return;
    }
    if (live->owner == PyThread_get_thread_ident())
        return;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(live->lock, PATIENCE_US, 0);
    Py_END_ALLOW_THREADS
    if (status != PY_LOCK_ACQUIRED)
        return;
    live->owner = PyThread_get_thread_ident();
    live->close(live);
    live_leave(live);
}

static PyObject *close_all(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    while (all.next != &all) {
        PyObject *object = all.next->object;
        struct live *live = all.next;

        Py_INCREF(object);
        live_remove(live);
        close_one(live);
        Py_DECREF(object);
    }
    Py_RETURN_NONE;
}

static PyMethodDef closer = {"close_all", close_all, METH_NOARGS, "Closes what puts something back."};

/* Once in a process: the module has one interpreter. */
static int register_ends(void)
{
    static bool registered;
    PyObject *module, *function, *result = NULL;

    if (registered)
        return 0;
    module = PyImport_ImportModule("atexit");
    function = PyCFunction_NewEx(&closer, NULL, NULL);
    if (module != NULL && function != NULL)
        result = PyObject_CallMethod(module, "register", "O", function);
    Py_XDECREF(module);
    Py_XDECREF(function);
    Py_XDECREF(result);
    if (result == NULL)
        return -1;
    registered = true;
    return pthread_atfork(NULL, NULL, count_fork) == 0 ? 0 : (PyErr_NoMemory(), -1);
}

int live_add(struct live *live, PyObject *object, void (*close)(struct live *live))
{
    if (register_ends() < 0)
        return -1;
    live->lock = PyThread_allocate_lock();
    if (live->lock == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    live->object = object;
    live->close = close;
    live->forks = forks;
    live->next = all.next;
    live->previous = &all;
    all.next->previous = live;
    all.next = live;
    return 0;
}

void live_remove(struct live *live)
{
    if (live->next == NULL)
        return;
    live->previous->next = live->next;
    live->next->previous = live->previous;
    live->next = live->previous = NULL;
}

void live_free(struct live *live)
{
    if (live->lock != NULL)
        PyThread_free_lock(live->lock);
    live->lock = NULL;
}

bool live_try_enter(struct live *live)
{
    unsigned long me = PyThread_get_thread_ident();

    if (live->owner == me)
        return false;
    if (!PyThread_acquire_lock(live->lock, NOWAIT_LOCK)) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(live->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    live->owner = me;
    return true;
}

int live_enter(struct live *live)
{
    if (live_try_enter(live))
        return 0;
    error_raise_text(FLY_ESTATE, "the call comes from a function that the same object waits for");
    return -1;
}

void live_leave(struct live *live)
{
    live->owner = 0;
    PyThread_release_lock(live->lock);
}
