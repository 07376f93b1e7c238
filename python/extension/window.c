/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: context manager, decorator, or begin and end. */
#include "window.h"

#include "measurement.h"

enum window_state { WINDOW_NEW, WINDOW_OPEN, WINDOW_ENDED };

struct window {
    PyObject_HEAD struct monitor *monitor;
    PyObject *name;
    PyObject *measurement; /* NULL until the end */
    fly_window window;     /* while it is open */
    enum window_state state;
};

PyObject *window_new(struct monitor *monitor, PyObject *name)
{
    struct window *self;

    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "the name of a window is a str");
        return NULL;
    }
    self = (struct window *)type_make(extension_types.window);
    if (self == NULL)
        return NULL;
    Py_INCREF(monitor);
    self->monitor = monitor;
    Py_INCREF(name);
    self->name = name;
    return (PyObject *)self;
}

/* Raises what is wrong with a window in this state. */
static int need_state(const struct window *self, enum window_state needed)
{
    static const char *const texts[] = {
        [WINDOW_NEW] = "the window has not begun; begin it with 'with'",
        [WINDOW_OPEN] = "the window is open already; make another one with Monitor.window",
        [WINDOW_ENDED] = "the window has ended; make another one with Monitor.window",
    };

    if (self->state == needed)
        return 0;
    error_raise_text(FLY_ESTATE, texts[self->state]);
    return -1;
}

int window_begin(PyObject *window)
{
    struct window *self = (struct window *)window;
    PyObject *bytes = PyUnicode_AsUTF8String(self->name);
    struct fly_error error;
    char *name;
    int code = -1;

    if (bytes == NULL)
        return -1;
    if (need_state(self, WINDOW_NEW) == 0 && PyBytes_AsStringAndSize(bytes, &name, NULL) == 0 &&
        monitor_synchronize(self->monitor) == 0 && monitor_enter(self->monitor) == 0) {
        self->state = WINDOW_OPEN; /* no other thread begins it too */
        Py_BEGIN_ALLOW_THREADS
        code = fly_meter_begin(self->monitor->meter, name, &self->window, &error);
        Py_END_ALLOW_THREADS
        monitor_leave(self->monitor);
        if (code < 0) {
            self->state = WINDOW_NEW;
            error_raise(code, &error);
        }
    }
    Py_DECREF(bytes);
    return code == 0 ? 0 : -1;
}

typedef int (*take_measurement)(struct fly_meter *meter, fly_window window,
                                struct fly_measurement *out_measurement, struct fly_error *out_error);

/* Ends the window, or looks into it. */
static PyObject *measure(struct window *self, take_measurement take)
{
    struct monitor *monitor = self->monitor;
    PyObject *measurement;
    struct fly_error error;
    int code;

    if (need_state(self, WINDOW_OPEN) < 0 || monitor_synchronize(monitor) < 0)
        return NULL;
    measurement = measurement_new(monitor->identities);
    if (measurement == NULL || monitor_enter(monitor) < 0) {
        Py_XDECREF(measurement);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    code = take(monitor->meter, self->window, measurement_room(measurement), &error);
    Py_END_ALLOW_THREADS
    monitor_leave(monitor);
    if (code == 0)
        return measurement;
    Py_DECREF(measurement);
    return error_raise(code, &error);
}

static PyObject *window_end(PyObject *object, PyObject *unused)
{
    struct window *self = (struct window *)object;
    PyObject *measurement = measure(self, fly_meter_end);

    (void)unused;
    if (measurement != NULL) {
        self->state = WINDOW_ENDED;
        Py_INCREF(measurement);
        self->measurement = measurement;
    }
    return measurement;
}

static PyObject *window_peek(PyObject *self, PyObject *unused)
{
    (void)unused;
    return measure((struct window *)self, fly_meter_peek);
}

static PyObject *window_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (((struct window *)self)->state != WINDOW_OPEN && window_begin(self) < 0)
        return NULL;
    Py_INCREF(self);
    return self;
}

/* The program's own exception goes before any of this module's. A window may be ended by hand inside. */
static PyObject *window_exit(PyObject *object, PyObject *arguments)
{
    struct window *self = (struct window *)object;
    PyObject *kind = PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : Py_None;
    PyObject *measurement = self->state == WINDOW_OPEN ? window_end(object, NULL) : NULL;

    if (measurement == NULL && PyErr_Occurred() != NULL) {
        if (kind == Py_None)
            return NULL;
        PyErr_Clear();
    }
    Py_XDECREF(measurement);
    Py_RETURN_FALSE;
}

