/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a simulation, from a dict that flyball/sim.py has made. */
#include "sim.h"

#include <math.h>
#include <stddef.h>

#include "arguments.h"

enum option_kind {
    OPTION_TEXT,
    OPTION_PATH,
    OPTION_REAL,
    OPTION_U32,
    OPTION_U64,
    OPTION_FLAG,
    OPTION_NUMBER
};

#define KEY(name, kind)                                     \
    {                                                       \
#name, kind, offsetof(struct fly_sim_options, name) \
    }
static const struct option_key {
    const char *name;
    enum option_kind kind;
    size_t offset;
} keys[] = {
    KEY(traces, OPTION_PATH),        KEY(gpu_model, OPTION_TEXT),
    KEY(power_policy, OPTION_PATH),  KEY(beta, OPTION_REAL),
    KEY(window, OPTION_U32),         KEY(generator, OPTION_TEXT),
    KEY(guard, OPTION_TEXT),         KEY(recurrences, OPTION_U64),
    KEY(drift, OPTION_TEXT),         KEY(profile_window, OPTION_REAL),
    KEY(in_order, OPTION_FLAG),      KEY(overlapping, OPTION_FLAG),
    KEY(bootstrap, OPTION_NUMBER),   KEY(threads, OPTION_U32),
    KEY(transfer_from, OPTION_TEXT), KEY(transfer_recurrences, OPTION_U64),
};

/* Keeps the bytes of a text, and sets what points to it. None leaves NULL. */
static int keep_text(struct sim_run *run, PyObject *value, int (*convert)(PyObject *, void *),
                     const char **out_text)
{
    PyObject *bytes = NULL;
    int result = 0;

    if (!convert(value, &bytes))
        return -1;
    if (bytes != NULL && PyList_Append(run->owners, bytes) < 0)
        result = -1;
    *out_text = result == 0 && bytes != NULL ? PyBytes_AsString(bytes) : NULL;
    Py_XDECREF(bytes);
    return result;
}

/* Keeps numbers as an array of uint32_t. */
static int keep_counts(struct sim_run *run, PyObject *value, const uint32_t **out_counts, size_t *out_count)
{
    PyObject *bytes = NULL;
    int result = 0;

    if (!argument_counts(value, &bytes))
        return -1;
    if (bytes != NULL && PyList_Append(run->owners, bytes) < 0)
        result = -1;
    *out_counts = result == 0 ? (const uint32_t *)(const void *)argument_bytes(bytes) : NULL;
    *out_count = result == 0 ? argument_count(bytes, sizeof **out_counts) : 0;
    Py_XDECREF(bytes);
    return result;
}

static int read_value(struct sim_run *run, const struct option_key *key, PyObject *value)
{
    void *place = (char *)&run->options + key->offset;
    int truth;

    switch (key->kind) {
    case OPTION_TEXT:
        return keep_text(run, value, argument_text, place);
    case OPTION_PATH:
        return keep_text(run, value, argument_path, place);
    case OPTION_REAL:
        *(double *)place = PyFloat_AsDouble(value);
        return PyErr_Occurred() != NULL ? -1 : 0;
    case OPTION_U32:
        return argument_u32(value, place) ? 0 : -1;
    case OPTION_U64:
        return argument_u64(value, place) ? 0 : -1;
    case OPTION_FLAG:
        truth = PyObject_IsTrue(value);
        *(bool *)place = truth > 0;
        return truth < 0 ? -1 : 0;
    case OPTION_NUMBER:
        *(int *)place = (int)PyLong_AsLong(value);
        return PyErr_Occurred() != NULL ? -1 : 0;
    }
    Py_UNREACHABLE();
}

/* Borrowed; NULL for a key that is not there, or None. */
static PyObject *item_of(PyObject *dict, const char *name)
{
    PyObject *value = PyDict_GetItemString(dict, name);

    return value == Py_None ? NULL : value;
}

