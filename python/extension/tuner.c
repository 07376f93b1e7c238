/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner: hooks, and the end that puts the limit back. */
#include "tuner.h"

#include "kept.h"
#include "steps.h"
#include "table.h"

/* The rank and the function that joins the ranks, from ranks.py unless they were given. */
static int find_ranks(struct tuner *self)
{
    PyObject *module, *found = NULL, *all_reduce = NULL;
    unsigned int rank = 0;
    int code = -1;

    if (self->wish.rank != NULL || self->all_reduce.callable != NULL)
        return 0;
    module = PyImport_ImportModule("flyball.ranks");
    if (module != NULL)
        found = PyObject_CallMethod(module, "joined", NULL);
    if (found != NULL && PyArg_ParseTuple(found, "IO", &rank, &all_reduce))
        code = all_reduce_take(&self->all_reduce, all_reduce);
    self->wish.options.rank = rank;
    Py_XDECREF(module);
    Py_XDECREF(found);
    return code;
}

/* After a call into the library: what functions of the program's raised in it. 0 or -1. */
static int check_raised(struct tuner *self)
{
    PyObject **kept[] = {&self->turner.raised, &self->clock_turner.raised, &self->monitor->raised};
    int code = all_reduce_check(&self->all_reduce);

    for (size_t i = 0; i < sizeof kept / sizeof kept[0] && code == 0; i++)
        code = kept_check(kept[i], self->monitor->synchronize);
    return code;
}

/* At the first hook, inside: makes the library's tuner. */
static int begin(struct tuner *self)
{
    struct fly_tuner_options *options = &self->wish.options;
    struct fly_error error = {.text = ""};
    int code;

    if (self->closed) {
        error_raise_text(FLY_ESTATE, "the tuner is closed; make another one");
        return -1;
    }
    if (find_ranks(self) < 0 || (!self->holds_monitor && monitor_hold(self->monitor) < 0))
        return -1;
    self->holds_monitor = true;
    options->meter = self->monitor->meter;
    options->all_reduce = self->all_reduce.callable != NULL ? all_reduce_call : NULL;
    options->all_reduce_data = &self->all_reduce;
    if (self->turner.object != NULL)
        options->turner = &turner_of_python;
    options->turner_data = &self->turner;
    if (self->clock_turner.object != NULL)
        options->clock_turner = &turner_of_python;
    options->clock_turner_data = &self->clock_turner;
    Py_BEGIN_ALLOW_THREADS
    code = fly_tuner_new(options, &self->tuner, &error);
    Py_END_ALLOW_THREADS
    if (code < 0) {
        all_reduce_error(&self->all_reduce, code, &error);
        return -1;
    }
    tuner_wish_free(&self->wish);
    return check_raised(self);
}

typedef int (*tuner_hook)(struct fly_tuner *tuner);

/*
 * A hook of the library's. Once the tuner has settled or stopped, a step takes a few nanoseconds, and
 * asking for the GIL again could take another thread's whole turn; so it is kept. Not where the turner is
 * Python: a thread of the tuner's that gives back needs the GIL while the hook waits for it.
 */
static int call(struct tuner *self, tuner_hook hook, bool is_step)
{
    int code = 0;

    if (live_is_foreign(&self->live))
        return 0;
    if (live_enter(&self->live) < 0)
        return -1;
    if (self->tuner == NULL)
        code = begin(self);
    if (code == 0 && is_step && self->turner.object == NULL && self->clock_turner.object == NULL &&
        fly_tuner_state(self->tuner) >= FLY_TUNER_SETTLED) {
        (void)hook(self->tuner);
    } else if (code == 0) {
        PyThreadState *thread = PyEval_SaveThread();

        (void)hook(self->tuner);
        PyEval_RestoreThread(thread);
    }
    live_leave(&self->live);
    return code == 0 ? check_raised(self) : -1;
}

static int step_begin(PyObject *self)
{
    return call((struct tuner *)self, fly_tuner_step_begin, true);
}

static int epoch_begin(PyObject *self)
{
    return call((struct tuner *)self, fly_tuner_epoch_begin, false);
}

/* Also of a pass over a loader that is dropped after the tuner was closed. */
static int epoch_end(PyObject *object)
{
    struct tuner *self = (struct tuner *)object;

    return self->closed ? 0 : call(self, fly_tuner_epoch_end, false);
}

static const struct steps_hooks hooks = {epoch_begin, step_begin, epoch_end};

static PyObject *tuner_step_begin(PyObject *self, PyObject *unused)
{
    (void)unused;
    return step_begin(self) == 0 ? none() : NULL;
}

static PyObject *tuner_epoch_begin(PyObject *self, PyObject *unused)
{
    (void)unused;
    return epoch_begin(self) == 0 ? none() : NULL;
}

static PyObject *tuner_epoch_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call((struct tuner *)self, fly_tuner_epoch_end, false) == 0 ? none() : NULL;
}

