/* SPDX-License-Identifier: Apache-2.0 */
/* flyball.PowerKnob: one power limit of the program's choice on a monitor's GPUs. */
#include "arguments.h"
#include "live.h"
#include "monitor.h"

#include <stddef.h>

#include <flyball/power_knob.h>

struct power_knob {
    PyObject_HEAD struct live live;
    struct monitor *monitor;
    struct fly_power_knob *knob; /* NULL: closed */
};

static struct power_knob *of_live(struct live *live)
{
    return (struct power_knob *)((char *)live - offsetof(struct power_knob, live));
}

/* Inside. The meter is needed up to here. */
static void close_knob(struct live *live)
{
    struct power_knob *self = of_live(live);
    struct fly_power_knob *knob = self->knob;

    self->knob = NULL;
    if (knob == NULL)
        return;
    Py_BEGIN_ALLOW_THREADS
    fly_power_knob_close(knob);
    Py_END_ALLOW_THREADS
    monitor_leave(self->monitor);
}

static int enter(struct power_knob *self)
{
    if (live_enter(&self->live) < 0)
        return -1;
    if (self->knob != NULL)
        return 0;
    live_leave(&self->live);
    error_raise_text(FLY_ESTATE, "the knob is closed; make another one");
    return -1;
}

static int open_knob(struct power_knob *self, int follows_steps, double give_back_s)
{
    struct fly_error error;
    int code;

    if (monitor_enter(self->monitor) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    code = fly_power_knob_open(self->monitor->meter, &self->knob, &error);
    if (code == 0 && follows_steps) {
        code = fly_power_knob_follow_steps(self->knob, give_back_s, &error);
        if (code < 0) {
            fly_power_knob_close(self->knob);
            self->knob = NULL;
        }
    }
    Py_END_ALLOW_THREADS
    if (code == 0)
        return live_add(&self->live, (PyObject *)self, close_knob);
    monitor_leave(self->monitor);
    error_raise(code, &error);
    return -1;
}

static PyObject *knob_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"monitor", "follow_steps", "give_back_s", NULL};
    struct power_knob *self;
    double give_back_s = 0.0;
    int follows_steps = 0;
    PyObject *monitor;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!|$pO&:PowerKnob", names, extension_types.monitor,
                                     &monitor, &follows_steps, argument_patience, &give_back_s))
        return NULL;
    self = (struct power_knob *)type_make(type);
    if (self == NULL)
        return NULL;
    Py_INCREF(monitor);
    self->monitor = (struct monitor *)monitor;
    if (open_knob(self, follows_steps, give_back_s) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int knob_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct power_knob *self = (struct power_knob *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)self->monitor);
    return 0;
}

static int knob_clear(PyObject *object)
{
    struct power_knob *self = (struct power_knob *)object;
    struct monitor *monitor = self->monitor;

    if (monitor != NULL)
        close_knob(&self->live);
    self->monitor = NULL;
    Py_XDECREF((PyObject *)monitor);
    return 0;
}

static void knob_dealloc(PyObject *object)
{
    struct power_knob *self = (struct power_knob *)object;

    PyObject_GC_UnTrack(object);
    live_remove(&self->live);
    knob_clear(object);
    live_free(&self->live);
    type_free(object);
}

static PyObject *knob_set(PyObject *object, PyObject *limit)
{
    struct power_knob *self = (struct power_knob *)object;
    double limit_w = PyFloat_AsDouble(limit);
    struct fly_error error;
    int code;

    if ((limit_w == -1.0 && PyErr_Occurred() != NULL) || enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = fly_power_knob_set(self->knob, limit_w, &error);
    Py_END_ALLOW_THREADS
    live_leave(&self->live);
    return code == 0 ? none() : error_raise(code, &error);
}

static PyObject *knob_hold_clock(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"lowest_mhz", "highest_mhz", "memory", NULL};
    struct power_knob *self = (struct power_knob *)object;
    uint32_t lowest_mhz = 0, highest_mhz = 0;
    struct fly_error error;
    int code, memory = 0;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O&O&|$p:hold_clock", names, argument_u32,
                                     &lowest_mhz, argument_u32, &highest_mhz, &memory) ||
        enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = fly_power_knob_hold_clock(self->knob, memory ? FLY_CLOCK_MEMORY : FLY_CLOCK_GPU, lowest_mhz,
                                     highest_mhz, &error);
    Py_END_ALLOW_THREADS
    live_leave(&self->live);
    return code == 0 ? none() : error_raise(code, &error);
}

/* Calls the function without the interpreter's lock; false: an exception is set. */
static bool call_knob(PyObject *object, int (*function)(struct fly_power_knob *, struct fly_error *),
                      int *out_code)
{
    struct power_knob *self = (struct power_knob *)object;
    struct fly_error error;
    int code;

    if (enter(self) < 0)
        return false;
    Py_BEGIN_ALLOW_THREADS
    code = function(self->knob, &error);
    Py_END_ALLOW_THREADS
    live_leave(&self->live);
    if (code < 0)
        error_raise(code, &error);
    *out_code = code;
    return code >= 0;
}

static PyObject *knob_step_begin(PyObject *object, PyObject *unused)
{
    int again;

    (void)unused;
    return call_knob(object, fly_power_knob_step_begin, &again) ? PyBool_FromLong(again) : NULL;
}

