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

    self->closed = true;
    if (tuner != NULL) {
        self->report = tuner_report(tuner);
        self->points = tuner_points(tuner);
        self->carbon = tuner_carbon(tuner);
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
     "close($self, /)\n--\n\nPuts the limit of the start back. report, points and carbon stay. May be called "
     "again."},
    {"__enter__", tuner_with, METH_NOARGS, "__enter__($self, /)\n--\n\n"},
    {"__exit__", tuner_exit, METH_VARARGS, "Closes the tuner."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"state", get_state, NULL,
     "'waiting' for the first step, 'searching', 'checking', 'settled', 'stopped' or 'closed'.", NULL},
    {"report", get_report, NULL, "A TunerReport. Raises StateError before the first step.", NULL},
    {"points", get_points, NULL,
     "A TunerPoint for each limit, highest first, and behind them for each ceiling. Raises as report.", NULL},
    {"carbon", get_carbon, NULL, "A CarbonReport; None where the grid is not followed. Raises as report.",
     NULL},
    {"monitor", get_monitor, NULL, "The Monitor that it measures with.", NULL},
    {"closed", get_closed, NULL, "Whether it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char doc[] =
    "Tuner(monitor=None, *, objective='energy', eta=None, max_slowdown='auto', knob='power', limits_w=None,\n"
    "ceilings_mhz=None, gpus=None, synchronize=None, job_name=None, batch_size=0, profile_directory=None,\n"
    "profile_file=None, gpu_model=None, driver=None, max_power_w=0, energy_tolerance=0, window_max_s=0,\n"
    "wait_steps=0, warmup_steps=0, profile_steps=0, check_every_steps=0, remeasure_distance_steps=0,\n"
    "carbon=None, rank=None, all_reduce=None, turner=None, clock_turner=None, give_back_s=None)\n--\n\n"
    "Finds the best power limit while training runs, and keeps it; puts the old one back at the end.\n\n"
    "    with flyball.Tuner(max_slowdown='3%') as tuner:\n"
    "        for epoch in range(epochs):\n"
    "            for batch in tuner.steps(loader):\n"
    "                train(batch)\n"
    "            evaluate()\n"
    "    print(tuner.report)\n\n"
    "monitor      a Monitor of this rank's GPUs, closed after the tuner; None: one of its own, for which\n"
    "gpus         and synchronize are as Monitor has them\n"
    "objective    'energy', 'time', 'cost:ETA', 'lowest-limit', 'carbon' or 'money'\n"
    "eta          0 .. 1, in place of 'cost:ETA': 1 is energy alone\n"
    "max_slowdown of a step, against the highest limit: '3%', '1.03x' or 0.03; 'none' or None: no\n"
    "             bound; 'auto': 5 %, but no bound for 'cost' and 'time'\n"
    "knob         'power', 'clock', 'both', 'auto' (the limit, or the clock where that may not be set), "
    "'profile'\n"
    "limits_w     W: the limits to try; None: all in steps of 25 W. ceilings_mhz, MHz: likewise\n"
    "job_name, batch_size, gpu_model, driver   what a saved profile is known by\n"
    "profile_directory   where profiles are saved and reused; None: nowhere. profile_file: one to reuse\n"
    "max_power_w  W, for cost; 0: the highest limit of all GPUs\n"
    "energy_tolerance    how certain energies are, a fraction; 0: 0.04. window_max_s: s, 0: 10\n"
    "wait_steps (0: 1), warmup_steps (0: until a limit has settled), profile_steps in a window (0: as the\n"
    "             choice needs), check_every_steps (0: 1000), remeasure_distance_steps (0: 10000)\n"
    "carbon       a dict to follow the grid: source, price, per_g, per_money, per_kwh, host_w (W), pue,\n"
    "             finish_by_unix_s (s), steps, directory\n"
    "rank, all_reduce   of several ranks: all_reduce(sums, maxima) joins them and changes both lists in\n"
    "             place; None: from torch.distributed at the first step, else from the environment\n"
    "turner       your own way to set limits: an object with range(), which gives (lowest, highest) or "
    "(lowest,\n"
    "             highest, step) in W, set(limit_w) and standing(), the limit in force. You put limits back "
    "then\n"
    "             when the process is killed. clock_turner: the same of ceilings in MHz, for 'both' and "
    "'auto'\n"
    "give_back_s  s without a step after which the limit of the start is put back, until the next step; 0: "
    "never;\n"
    "             None: 30, or 20 steps where these take longer\n\n"
    "Where limits may not be set, nothing is, and the report says why. Raises UsageError, some of them at\n"
    "the first step. What all_reduce and synchronize raise goes to sys.unraisablehook, and ends tuning in\n"
    "the case of all_reduce; a KeyboardInterrupt comes out of the step. One thread calls the hooks; any may\n"
    "read. In a process that was forked from this one the hooks do nothing. It cannot be pickled.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_new, tuner_new},
    {Py_tp_dealloc, tuner_dealloc},
    {Py_tp_finalize, tuner_finalize},
    {Py_tp_traverse, tuner_traverse},
    {Py_tp_clear, tuner_clear},
    {Py_tp_repr, represent},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
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
