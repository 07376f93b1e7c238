/* SPDX-License-Identifier: Apache-2.0 */
/* The C half of flyball.Session: the calls, for any thread. flyball/session.py adds loops over them. */
#include "session.h"

#include <unistd.h>

#include "arguments.h"
#include "kept.h"
#include "session_options.h"
#include "session_status.h"
#include "steps.h"
#include "table.h"

static const char *const end_names[] = {
    [FLY_SESSION_FINISHED] = "finished",
    [FLY_SESSION_CRASHED] = "crashed",
    [FLY_SESSION_INTERRUPTED] = "interrupted",
};
enum { ENDS = sizeof end_names / sizeof end_names[0] };

/* After a call into the library: what functions of the program's raised in it. 0 or -1. */
static int check_raised(struct session *self)
{
    int code = all_reduce_check(&self->all_reduce);

    if (self->monitor == NULL)
        return code;
    return kept_check(&self->monitor->raised, self->monitor->synchronize) < 0 ? -1 : code;
}

/* ---- open and close ---- */

/* Takes the monitor, whose meter is the session's then; None is none. 0, or -1 with an exception. */
static int take_monitor(struct session *self, PyObject *monitor, struct fly_session_options *options)
{
    if (monitor == Py_None)
        return 0;
    if (!PyObject_TypeCheck(monitor, extension_types.monitor)) {
        PyErr_SetString(PyExc_TypeError, "monitor is a flyball.Monitor");
        return -1;
    }
    if (monitor_hold((struct monitor *)monitor) < 0)
        return -1;
    Py_INCREF(monitor);
    self->monitor = (struct monitor *)monitor;
    self->holds_monitor = true;
    options->meter = self->monitor->meter;
    return 0;
}

static void release_monitor(struct session *self)
{
    if (self->holds_monitor)
        monitor_release(self->monitor);
    self->holds_monitor = false;
}

/* Opens with the options of a dict, a function that joins the ranks, and a monitor. */
static PyObject *session_open(PyObject *object, PyObject *arguments)
{
    struct session *self = (struct session *)object;
    struct session_options options = {.held = NULL};
    struct fly_session *opened = NULL;
    PyObject *dict, *all_reduce, *monitor;
    struct fly_error error;
    int code;

    if (!PyArg_ParseTuple(arguments, "O!OO:_open", &PyDict_Type, &dict, &all_reduce, &monitor))
        return NULL;
    if (self->opened)
        return error_raise_text(FLY_ESTATE, "the session was opened already; make another one");
    if (session_options_read(&options, dict) < 0 || all_reduce_take(&self->all_reduce, all_reduce) < 0 ||
        take_monitor(self, monitor, &options.session) < 0) {
        session_options_free(&options);
        return NULL;
    }
    if (self->all_reduce.callable != NULL)
        options.session.all_reduce = all_reduce_call;
    options.session.all_reduce_data = &self->all_reduce;
    self->opened = true;
    session_enter(self);
    Py_BEGIN_ALLOW_THREADS
    code = fly_session_open(&options.session, &opened, &error);
    Py_END_ALLOW_THREADS
    self->session = opened;
    self->default_batch_size = options.session.default_batch_size;
    self->replicas = options.session.replicas > 0     ? options.session.replicas
                     : options.session.world_size > 0 ? options.session.world_size
                                                      : 1;
    session_leave(self);
    session_options_free(&options);
    if (code < 0)
        release_monitor(self);
    if (code < 0)
        return all_reduce_error(&self->all_reduce, code, &error);
    return check_raised(self) == 0 ? none() : NULL;
}

static void close_as(struct session *self, enum fly_session_end end)
{
    struct fly_session *session = self->session;

    session_remember(self);
    session_enter(self);
    self->session = NULL;
    Py_BEGIN_ALLOW_THREADS
    fly_session_close(session, end);
    Py_END_ALLOW_THREADS
    session_leave(self);
    release_monitor(self);
}