static int read_names(struct sim_run *run, PyObject *list, const char ***out_names, size_t *out_count)
{
    Py_ssize_t count = list != NULL ? PyList_Size(list) : 0;

    if (count <= 0)
        return count < 0 ? -1 : 0;
    *out_names = PyMem_Calloc((size_t)count, sizeof **out_names);
    if (*out_names == NULL)
        return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (keep_text(run, PyList_GetItem(list, i), argument_text, &(*out_names)[i]) < 0)
            return -1;
    }
    *out_count = (size_t)count;
    return 0;
}

/* (name, dataset, network, optimizer, target_metric, max_epochs, default_batch_size, batch_sizes, untold) */
static int read_described(struct sim_run *run, PyObject *tuple, struct fly_sim_job *job)
{
    PyObject *name, *dataset, *network, *optimizer, *sizes, *untold;

    *job = (struct fly_sim_job){.size = sizeof *job};
    if (!PyArg_ParseTuple(tuple, "OOOOdO&O&OO", &name, &dataset, &network, &optimizer, &job->target_metric,
                          argument_u32, &job->max_epochs, argument_u32, &job->default_batch_size, &sizes,
                          &untold))
        return -1;
    if (keep_text(run, name, argument_text, &job->name) < 0 ||
        keep_text(run, dataset, argument_text, &job->dataset) < 0 ||
        keep_text(run, network, argument_text, &job->network) < 0 ||
        keep_text(run, optimizer, argument_text, &job->optimizer) < 0 ||
        keep_text(run, untold, argument_text, &job->untold) < 0)
        return -1;
    return keep_counts(run, sizes, &job->batch_sizes, &job->batch_count);
}

static int read_all_described(struct sim_run *run, PyObject *list)
{
    Py_ssize_t count = list != NULL ? PyList_Size(list) : 0;

    if (count <= 0)
        return count < 0 ? -1 : 0;
    run->described = PyMem_Calloc((size_t)count, sizeof run->described[0]);
    if (run->described == NULL)
        return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_described(run, PyList_GetItem(list, i), &run->described[i]) < 0)
            return -1;
    }
    run->options.described = run->described;
    run->options.described_count = (size_t)count;
    return 0;
}

/* A name or path, or (name, version, create). */
static int read_policy(struct sim_run *run, PyObject *given, struct fly_sim_policy *policy,
                       struct sim_own *own)
{
    PyObject *name, *create;
    unsigned version;
    const char *text;

    if (!PyTuple_Check(given))
        return keep_text(run, given, argument_text, &policy->name);
    if (!PyArg_ParseTuple(given, "OIO", &name, &version, &create) ||
        keep_text(run, name, argument_text, &text) < 0)
        return -1;
    sim_own_init(own, run, text, version, create);
    policy->table = &own->table;
    policy->data = own;
    return 0;
}

static int read_policies(struct sim_run *run, PyObject *list)
{
    Py_ssize_t count = list != NULL ? PyList_Size(list) : 0;

    if (count <= 0)
        return count < 0 ? -1 : 0;
    run->policies = PyMem_Calloc((size_t)count, sizeof run->policies[0]);
    run->own = PyMem_Calloc((size_t)count, sizeof run->own[0]);
    if (run->policies == NULL || run->own == NULL)
        return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_policy(run, PyList_GetItem(list, i), &run->policies[i], &run->own[i]) < 0)
            return -1;
    }
    run->options.policies = run->policies;
    run->options.policy_count = (size_t)count;
    return 0;
}

/* (objective, eta, max_slowdown) */
static int read_objective(struct sim_run *run, PyObject *tuple)
{
    PyObject *objective, *eta, *max_slowdown;

    if (tuple == NULL)
        return 0;
    if (!PyArg_ParseTuple(tuple, "OOO", &objective, &eta, &max_slowdown) ||
        argument_objective(objective, eta, max_slowdown, &run->objective) < 0)
        return -1;
    if (run->objective.kind != FLY_OBJECTIVE_COST)
        run->objective.eta = 0.5; /* of the costs that are told, as the command has it */
    run->options.objective = &run->objective;
    return 0;
}

