/* SPDX-License-Identifier: Apache-2.0 */
/* What a session knows: its attributes. Of one that is closed, what it knew then. */
#include "session.h"

#include <limits.h>

#include "session_status.h"
#include "tuner.h"

static struct fly_session_status status_of(struct session *self)
{
    struct fly_session_status status = {.size = sizeof status};

    if (!session_ready(self))
        return self->last;
    (void)fly_session_status(self->session, &status);
    return status;
}

static PyObject *get_status(PyObject *object, void *unused)
{
    struct fly_session_status status = status_of((struct session *)object);

    (void)unused;
    return session_status_new(&status);
}

static PyObject *get_batch_size(PyObject *object, void *unused)
{
    struct session *self = (struct session *)object;

    (void)unused;
    return PyLong_FromUnsignedLong(session_ready(self) ? fly_session_batch_size(self->session)
                                                       : self->last.batch_size);
}

static PyObject *get_local_batch_size(PyObject *object, void *unused)
{
    struct session *self = (struct session *)object;

    (void)unused;
    return PyLong_FromUnsignedLong(session_ready(self) ? fly_session_local_batch_size(self->session)
                                                       : self->last.local_batch_size);
}

static PyObject *get_replicas(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((struct session *)object)->replicas);
}

static PyObject *get_over(PyObject *object, void *unused)
{
    struct session *self = (struct session *)object;

    (void)unused;
    return PyBool_FromLong(session_ready(self) ? fly_session_is_over(self->session) : self->over);
}

static PyObject *get_exit_status(PyObject *object, void *unused)
{
    struct session *self = (struct session *)object;

    (void)unused;
    return PyLong_FromLong(session_ready(self) ? fly_session_exit_status(self->session) : self->exit_status);
}

static PyObject *get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct session *)object)->session == NULL);
}

/* The path of this try's directory, which it makes. */
static PyObject *get_directory(PyObject *object, void *unused)
{
    struct session *self = (struct session *)object;
    char path[PATH_MAX] = "";
    struct fly_error error;
    int code;

    (void)unused;
    if (!session_ready(self))
        return error_raise_text(FLY_ESTATE, "the session is closed; make another one");
    session_enter(self);
    Py_BEGIN_ALLOW_THREADS
    code = fly_session_directory(self->session, path, sizeof path, &error);
    Py_END_ALLOW_THREADS
    session_leave(self);
    return code < 0 ? error_raise(code, &error) : PyUnicode_DecodeFSDefault(path);
}

static PyObject *get_carbon(PyObject *object, void *unused)
{
    struct session *self = (struct session *)object;

    (void)unused;
    if (session_ready(self))
        session_remember(self);
    return self->carbon.size > 0 ? carbon_report(&self->carbon) : none();
}

PyGetSetDef session_attributes[] = {
    {"batch_size", get_batch_size, NULL, "To train with now: samples per optimizer step, of all ranks.",
     NULL},
    {"local_batch_size", get_local_batch_size, NULL, "The same, of this rank.", NULL},
    {"replicas", get_replicas, NULL, "Ranks that train with samples of their own.", NULL},
    {"directory", get_directory, NULL,
     "Path of this try's own directory, which is made: for checkpoints, which tries must not share. New for\n"
     "each try, and the same for another attempt of one, as after a requeue. Raises Error (FLY_EWRITE) when "
     "it\ncannot be made, StateError when the session is closed.",
     NULL},
    {"status", get_status, NULL, "How it stands now: a SessionStatus.", NULL},
    {"carbon", get_carbon, NULL,
     "How following the grid goes: a CarbonReport, or None where it is not followed.", NULL},
    {"is_over", get_over, NULL, "Whether this training is over: an answer ended it, or it failed.", NULL},
    {"exit_status", get_exit_status, NULL,
     "0, or 75 if whoever started the program should start it again, for another try.", NULL},
    {"closed", get_closed, NULL, "Whether it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