static PyObject *knob_give_back(PyObject *object, PyObject *unused)
{
    int code;

    (void)unused;
    return call_knob(object, fly_power_knob_give_back, &code) ? none() : NULL;
}

static PyObject *knob_close(PyObject *object, PyObject *unused)
{
    struct power_knob *self = (struct power_knob *)object;

    (void)unused;
    if (live_enter(&self->live) < 0)
        return NULL;
    close_knob(&self->live);
    live_leave(&self->live);
    return none();
}

static PyObject *knob_with(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *knob_exit(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    return knob_close(self, NULL);
}

static PyObject *get_range(PyObject *object, void *unused)
{
    struct power_knob *self = (struct power_knob *)object;
    double lowest_w, highest_w;
    struct fly_error error;
    int code;

    (void)unused;
    if (enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = fly_power_knob_range(self->knob, &lowest_w, &highest_w, &error);
    Py_END_ALLOW_THREADS
    live_leave(&self->live);
    return code == 0 ? Py_BuildValue("dd", lowest_w, highest_w) : error_raise(code, &error);
}

static PyObject *get_limit(PyObject *object, void *unused)
{
    struct power_knob *self = (struct power_knob *)object;
    struct fly_error error;
    double limit_w;
    int code;

    (void)unused;
    if (enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = fly_power_knob_limit(self->knob, &limit_w, &error);
    Py_END_ALLOW_THREADS
    live_leave(&self->live);
    return code == 0 ? PyFloat_FromDouble(limit_w) : error_raise(code, &error);
}

static PyMethodDef methods[] = {
    {"set", knob_set, METH_O,
     "set($self, limit_w, /)\n--\n\nSets the limit of each of the GPUs, in W: all of them, or none.\n\n"
     "Raises UsageError outside their range, StateError if somebody else has changed one, Error (FLY_EPERM)\n"
     "without the permission."},
    {"hold_clock", (PyCFunction)(void (*)(void))knob_hold_clock, METH_VARARGS | METH_KEYWORDS,
     "hold_clock($self, lowest_mhz, highest_mhz, *, memory=False)\n--\n\nHolds the clock of each of the "
     "GPUs, "
     "or of "
     "their memory, between two, in MHz: all of them, or\nnone. 0 is no bound; with neither, what this knob "
     "holds "
     "is lifted, as by the close.\n\nRaises UsageError for a clock that they cannot be held to, Error "
     "(FLY_EUNSUPPORTED, FLY_EPERM), StateError\nif somebody else has set their clocks, and for a knob that "
     "follows steps."},
    {"step_begin", knob_step_begin, METH_NOARGS,
     "step_begin($self, /)\n--\n\nA step begins. Returns whether the limits had been given back; what was "
     "set last\n"
     "is set again. Raises StateError if somebody else has changed one, or holds a GPU by now."},
    {"give_back", knob_give_back, METH_NOARGS,
     "give_back($self, /)\n--\n\nNo step comes for now: puts back the limits that were there at first, up to "
     "the\n"
     "next step. StateError for a knob that follows no steps."},
    {"close", knob_close, METH_NOARGS,
     "close($self, /)\n--\n\nPuts back the limits that were there at first. May be called again."},
    {"__enter__", knob_with, METH_NOARGS, "__enter__($self, /)\n--\n\n"},
    {"__exit__", knob_exit, METH_VARARGS, "Closes the knob."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"range_w", get_range, NULL, "The lowest and the highest limit that all of the GPUs take, in W.", NULL},
    {"limit_w", get_limit, NULL, "The limit in force, in W; StateError if the GPUs differ.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char doc[] =
    "PowerKnob(monitor, *, follow_steps=False, give_back_s=None)\n--\n\n"
    "Sets one power limit of your choice on all GPUs of a monitor.\n\n"
    "    with flyball.Monitor() as monitor, flyball.PowerKnob(monitor) as knob:\n"
    "        lowest_w, highest_w = knob.range_w\n"
    "        knob.set(0.7 * highest_w)\n"
    "        train()\n\n"
    "follow_steps   a limit stands only while step_begin() is called, as a Tuner's; without it up to the "
    "close\n"
    "give_back_s    for that: s without a step after which the limits that were there at first are put back "
    "and\n"
    "               the GPUs released, until the next step; 0: never; None: as of a Tuner\n\n"
    "The limits that were there at first come back at the close, at the interpreter's end, and by a guard\n"
    "process if the program is killed. The monitor stays open until then. A GPU that somebody else controls "
    "is\n"
    "never turned. Raises Error (FLY_EPERM, FLY_EUNSUPPORTED) or StateError with what would help. In a "
    "process\n"
    "that was forked from this one, its calls raise StateError. It cannot be pickled.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_new, knob_new},
    {Py_tp_dealloc, knob_dealloc},
    {Py_tp_traverse, knob_traverse},
    {Py_tp_clear, knob_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "flyball.PowerKnob",
    .basicsize = sizeof(struct power_knob),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int power_knob_add(PyObject *module)
{
    PyTypeObject *type = type_add(module, &spec);

    Py_XDECREF((PyObject *)type);
    return type != NULL ? 0 : -1;
}