static int pass_progress(void *data, uint64_t done, uint64_t total)
{
    struct sim_run *run = data;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result = NULL;

    if (run->kept == NULL && PyErr_CheckSignals() == 0 && run->progress != NULL) {
        result =
            PyObject_CallFunction(run->progress, "KK", (unsigned long long)done, (unsigned long long)total);
        Py_XDECREF(result);
    }
    if (PyErr_Occurred() != NULL)
        sim_keep(run);
    PyGILState_Release(gil);
    return run->kept != NULL;
}

static void pass_note(void *data, const char *text)
{
    struct sim_run *run = data;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");

    if (words == NULL || PyList_Append(run->note, words) < 0)
        sim_keep(run);
    Py_XDECREF(words);
    PyGILState_Release(gil);
}

/* What groups and comparisons have besides. */
static int read_others(struct sim_run *run, PyObject *dict)
{
    struct fly_sim_comparison *comparison = &run->comparison;
    PyObject *groups = item_of(dict, "groups"), *horizons = item_of(dict, "horizons");
    PyObject *number = item_of(dict, "synthetic_jobs"), *each = item_of(dict, "each");
    PyObject *against = item_of(dict, "against");

    if (read_names(run, item_of(dict, "gpus"), &run->gpus, &comparison->gpu_count) < 0 ||
        read_names(run, item_of(dict, "synthetic"), &run->synthetic, &comparison->synthetic_count) < 0 ||
        read_names(run, item_of(dict, "scenarios"), &run->scenarios, &comparison->scenario_count) < 0 ||
        (groups != NULL && keep_text(run, groups, argument_path, &run->groups) < 0) ||
        (against != NULL && keep_text(run, against, argument_text, &comparison->against) < 0) ||
        (horizons != NULL &&
         keep_counts(run, horizons, &comparison->horizons, &comparison->horizon_count) < 0))
        return -1;
    comparison->gpu_models = run->gpus;
    comparison->synthetic = run->synthetic;
    comparison->scenarios = run->scenarios;
    comparison->each = each != NULL && PyObject_IsTrue(each) == 1;
    if (number != NULL)
        comparison->synthetic_jobs = (int)PyLong_AsLong(number);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

/* Whether tries are kept. */
static int read_tries(struct sim_run *run, PyObject *dict)
{
    PyObject *wanted = item_of(dict, "tries");
    int truth = wanted != NULL ? PyObject_IsTrue(wanted) : 0;

    run->keeps_tries = truth > 0;
    return truth < 0 ? -1 : 0;
}

int sim_options_read(struct sim_run *run, PyObject *dict)
{
    *run = (struct sim_run){.options = {.size = sizeof run->options},
                            .comparison = {.size = sizeof run->comparison},
                            .owners = PyList_New(0)};
    if (run->owners == NULL)
        return -1;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        PyObject *value = item_of(dict, keys[i].name);

        if (value != NULL && read_value(run, &keys[i], value) < 0)
            return -1;
    }
    run->progress = item_of(dict, "progress");
    run->note = item_of(dict, "notes");
    run->options.progress = pass_progress;
    run->options.progress_data = run;
    run->options.note = run->note != NULL ? pass_note : NULL;
    run->options.note_data = run;
    if (read_names(run, item_of(dict, "jobs"), &run->jobs, &run->options.job_count) < 0 ||
        read_all_described(run, item_of(dict, "described")) < 0 ||
        read_policies(run, item_of(dict, "policies")) < 0 ||
        read_objective(run, item_of(dict, "objective")) < 0 || read_others(run, dict) < 0 ||
        read_tries(run, dict) < 0)
        return -1;
    run->options.jobs = run->jobs;
    return item_of(dict, "seeds") == NULL
               ? 0
               : keep_counts(run, item_of(dict, "seeds"), &run->options.seeds, &run->options.seed_count);
}

void sim_options_free(struct sim_run *run)
{
    PyMem_Free(run->policies);
    PyMem_Free(run->own);
    PyMem_Free(run->described);
    PyMem_Free(run->jobs);
    PyMem_Free(run->gpus);
    PyMem_Free(run->synthetic);
    PyMem_Free(run->scenarios);
    Py_CLEAR(run->owners);
    Py_CLEAR(run->kept);
}