static PyObject *tuner_give_back(PyObject *object, PyObject *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    if (self->closed || self->tuner == NULL)
        return none();
    return call(self, fly_tuner_give_back, false) == 0 ? none() : NULL;
}

static PyObject *tuner_steps(PyObject *self, PyObject *loader)
{
    return steps_new(self, &hooks, loader);
}

/* Keeps what can be read afterwards, puts the limit back and lets go of the monitor. Inside, or nobody else
 * can be. */
static void end(struct tuner *self)
{
    struct fly_tuner *tuner = self->tuner;
    bool speaks = false;

    self->closed = true;
    if (tuner != NULL) {
        self->report = tuner_report(tuner);
        self->points = tuner_points(tuner);
        self->carbon = tuner_carbon(tuner);
        self->summary = tuner_sentence(tuner);
        speaks = !self->wish.quiet && self->wish.options.rank == 0 && !live_is_foreign(&self->live) &&
                 tuner_has_news(tuner);
        PyErr_Clear();
        self->tuner = NULL;
        Py_BEGIN_ALLOW_THREADS
        fly_tuner_free(tuner);
        Py_END_ALLOW_THREADS
    }
    if (self->holds_monitor)
        monitor_release(self->monitor);
    self->holds_monitor = false;
    if (self->owns_monitor)
        monitor_end(self->monitor);
    tuner_wish_free(&self->wish);
    if (speaks && self->summary != NULL)
        PySys_FormatStderr("flyball: %U\n", self->summary);
}

static void end_live(struct live *live)
{
    end((struct tuner *)(void *)((char *)live - offsetof(struct tuner, live)));
}

static PyObject *tuner_close(PyObject *object, PyObject *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    if (live_is_foreign(&self->live)) {
        end(self);
        return none();
    }
    if (live_enter(&self->live) < 0)
        return NULL;
    end(self);
    live_leave(&self->live);
    return check_raised(self) == 0 ? none() : NULL;
}

static PyObject *tuner_with(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *tuner_exit(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    return tuner_close(self, NULL);
}

static void take_turner(struct turner *turner, PyObject *object)
{
    if (object == Py_None)
        return;
    Py_INCREF(object);
    turner->object = object;
}

static PyObject *tuner_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    struct tuner *self = (struct tuner *)type_make(type);
    struct tuner_given given;

    if (self == NULL)
        return NULL;
    if (tuner_wish_read(&self->wish, &given, arguments, keywords) < 0 ||
        all_reduce_take(&self->all_reduce, given.all_reduce) < 0 ||
        (self->monitor = tuner_given_monitor(&given)) == NULL ||
        live_add(&self->live, (PyObject *)self, end_live) < 0) {
        Py_CLEAR(self);
    } else {
        self->owns_monitor = given.monitor == Py_None;
        take_turner(&self->turner, given.turner);
        take_turner(&self->clock_turner, given.clock_turner);
    }
    return (PyObject *)self;
}

static int tuner_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct tuner *self = (struct tuner *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->monitor);
    Py_VISIT(self->turner.object);
    Py_VISIT(self->clock_turner.object);
    return all_reduce_traverse(&self->all_reduce, visit, arg);
}

/* Of a tuner that is dropped open, also in a cycle: what it needs to put the limit back is still whole. */
static void tuner_finalize(PyObject *object)
{
    struct tuner *self = (struct tuner *)object;
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (self->monitor != NULL && !self->closed)
        end(self);
    PyErr_Restore(type, value, trace);
}

static int tuner_clear(PyObject *object)
{
    struct tuner *self = (struct tuner *)object;

    all_reduce_clear(&self->all_reduce);
    Py_CLEAR(self->turner.object);
    Py_CLEAR(self->turner.raised);
    Py_CLEAR(self->clock_turner.object);
    Py_CLEAR(self->clock_turner.raised);
    return 0;
}

static void tuner_dealloc(PyObject *object)
{
    struct tuner *self = (struct tuner *)object;

    PyObject_GC_UnTrack(object);
    live_remove(&self->live);
    tuner_finalize(object);
    tuner_wish_free(&self->wish);
    live_free(&self->live);
    (void)tuner_clear(object);
    Py_CLEAR(self->report);
    Py_CLEAR(self->points);
    Py_CLEAR(self->carbon);
    Py_CLEAR(self->summary);
    Py_CLEAR(self->monitor);
    type_free(object);
}

/* Reads something of a tuner that has begun, or what was kept of it at its end. */
static PyObject *get(struct tuner *self, PyObject **kept, PyObject *(*read)(const struct fly_tuner *tuner))
{
    bool foreign = live_is_foreign(&self->live);
    PyObject *value = NULL;

    if (*kept == NULL && !foreign && live_enter(&self->live) < 0)
        return NULL;
    if (*kept != NULL) {
        value = *kept;
        Py_INCREF(value);
    } else if (self->tuner != NULL) {
        value = read(self->tuner);
    } else {
        error_raise_text(FLY_ESTATE, self->closed ? "the tuner was closed before its first step"
                                                  : "the tuner has not begun; its first step begins it");
    }
    if (self->live.owner == PyThread_get_thread_ident())
        live_leave(&self->live);
    return value;
}

