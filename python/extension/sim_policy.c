/* SPDX-License-Identifier: Apache-2.0 */
/* Batch-size policies that are objects of Python's, as tables for the simulator. */
#include "sim.h"

#include "kept.h"

/* One history of one job. */
struct own_state {
    struct sim_own *own;
    const struct fly_batch_job *job;
    PyObject *object;
    bool answered; /* the question of this trial was asked before */
    uint64_t trial;
    int answer;
    struct fly_batch_decision decision;
};

void sim_keep(struct sim_run *run)
{
    if (run->kept == NULL)
        kept_take(&run->kept);
    else
        PyErr_Clear();
}

/* The power limits of a batch size. */
static PyObject *limits_of(const struct fly_batch_choice *batch)
{
    PyObject *limits = PyTuple_New((Py_ssize_t)batch->limit_count);

    for (size_t i = 0; i < batch->limit_count && limits != NULL; i++) {
        PyObject *limit = PyFloat_FromDouble(batch->limits_w[i]);

        if (limit == NULL || PyTuple_SetItem(limits, (Py_ssize_t)i, limit) < 0)
            Py_CLEAR(limits);
    }
    return limits;
}

static PyObject *choices_of(const struct fly_batch_job *job)
{
    PyObject *choices = PyTuple_New((Py_ssize_t)job->batch_count);

    for (size_t i = 0; i < job->batch_count && choices != NULL; i++) {
        PyObject *choice = Py_BuildValue("(IN)", job->batches[i].size, limits_of(&job->batches[i]));

        if (choice == NULL || PyTuple_SetItem(choices, (Py_ssize_t)i, choice) < 0)
            Py_CLEAR(choices);
    }
    return choices;
}

static PyObject *make_object(const struct sim_own *own, const struct fly_batch_job *job)
{
    return PyObject_CallFunction(own->create, "sNnIdddIIdN", job->name, choices_of(job),
                                 (Py_ssize_t)job->default_batch, job->max_epochs, job->max_power_w, job->eta,
                                 job->beta, job->window, job->seed, job->objective.max_slowdown,
                                 PyBool_FromLong(job->overlapping));
}

static int own_create(const struct fly_batch_job *job, void **out_state, const char **out_reason)
{
    struct sim_own *own = job->data;
    PyGILState_STATE gil = PyGILState_Ensure();
    struct own_state *state = PyMem_Calloc(1, sizeof *state);

    *out_reason = "it raised an exception";
    if (state == NULL)
        PyErr_NoMemory();
    else {
        *state = (struct own_state){.own = own, .job = job, .object = make_object(own, job)};
        if (state->object == NULL) {
            PyMem_Free(state);
            state = NULL;
        }
    }
    if (state == NULL)
        sim_keep(own->run);
    *out_state = state;
    PyGILState_Release(gil);
    return state != NULL ? 0 : -1;
}

static void own_destroy(void *opaque)
{
    struct own_state *state = opaque;
    PyGILState_STATE gil = PyGILState_Ensure();

    Py_CLEAR(state->object);
    PyMem_Free(state);
    PyGILState_Release(gil);
}

/* Calls a method that returns nothing; after an exception none is called any more. Takes the arguments. */
static void tell(struct own_state *state, const char *method, PyObject *arguments)
{
    struct sim_run *run = state->own->run;
    PyObject *function = NULL, *result = NULL;

    if (run->kept == NULL && arguments != NULL)
        function = PyObject_GetAttrString(state->object, method);
    if (function != NULL)
        result = PyObject_CallObject(function, arguments);
    if (result == NULL && PyErr_Occurred() != NULL)
        sim_keep(run);
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(arguments);
}

static PyObject *points_of(const struct fly_profile *profile)
{
    PyObject *points = PyTuple_New((Py_ssize_t)profile->count);

    for (size_t i = 0; i < profile->count && points != NULL; i++) {
        PyObject *point = Py_BuildValue("(ddd)", profile->points[i].limit_w, profile->points[i].power_w,
                                        profile->points[i].time_s);

        if (point == NULL || PyTuple_SetItem(points, (Py_ssize_t)i, point) < 0)
            Py_CLEAR(points);
    }
    return points;
}

static void own_measure(void *opaque, const struct fly_profile *profile)
{
    struct own_state *state = opaque;
    PyGILState_STATE gil = PyGILState_Ensure();

    tell(state, "measure",
         Py_BuildValue("(nNndd)", (Py_ssize_t)profile->batch, points_of(profile), (Py_ssize_t)profile->chosen,
                       profile->energy_j, profile->time_s));
    PyGILState_Release(gil);
}