static int end_from(PyObject *name)
{
    for (int i = 0; i < ENDS; i++) {
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, end_names[i]) == 0)
            return i;
    }
    error_raise_text(FLY_EUSAGE, "session: how it ended: expected 'finished', 'crashed' or 'interrupted'");
    return -1;
}

static PyObject *session_close(PyObject *object, PyObject *arguments)
{
    struct session *self = (struct session *)object;
    PyObject *name = NULL;
    int end = FLY_SESSION_FINISHED;

    if (!PyArg_ParseTuple(arguments, "|O:close", &name))
        return NULL;
    if (name != NULL && (end = end_from(name)) < 0)
        return NULL;
    if (self->closing || session_is_inside(self))
        return none();
    self->closing = true; /* from now on nobody else comes in */
    while (self->busy)
        session_wait(self);
    if (self->session != NULL)
        close_as(self, (enum fly_session_end)end);
    return check_raised(self) == 0 ? none() : NULL;
}

/* ---- what a training calls ---- */

/* Calls that wait for nothing. */
static PyObject *call_at_once(PyObject *object, void (*call)(struct fly_session *session))
{
    struct session *self = (struct session *)object;

    if (session_ready(self))
        call(self->session);
    return none();
}

/* Calls that may wait for the log, the disk, the driver or the other ranks. */
static PyObject *call_waiting(PyObject *object, void (*call)(struct fly_session *session))
{
    struct session *self = (struct session *)object;

    if (!session_ready(self))
        return none();
    session_enter(self);
    Py_BEGIN_ALLOW_THREADS
    call(self->session);
    Py_END_ALLOW_THREADS
    session_leave(self);
    return check_raised(self) == 0 ? none() : NULL;
}

static PyObject *session_epoch_begin(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_waiting(self, fly_session_epoch_begin);
}

static PyObject *session_evaluation_begin(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_waiting(self, fly_session_evaluation_begin);
}

static PyObject *session_evaluation_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_waiting(self, fly_session_evaluation_end);
}

static PyObject *session_give_back(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_waiting(self, fly_session_give_back);
}

static PyObject *session_out_of_memory(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_waiting(self, fly_session_out_of_memory);
}

static PyObject *session_training_ended(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_at_once(self, fly_session_training_ended);
}

/* A settled step is one call without a lock. 1: no further step; 0, or -1 with an exception. */
static int step_begin(PyObject *object)
{
    struct session *self = (struct session *)object;
    enum fly_answer answer = FLY_GO_ON;

    if (!session_ready(self))
        return self->session == NULL && self->over;
    if (!fly_session_step_waits(self->session)) {
        answer = fly_session_step_begin(self->session);
    } else {
        session_enter(self);
        Py_BEGIN_ALLOW_THREADS
        answer = fly_session_step_begin(self->session);
        Py_END_ALLOW_THREADS
        session_leave(self);
        if (check_raised(self) < 0)
            return -1;
    }
    return answer == FLY_STOP;
}

static PyObject *session_step_begin(PyObject *self, PyObject *unused)
{
    int stop = step_begin(self);

    (void)unused;
    return stop < 0 ? NULL : PyBool_FromLong(!stop);
}