/* As a decorator: the function's calls are windows of their own (flyball/decorated.py). */
static PyObject *window_call(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    struct window *self = (struct window *)object;
    PyObject *module, *decorated = NULL, *function;

    if (keywords != NULL || !PyArg_ParseTuple(arguments, "O:Window", &function))
        return keywords != NULL ? (PyErr_SetString(PyExc_TypeError, "a window decorates one function"), NULL)
                                : NULL;
    module = PyImport_ImportModule("flyball.decorated");
    if (module != NULL)
        decorated =
            PyObject_CallMethod(module, "decorated", "OOO", (PyObject *)self->monitor, self->name, function);
    Py_XDECREF(module);
    return decorated;
}

/* Takes an open window out of the meter; nobody will ask for what it held. */
static void forget(struct window *self)
{
    struct fly_measurement nobody = {.size = sizeof nobody};

    if (self->state != WINDOW_OPEN || self->monitor->meter == NULL || self->monitor->closing)
        return;
    self->state = WINDOW_ENDED;
    (void)monitor_enter(self->monitor); /* it is open */
    Py_BEGIN_ALLOW_THREADS
    fly_meter_end(self->monitor->meter, self->window, &nobody, NULL);
    Py_END_ALLOW_THREADS
    monitor_leave(self->monitor);
}

static int window_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct window *self = (struct window *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)self->monitor);
    return 0;
}

static int window_clear(PyObject *object)
{
    struct window *self = (struct window *)object;
    struct monitor *monitor = self->monitor;

    if (monitor != NULL)
        forget(self);
    self->monitor = NULL;
    Py_XDECREF((PyObject *)monitor);
    return 0;
}

static void window_dealloc(PyObject *object)
{
    struct window *self = (struct window *)object;

    PyObject_GC_UnTrack(object);
    window_clear(object);
    Py_CLEAR(self->name);
    Py_CLEAR(self->measurement);
    type_free(object);
}

static PyObject *get_name(PyObject *object, void *unused)
{
    struct window *self = (struct window *)object;

    (void)unused;
    Py_INCREF(self->name);
    return self->name;
}

static PyObject *get_measurement(PyObject *object, void *unused)
{
    struct window *self = (struct window *)object;
    PyObject *value = self->measurement != NULL ? self->measurement : Py_None;

    (void)unused;
    Py_INCREF(value);
    return value;
}

static PyObject *represent(PyObject *object)
{
    static const char *const words[] = {"not begun", "open", "ended"};
    const struct window *self = (const struct window *)object;

    return PyUnicode_FromFormat("<flyball.Window %R, %s>", self->name, words[self->state]);
}

static PyObject *window_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return type_html(self, "window");
}

static PyMethodDef methods[] = {
    {"_repr_html_", window_html, METH_NOARGS, "A table, for notebooks."},
    {"end", window_end, METH_NOARGS,
     "end($self, /)\n--\n\nEnds the window and returns its Measurement.\n\nRaises StateError if it is not "
     "open."},
    {"peek", window_peek, METH_NOARGS,
     "peek($self, /)\n--\n\nReturns what the window holds so far; it goes on.\n\nRaises as end."},
    {"__enter__", window_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nBegins the window."},
    {"__exit__", window_exit, METH_VARARGS, "Ends the window, however its block ended."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "As it was given.", NULL},
    {"measurement", get_measurement, NULL, "The Measurement once the window has ended, else None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char doc[] =
    "A stretch of a program whose energy is measured; Monitor.window and Monitor.begin make it.\n\n"
    "    with monitor.window('epoch') as window:\n"
    "        train()\n"
    "    print(window.measurement)\n\n"
    "Windows may nest and overlap, and begin and end in different threads. On a function it is a\n"
    "decorator: each call is a window of its own, and the function's attribute `measurement` is that of\n"
    "the newest call that ended. A window that is collected while it is open is forgotten.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_new, type_not_made_by_hand},
    {Py_tp_dealloc, window_dealloc},
    {Py_tp_traverse, window_traverse},
    {Py_tp_clear, window_clear},
    {Py_tp_call, window_call},
    {Py_tp_repr, represent},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "flyball.Window",
    .basicsize = sizeof(struct window),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int window_add(PyObject *module)
{
    extension_types.window = type_add(module, &spec);
    return extension_types.window != NULL ? 0 : -1;
}