static void own_observe(void *opaque, const struct fly_trial *trial)
{
    struct own_state *state = opaque;
    PyGILState_STATE gil = PyGILState_Ensure();

    tell(state, "observe",
         Py_BuildValue("(KIKndiddddi)", (unsigned long long)trial->recurrence, trial->try_number,
                       (unsigned long long)trial->trial, (Py_ssize_t)trial->batch, trial->limit_w,
                       (int)trial->outcome, trial->energy_j, trial->time_s, trial->cost_j, trial->epochs,
                       trial->crashed != 0));
    PyGILState_Release(gil);
}

static void own_begin(void *opaque, size_t batch)
{
    PyGILState_STATE gil = PyGILState_Ensure();

    tell(opaque, "begin", Py_BuildValue("(n)", (Py_ssize_t)batch));
    PyGILState_Release(gil);
}

static void own_bar(void *opaque, size_t batch, enum fly_bar why)
{
    PyGILState_STATE gil = PyGILState_Ensure();

    (void)why;
    tell(opaque, "bar", Py_BuildValue("(n)", (Py_ssize_t)batch));
    PyGILState_Release(gil);
}

/* Asks the object: (batch, limit) or (batch, None) is an answer, None is that nothing is left. */
static int ask(struct own_state *state, const struct fly_batch_question *question)
{
    PyObject *answer = PyObject_CallMethod(
        state->object, "propose", "KIKK", (unsigned long long)question->recurrence, question->try_number,
        (unsigned long long)question->trial, (unsigned long long)question->in_flight);
    PyObject *limit = NULL;
    Py_ssize_t batch = 0;
    int result = -1;

    state->decision = (struct fly_batch_decision){.limit_rule = FLY_LIMIT_PROFILED};
    if (answer == Py_None)
        result = FLY_NOTHING_LEFT;
    else if (answer != NULL && PyArg_ParseTuple(answer, "nO", &batch, &limit)) {
        state->decision.batch = (size_t)batch;
        if (limit != Py_None) {
            state->decision.limit_rule = FLY_LIMIT_FIXED;
            state->decision.limit_w = PyFloat_AsDouble(limit);
        }
        result = PyErr_Occurred() != NULL ? -1 : 0;
    }
    if (PyErr_Occurred() != NULL)
        sim_keep(state->own->run);
    Py_XDECREF(answer);
    return result;
}

/* The simulator asks everything twice; Python is asked once, since an object may draw from what changes. */
static int own_propose(const void *opaque, const struct fly_batch_question *question,
                       struct fly_batch_decision *out_decision)
{
    struct own_state *state;
    PyGILState_STATE gil;

    memcpy(&state, &opaque, sizeof state); /* it is the object that is not changed, but for what it keeps */
    if (!state->answered || state->trial != question->trial) {
        gil = PyGILState_Ensure();
        state->answer = state->own->run->kept == NULL ? ask(state, question) : -1;
        state->answered = true;
        state->trial = question->trial;
        PyGILState_Release(gil);
    }
    *out_decision = state->decision;
    return state->own->run->kept == NULL ? state->answer : -1;
}

static uint32_t own_cap(const void *opaque, const struct fly_cap_question *question)
{
    const struct own_state *state = opaque;
    PyGILState_STATE gil = PyGILState_Ensure();
    struct sim_run *run = state->own->run;
    PyObject *answer = NULL;
    unsigned long epochs = UINT32_MAX; /* more than a job may run: a failure */

    if (run->kept == NULL)
        answer = PyObject_CallMethod(state->object, "cap", "ndd", (Py_ssize_t)question->batch,
                                     question->epoch_energy_j, question->epoch_time_s);
    if (answer != NULL)
        epochs = PyLong_AsUnsignedLong(answer);
    if (PyErr_Occurred() != NULL)
        sim_keep(run);
    Py_XDECREF(answer);
    epochs = run->kept == NULL && epochs <= state->job->max_epochs ? epochs : UINT32_MAX;
    PyGILState_Release(gil);
    return (uint32_t)epochs;
}

void sim_own_init(struct sim_own *own, struct sim_run *run, const char *name, uint32_t version,
                  PyObject *create)
{
    *own = (struct sim_own){
        .table = {.abi = FLY_PLUGIN_ABI,
                  .size = sizeof own->table,
                  .name = name,
                  .version = version,
                  .create = own_create,
                  .destroy = own_destroy,
                  .observe = own_observe,
                  .propose = own_propose,
                  .begin = own_begin,
                  .measure = own_measure,
                  .bar = own_bar,
                  .cap = own_cap},
        .create = create,
        .run = run,
    };
}
