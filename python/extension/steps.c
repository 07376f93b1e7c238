/* SPDX-License-Identifier: Apache-2.0 */
/* A loader whose batches are steps, and one pass over it, which is an epoch. */
#include "steps.h"

#include <stdbool.h>

struct steps {
    PyObject_HEAD PyObject *owner, *loader;
    const struct steps_hooks *hooks;
};

enum pass_state { PASS_NEW, PASS_OPEN, PASS_ENDED };

struct pass {
    PyObject_HEAD struct steps *steps;
    PyObject *iterator; /* NULL once it has ended */
    enum pass_state state;
};

static PyTypeObject *steps_type, *pass_type;

PyObject *steps_new(PyObject *owner, const struct steps_hooks *hooks, PyObject *loader)
{
    struct steps *self = (struct steps *)type_make(steps_type);

    if (self == NULL)
        return NULL;
    Py_INCREF(owner);
    self->owner = owner;
    Py_INCREF(loader);
    self->loader = loader;
    self->hooks = hooks;
    return (PyObject *)self;
}

static PyObject *steps_iter(PyObject *object)
{
    struct steps *self = (struct steps *)object;
    struct pass *pass = (struct pass *)type_make(pass_type);

    if (pass == NULL)
        return NULL;
    Py_INCREF(object);
    pass->steps = self;
    pass->iterator = PyObject_GetIter(self->loader);
    if (pass->iterator == NULL)
        Py_CLEAR(pass);
    return (PyObject *)pass;
}

static Py_ssize_t steps_length(PyObject *object)
{
    return PyObject_Size(((struct steps *)object)->loader);
}

/* Ends the epoch, whatever exception is on its way; that one goes before its own. 0 or -1. */
static int pass_end(struct pass *self)
{
    PyObject *type, *value, *trace;
    bool open = self->state == PASS_OPEN;
    int code;

    self->state = PASS_ENDED;
    if (!open)
        return 0;
    PyErr_Fetch(&type, &value, &trace);
    code = self->steps->hooks->epoch_end(self->steps->owner);
    if (code < 0 && type != NULL)
        PyErr_Clear();
    if (code == 0 || type != NULL)
        PyErr_Restore(type, value, trace);
    return code;
}

static int pass_step(struct pass *self)
{
    const struct steps_hooks *hooks = self->steps->hooks;

    if (self->state == PASS_NEW) {
        if (hooks->epoch_begin(self->steps->owner) < 0)
            return -1;
        self->state = PASS_OPEN;
    }
    return hooks->step_begin(self->steps->owner);
}

static PyObject *pass_next(PyObject *object)
{
    struct pass *self = (struct pass *)object;
    PyObject *batch = self->iterator != NULL ? PyIter_Next(self->iterator) : NULL;

    if (batch != NULL && pass_step(self) == 0)
        return batch;
    Py_XDECREF(batch);
    Py_CLEAR(self->iterator);
    (void)pass_end(self);
    return NULL;
}

static int steps_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct steps *self = (struct steps *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owner);
    Py_VISIT(self->loader);
    return 0;
}

static int steps_clear(PyObject *object)
{
    struct steps *self = (struct steps *)object;

    Py_CLEAR(self->owner);
    Py_CLEAR(self->loader);
    return 0;
}

static void steps_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    (void)steps_clear(object);
    type_free(object);
}

static int pass_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct pass *self = (struct pass *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->steps);
    Py_VISIT(self->iterator);
    return 0;
}

/* A break drops the pass. */
static void pass_finalize(PyObject *object)
{
    struct pass *self = (struct pass *)object;
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (self->steps != NULL && self->steps->owner != NULL && pass_end(self) < 0)
        PyErr_WriteUnraisable(self->steps->owner);
    PyErr_Restore(type, value, trace);
}

static int pass_clear(PyObject *object)
{
    struct pass *self = (struct pass *)object;

    Py_CLEAR(self->steps);
    Py_CLEAR(self->iterator);
    return 0;
}

static void pass_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    pass_finalize(object);
    (void)pass_clear(object);
    type_free(object);
}

static char steps_doc[] = "The batches of a loader, each of which begins a step; a tuner's or a session's "
                          "method steps makes it.\n\n"
                          "Each iteration over it is an epoch. It has the loader's length.";

static PyType_Slot steps_slots[] = {
    {Py_tp_doc, steps_doc},         {Py_tp_new, type_not_made_by_hand},
    {Py_tp_dealloc, steps_dealloc}, {Py_tp_traverse, steps_traverse},
    {Py_tp_clear, steps_clear},     {Py_tp_iter, steps_iter},
    {Py_mp_length, steps_length},   {0, NULL},
};

static PyType_Spec steps_spec = {
    .name = "flyball.Steps",
    .basicsize = sizeof(struct steps),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = steps_slots,
};

static PyType_Slot pass_slots[] = {
    {Py_tp_new, type_not_made_by_hand}, {Py_tp_dealloc, pass_dealloc},
    {Py_tp_finalize, pass_finalize},    {Py_tp_traverse, pass_traverse},
    {Py_tp_clear, pass_clear},          {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, pass_next},        {0, NULL},
};

static PyType_Spec pass_spec = {
    .name = "flyball._flyball.Pass",
    .basicsize = sizeof(struct pass),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = pass_slots,
};

int steps_add(PyObject *module)
{
    steps_type = type_add(module, &steps_spec);
    pass_type = (PyTypeObject *)PyType_FromSpec(&pass_spec);
    return steps_type != NULL && pass_type != NULL ? 0 : -1;
}