static int done(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static int epoch_begin(PyObject *self)
{
    return done(session_epoch_begin(self, NULL));
}

static int epoch_end(PyObject *self)
{
    return done(session_evaluation_begin(self, NULL));
}

/* The steps of a loader; each pass over it is an epoch. */
static PyObject *session_steps(PyObject *self, PyObject *loader)
{
    static const struct steps_hooks hooks = {epoch_begin, step_begin, epoch_end};

    return steps_new(self, &hooks, loader);
}

static PyObject *session_report(PyObject *object, PyObject *metric)
{
    struct session *self = (struct session *)object;
    double value = PyFloat_AsDouble(metric);
    enum fly_answer answer;

    if (PyErr_Occurred() != NULL)
        return NULL;
    if (!session_ready(self))
        return table_text(fly_answer_name(self->last.answer));
    session_enter(self);
    Py_BEGIN_ALLOW_THREADS
    answer = fly_session_report(self->session, value);
    Py_END_ALLOW_THREADS
    session_leave(self);
    return check_raised(self) == 0 ? table_text(fly_answer_name(answer)) : NULL;
}

static PyObject *session_try_again(PyObject *object, PyObject *unused)
{
    struct session *self = (struct session *)object;
    bool again;

    (void)unused;
    if (!session_ready(self))
        Py_RETURN_FALSE;
    session_enter(self);
    Py_BEGIN_ALLOW_THREADS
    again = fly_session_try_again(self->session);
    Py_END_ALLOW_THREADS
    session_leave(self);
    return check_raised(self) == 0 ? PyBool_FromLong(again) : NULL;
}

static PyObject *session_scaled(PyObject *object, PyObject *arguments)
{
    struct session *self = (struct session *)object;
    enum fly_scaling scaling;
    const char *optimizer;
    struct fly_error error;
    double rate;
    int code;

    if (!PyArg_ParseTuple(arguments, "ds:_scaled", &rate, &optimizer))
        return NULL;
    code = fly_scaling_parse(optimizer, &scaling, &error);
    if (code < 0)
        return error_raise(code, &error);
    return PyFloat_FromDouble(fly_learning_rate(
        rate, self->default_batch_size,
        session_ready(self) ? fly_session_batch_size(self->session) : self->last.batch_size, scaling));
}

static PyObject *session_split(PyObject *object, PyObject *arguments)
{
    struct session *self = (struct session *)object;
    PyObject *most = NULL, *given = Py_None;
    uint32_t max_micro = 0, replicas = self->replicas;
    struct fly_batch_split split;
    struct fly_error error;
    int code;

    if (!PyArg_ParseTuple(arguments, "OO:_split", &most, &given) || !argument_u32(most, &max_micro) ||
        !argument_u32(given, &replicas))
        return NULL;
    code =
        fly_batch_split(session_ready(self) ? fly_session_batch_size(self->session) : self->last.batch_size,
                        replicas, max_micro, &split, &error);
    if (code < 0)
        return error_raise(code, &error);
    return Py_BuildValue("II", (unsigned)split.micro_batch_size, (unsigned)split.accumulation);
}

static PyObject *session_resumed(PyObject *object, PyObject *arguments)
{
    struct session *self = (struct session *)object;
    PyObject *done = NULL, *given = Py_None;
    uint32_t epochs = 0, batch_size = 0;
    struct fly_error error;
    int code = 0;

    if (!PyArg_ParseTuple(arguments, "OO:_resumed", &done, &given) || !argument_u32(done, &epochs) ||
        !argument_u32(given, &batch_size))
        return NULL;
    if (!session_ready(self))
        return none();
    if (given == Py_None)
        fly_session_resumed(self->session, epochs);
    else
        code = fly_session_resumed_from(self->session, epochs, batch_size, &error);
    return code < 0 ? error_raise(code, &error) : none();
}

static PyObject *session_trains_with(PyObject *object, PyObject *given)
{
    struct session *self = (struct session *)object;
    uint32_t batch_size = 0;

    if (!argument_u32(given, &batch_size))
        return NULL;
    if (!session_ready(self))
        return none();
    session_enter(self);
    Py_BEGIN_ALLOW_THREADS
    fly_session_trains_with(self->session, batch_size);
    Py_END_ALLOW_THREADS
    session_leave(self);
    return check_raised(self) == 0 ? none() : NULL;
}

static PyObject *is_out_of_memory(PyObject *none_of_a_static_method, PyObject *arguments)
{
    const char *exception, *text;

    (void)none_of_a_static_method;
    if (!PyArg_ParseTuple(arguments, "ss:_is_out_of_memory", &exception, &text))
        return NULL;
    return PyBool_FromLong(fly_out_of_memory(exception, text));
}

/* ---- the type ---- */

static PyObject *session_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    struct session *self = (struct session *)type_make(type);

    (void)arguments;
    (void)keywords;
    if (self == NULL)
        return NULL;
    self->process = getpid();
    self->last = (struct fly_session_status){
        .size = sizeof self->last, .limit_w = Py_NAN, .energy_j = Py_NAN, .time_s = Py_NAN};
    self->lock = PyThread_allocate_lock();
    if (self->lock != NULL)
        return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static int session_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)((struct session *)object)->monitor);
    return all_reduce_traverse(&((struct session *)object)->all_reduce, visit, arg);
}