static PyObject *get_report(PyObject *object, void *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    return get(self, &self->report, tuner_report);
}

static PyObject *get_points(PyObject *object, void *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    return get(self, &self->points, tuner_points);
}

static PyObject *get_carbon(PyObject *object, void *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    return get(self, &self->carbon, tuner_carbon);
}

static PyObject *get_summary(PyObject *object, void *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    return get(self, &self->summary, tuner_sentence);
}

static PyObject *get_state(PyObject *object, void *unused)
{
    struct tuner *self = (struct tuner *)object;

    (void)unused;
    if (self->closed)
        return table_text("closed");
    return table_text(self->tuner != NULL ? tuner_state_word((int)fly_tuner_state(self->tuner)) : "waiting");
}

static PyObject *get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct tuner *)object)->closed);
}

static PyObject *get_monitor(PyObject *object, void *unused)
{
    PyObject *monitor = (PyObject *)((struct tuner *)object)->monitor;

    (void)unused;
    Py_INCREF(monitor);
    return monitor;
}

static PyObject *represent(PyObject *object)
{
    PyObject *state = get_state(object, NULL), *text = NULL;

    if (state != NULL)
        text = PyUnicode_FromFormat("<flyball.Tuner, %U>", state);
    Py_XDECREF(state);
    return text;
}

static PyObject *tuner_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return type_html(self, "tuner");
}

static PyMethodDef methods[] = {
    {"_repr_html_", tuner_html, METH_NOARGS, "A table, for notebooks."},
    {"steps", tuner_steps, METH_O,
     "steps($self, loader, /)\n--\n\nThe loader's batches, each of which begins a step: for batch in "
     "tuner.steps(loader).\n\nEach pass over it is an epoch; it ends also where the loop is left by a break "
     "or an "
     "exception."},
    {"step_begin", tuner_step_begin, METH_NOARGS,
     "step_begin($self, /)\n--\n\nBegins a step, and ends the one before.\n\nThe first one makes the "
     "library's tuner, "
     "and raises UsageError for arguments out of range.\nRaises StateError when the tuner is closed."},
    {"epoch_begin", tuner_epoch_begin, METH_NOARGS,
     "epoch_begin($self, /)\n--\n\nBegins an epoch; raises as step_begin."},
    {"epoch_end", tuner_epoch_end, METH_NOARGS,
     "epoch_end($self, /)\n--\n\nEnds the epoch and its last step; what follows, such as an evaluation, is "
     "not "
     "measured.\n\nRaises as step_begin."},
    {"give_back", tuner_give_back, METH_NOARGS,
     "give_back($self, /)\n--\n\nPuts the limit of the start back now, until the next step: for a training "
     "that "
     "an exception\nhas ended, in a program that lives on."},
    {"close", tuner_close, METH_NOARGS,
     "close($self, /)\n--\n\nPuts the limit of the start back, and says the summary on stderr. What it tells "
     "stays. May be called "
     "again."},
    {"__enter__", tuner_with, METH_NOARGS, "__enter__($self, /)\n--\n\n"},
    {"__exit__", tuner_exit, METH_VARARGS, "Closes the tuner."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"state", get_state, NULL,
     "'waiting' for the first step, 'searching', 'checking', 'settled', 'stopped' or 'closed'.", NULL},
    {"report", get_report, NULL, "A TunerReport. Raises StateError before the first step.", NULL},
    {"summary", get_summary, NULL,
     "What was chosen and what that saves, or what is missing to know it, in a sentence. Raises as report.",
     NULL},
    {"points", get_points, NULL,
     "A TunerPoint for each limit, highest first, and behind them for each ceiling. Raises as report.", NULL},
    {"carbon", get_carbon, NULL, "A CarbonReport; None where the grid is not followed. Raises as report.",
     NULL},
    {"monitor", get_monitor, NULL, "The Monitor that it measures with.", NULL},
    {"closed", get_closed, NULL, "Whether it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, tuner_doc},           {Py_tp_new, tuner_new},
    {Py_tp_dealloc, tuner_dealloc},   {Py_tp_finalize, tuner_finalize},
    {Py_tp_traverse, tuner_traverse}, {Py_tp_clear, tuner_clear},
    {Py_tp_repr, represent},          {Py_tp_methods, methods},
    {Py_tp_getset, attributes},       {0, NULL},
};

static PyType_Spec spec = {
    .name = "flyball.Tuner",
    .basicsize = sizeof(struct tuner),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int tuner_add(PyObject *module)
{
    return tuner_report_add(module) < 0 || type_add(module, &spec) == NULL ? -1 : 0;
}