/* One that nobody closed: the log hears what it knows, and may see another attempt. */
static int session_clear(PyObject *object)
{
    struct session *self = (struct session *)object;
    struct monitor *monitor = self->monitor;
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (self->session != NULL && !self->busy)
        close_as(self, FLY_SESSION_INTERRUPTED);
    if (self->session == NULL) {
        self->monitor = NULL;
        Py_XDECREF((PyObject *)monitor);
    }
    PyErr_Restore(type, value, trace);
    all_reduce_clear(&self->all_reduce);
    return 0;
}

static void session_dealloc(PyObject *object)
{
    struct session *self = (struct session *)object;

    PyObject_GC_UnTrack(object);
    session_clear(object);
    if (self->lock != NULL && !self->busy)
        PyThread_free_lock(self->lock);
    type_free(object);
}

static PyMethodDef methods[] = {
    {"_open", session_open, METH_VARARGS, NULL},
    {"_out_of_memory", session_out_of_memory, METH_NOARGS, NULL},
    {"_steps", session_steps, METH_O, NULL},
    {"_report", session_report, METH_O, NULL},
    {"_split", session_split, METH_VARARGS, NULL},
    {"_resumed", session_resumed, METH_VARARGS, NULL},
    {"_scaled", session_scaled, METH_VARARGS, NULL},
    {"_is_out_of_memory", is_out_of_memory, METH_VARARGS | METH_STATIC, NULL},
    {"epoch_begin", session_epoch_begin, METH_NOARGS,
     "epoch_begin($self, /)\n--\n\nCall it before the steps of an epoch, where `epochs` does not."},
    {"step_begin", session_step_begin, METH_NOARGS,
     "step_begin($self, /)\n--\n\nCall it before each optimizer step, where `steps` does not. Returns False "
     "when this\ntraining must stop: then report nothing."},
    {"evaluation_begin", session_evaluation_begin, METH_NOARGS,
     "evaluation_begin($self, /)\n--\n\nCall it when the steps of an epoch are done, where `evaluation` does "
     "not."},
    {"evaluation_end", session_evaluation_end, METH_NOARGS,
     "evaluation_end($self, /)\n--\n\nCall it after evaluation, where `evaluation` does not."},
    {"give_back", session_give_back, METH_NOARGS,
     "give_back($self, /)\n--\n\nPuts the limit of the start back now, until the next step: for a training "
     "that "
     "an exception\nhas ended, in a program that lives on."},
    {"trains_with", session_trains_with, METH_O,
     "trains_with($self, batch_size, /)\n--\n\nTells with which batch size of all ranks the program trains "
     "really. A smaller one than\n`batch_size` means that this did not fit: it is written down as out of "
     "memory."},
    {"training_ended", session_training_ended, METH_NOARGS,
     "training_ended($self, /)\n--\n\nThe program ends this training by itself, with or without its target. "
     "`epochs` calls it\nafter its `max`."},
    {"try_again", session_try_again, METH_NOARGS,
     "try_again($self, /)\n--\n\nBegins the next try if one is wanted and left, and returns whether it did. "
     "`attempts`\ncalls it. Collective over the ranks."},
    {"close", session_close, METH_VARARGS,
     "close($self, end='finished', /)\n--\n\nPuts the old limit back, and writes down how training ended if "
     "no answer ended it:\n'finished', 'crashed', or 'interrupted' if another attempt follows. Waits at most "
     "half a\nsecond for the log. May be called again."},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "What flyball.Session is made of.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_traverse, session_traverse},
    {Py_tp_clear, session_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, session_attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "flyball._Session",
    .basicsize = sizeof(struct session),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int session_add(PyObject *module)
{
    return type_add(module, &spec) != NULL && session_status_add(module) == 0 ? 0 : -1;
}
