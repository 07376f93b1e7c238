/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading jobs' logs. Functions give plain dicts and lists, from which flyball/past.py makes what users see;
 * no handle stays open between two of them.
 */
#include "arguments.h"
#include "table.h"

#include <stdbool.h>

#include <flyball/job.h>

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "a size_t is read as a TABLE_COUNT");

#define SUMMARY(name, kind) TABLE_KEY(#name, struct fly_job_summary, name, kind)
static const struct table_field summary_fields[] = {
    TABLE_KEY("job", struct fly_job_summary, name, TABLE_POINTED),
    SUMMARY(policy, TABLE_POINTED),
    SUMMARY(recurrences, TABLE_COUNT),
    SUMMARY(trials, TABLE_COUNT),
    SUMMARY(running, TABLE_COUNT),
    SUMMARY(events, TABLE_COUNT),
    SUMMARY(made_unix_s, TABLE_REAL),
    SUMMARY(changed_unix_s, TABLE_REAL),
    SUMMARY(trouble, TABLE_POINTED),
};

#define FACT(name, kind) TABLE_KEY(#name, struct fly_job_facts, name, kind)
static const struct table_field facts_fields[] = {
    FACT(name, TABLE_POINTED),
    FACT(policy, TABLE_POINTED),
    FACT(objective, TABLE_POINTED),
    FACT(eta, TABLE_REAL),
    FACT(max_slowdown, TABLE_REAL),
    FACT(revision, TABLE_POINTED),
    FACT(default_batch_size, TABLE_COUNT_32),
    FACT(pin_batch_size, TABLE_COUNT_32),
    TABLE_KEY("pin_power_limit_w", struct fly_job_facts, pin_limit_w, TABLE_REAL),
    FACT(recurrences, TABLE_COUNT),
    FACT(trials, TABLE_COUNT),
    FACT(running, TABLE_COUNT),
};

#define HARDWARE(name, kind) TABLE_KEY(#name, struct fly_job_hardware, name, kind)
static const struct table_field hardware_fields[] = {
    HARDWARE(gpu_model, TABLE_POINTED),    HARDWARE(gpu_count, TABLE_COUNT_32),
    HARDWARE(world_size, TABLE_COUNT_32),  HARDWARE(gpu_memory_bytes, TABLE_COUNT),
    HARDWARE(highest_limit_w, TABLE_REAL), HARDWARE(max_power_w, TABLE_REAL),
};

#define TRIAL(name, kind) TABLE_KEY(#name, struct fly_job_trial, name, kind)
static const struct table_field trial_fields[] = {
    TRIAL(trial, TABLE_COUNT),
    TRIAL(recurrence, TABLE_COUNT),
    TABLE_KEY("try", struct fly_job_trial, try_number, TABLE_COUNT_32),
    TRIAL(batch_size, TABLE_COUNT_32),
    TABLE_KEY("power_limit_w", struct fly_job_trial, limit_w, TABLE_REAL),
    TRIAL(reason, TABLE_POINTED),
    TRIAL(outcome, TABLE_POINTED),
    TRIAL(epochs, TABLE_COUNT_32),
    TRIAL(metric, TABLE_REAL),
    TRIAL(energy_j, TABLE_REAL),
    TRIAL(time_s, TABLE_REAL),
    TRIAL(cost_j, TABLE_REAL),
    TRIAL(begun_unix_s, TABLE_REAL),
    TRIAL(whole_energy_j, TABLE_REAL),
    TRIAL(whole_time_s, TABLE_REAL),
    TRIAL(ended_unix_s, TABLE_REAL),
    TRIAL(stop, TABLE_POINTED),
    TRIAL(attempts, TABLE_COUNT_32),
    TRIAL(late, TABLE_FLAG),
    TRIAL(profiled, TABLE_FLAG),
    TRIAL(hardware, TABLE_COUNT),
    TRIAL(user, TABLE_POINTED),
    TRIAL(account, TABLE_POINTED),
    TRIAL(host, TABLE_POINTED),
    TRIAL(gpus, TABLE_POINTED),
    TRIAL(cause, TABLE_POINTED),
    TRIAL(carbon_g, TABLE_REAL),
    TRIAL(money, TABLE_REAL),
    TRIAL(revision, TABLE_POINTED),
};

#define SAVING(name, member, kind) TABLE_KEY(name, struct fly_job_saving, member, kind)
#define RUNS(name)                                                                                    \
    SAVING(#name "_runs", name.runs, TABLE_COUNT), SAVING(#name "_failed", name.failed, TABLE_COUNT), \
        SAVING(#name "_energy_per_model_j", name.model_energy_j, TABLE_REAL),                         \
        SAVING(#name "_energy_spread", name.spread, TABLE_REAL),                                      \
        SAVING(#name "_time_per_model_s", name.model_time_s, TABLE_REAL),                             \
        SAVING(#name "_metric", name.mean_metric, TABLE_REAL),                                        \
        SAVING(#name "_newest_unix_s", name.newest_unix_s, TABLE_REAL)
#define RANGE(name)                                                                                     \
    SAVING(#name "_saving", name.value, TABLE_REAL), SAVING(#name "_saving_low", name.low, TABLE_REAL), \
        SAVING(#name "_saving_high", name.high, TABLE_REAL)
static const struct table_field saving_fields[] = {
    SAVING("hardware", hardware, TABLE_COUNT),
    SAVING("known", known, TABLE_FLAG),
    SAVING("doubt", doubt, TABLE_POINTED),
    RANGE(energy),
    RANGE(time),
    RANGE(cost),
    RUNS(baseline),
    RUNS(tuned),
    SAVING("searching_recurrences", searching, TABLE_COUNT),
    SAVING("searching_failed", searching_failed, TABLE_COUNT),
    SAVING("exploration_energy_j", exploration_j, TABLE_REAL),
    SAVING("ahead_energy_j", ahead_j, TABLE_REAL),
    SAVING("recent_recurrences", recent, TABLE_COUNT),
    SAVING("recent_ahead_energy_j", recent_ahead_j, TABLE_REAL),
    SAVING("paid_off", paid_off, TABLE_FLAG),
    SAVING("paid_off_since_recurrence", paid_off_at, TABLE_COUNT),
    SAVING("outdated_runs", outdated, TABLE_COUNT),
    SAVING("unknown_runs", unknown, TABLE_COUNT),
    SAVING("failed_runs", failed, TABLE_COUNT),
    SAVING("earlier_recurrences", earlier, TABLE_COUNT),
    SAVING("earlier_ahead_energy_j", earlier_ahead_j, TABLE_REAL),
    SAVING("earlier_unknown_recurrences", earlier_unknown, TABLE_COUNT),
};

#define POINT(name, member, kind) TABLE_KEY(name, struct fly_job_point, member, kind)
static const struct table_field point_fields[] = {
    POINT("batch_size", batch_size, TABLE_COUNT_32),
    POINT("power_limit_w", limit_w, TABLE_REAL),
    POINT("trials", trials, TABLE_COUNT),
    POINT("time_s", time_s.value, TABLE_REAL),
    POINT("time_low_s", time_s.low, TABLE_REAL),
    POINT("time_high_s", time_s.high, TABLE_REAL),
    POINT("energy_j", energy_j.value, TABLE_REAL),
    POINT("energy_low_j", energy_j.low, TABLE_REAL),
    POINT("energy_high_j", energy_j.high, TABLE_REAL),
    POINT("cost_j", cost_j, TABLE_REAL),
    POINT("on_frontier", on_frontier, TABLE_FLAG),
    POINT("default", is_default, TABLE_FLAG),
    POINT("chosen", is_chosen, TABLE_FLAG),
};

#define WHY(name, kind) TABLE_KEY(#name, struct fly_job_why, name, kind)
static const struct table_field why_fields[] = {
    WHY(trial, TABLE_COUNT),
    WHY(recurrence, TABLE_COUNT),
    TABLE_KEY("try", struct fly_job_why, try_number, TABLE_COUNT_32),
    WHY(batch_size, TABLE_COUNT_32),
    TABLE_KEY("power_limit_w", struct fly_job_why, limit_w, TABLE_REAL),
    WHY(proposed_unix_s, TABLE_REAL),
    WHY(policy, TABLE_POINTED),
    WHY(reason, TABLE_POINTED),
    WHY(sentence, TABLE_POINTED),
    WHY(numbers, TABLE_POINTED),
    WHY(capped, TABLE_FLAG),
    WHY(last_try, TABLE_FLAG),
};

#define FIELDS(fields) fields, sizeof fields / sizeof fields[0]

/* ---- structs as dicts, rows as columns ---- */

static int put(PyObject *dict, const char *name, PyObject *value)
{
    int code = value != NULL ? PyDict_SetItemString(dict, name, value) : -1;

    Py_XDECREF(value);
    return code;
}

static PyObject *dict_of(const struct table_field *fields, size_t count, const void *data)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; i < count && dict != NULL; i++) {
        if (put(dict, fields[i].name, table_value(&fields[i], data)) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *columns_new(const struct table_field *fields, size_t count)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; i < count && dict != NULL; i++) {
        if (put(dict, fields[i].name, PyList_New(0)) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static int columns_add(PyObject *columns, const struct table_field *fields, size_t count, const void *row)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *value = table_value(&fields[i], row);
        int code = value != NULL ? PyList_Append(PyDict_GetItemString(columns, fields[i].name), value) : -1;

        Py_XDECREF(value);
        if (code < 0)
            return -1;
    }
    return 0;
}

static PyObject *history_of(const struct fly_job *job)
{
    struct fly_job_trial trial = {.size = sizeof trial};
    PyObject *columns = columns_new(FIELDS(trial_fields));

    for (size_t i = 0; i < fly_job_trial_count(job) && columns != NULL; i++) {
        fly_job_trial(job, i, &trial);
        if (columns_add(columns, FIELDS(trial_fields), &trial) < 0)
            Py_CLEAR(columns);
    }
    return columns;
}

/* ---- what depends on the hardware ---- */

static PyObject *hardware_of(const struct fly_job *job, size_t hardware)
{
    struct fly_job_hardware told = {.size = sizeof told};

    fly_job_hardware(job, hardware, &told);
    return dict_of(FIELDS(hardware_fields), &told);
}

static PyObject *saving_of(const struct fly_job *job, size_t hardware)
{
    struct fly_job_saving saving = {.size = sizeof saving};
    struct fly_error error;
    int code = fly_job_saving(job, hardware, &saving, &error);

    return code < 0 ? error_raise(code, &error) : dict_of(FIELDS(saving_fields), &saving);
}

static PyObject *points_of(const struct fly_job *job, size_t hardware)
{
    struct fly_job_point point = {.size = sizeof point};
    PyObject *columns = columns_new(FIELDS(point_fields));

    for (size_t i = 0; i < fly_job_point_count(job, hardware) && columns != NULL; i++) {
        fly_job_point(job, hardware, i, &point);
        if (columns_add(columns, FIELDS(point_fields), &point) < 0)
            Py_CLEAR(columns);
    }
    return columns;
}

static PyObject *left_out_of(const struct fly_job *job, size_t hardware)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; i < fly_job_left_out_count(job, hardware) && dict != NULL; i++) {
        uint32_t batch_size = 0;
        const char *why = "";
        PyObject *key, *value;

        fly_job_left_out(job, hardware, i, &batch_size, &why);
        key = PyLong_FromUnsignedLong(batch_size);
        value = table_text(why);
        if (key == NULL || value == NULL || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

/* One object for each kind of hardware. */
static PyObject *of_each(const struct fly_job *job,
                         PyObject *(*make)(const struct fly_job *job, size_t hardware))
{
    struct fly_job_facts facts = {.size = sizeof facts};
    PyObject *list = PyList_New(0);

    fly_job_facts(job, &facts);
    for (size_t hardware = 1; hardware <= facts.hardware_count && list != NULL; hardware++) {
        PyObject *item = make(job, hardware);

        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *whole_of(const struct fly_job *job)
{
    struct fly_job_facts facts = {.size = sizeof facts};
    PyObject *dict;

    fly_job_facts(job, &facts);
    dict = dict_of(FIELDS(facts_fields), &facts);
    if (dict != NULL &&
        (put(dict, "history", history_of(job)) < 0 || put(dict, "hardware", of_each(job, hardware_of)) < 0 ||
         put(dict, "savings", of_each(job, saving_of)) < 0 ||
         put(dict, "points", of_each(job, points_of)) < 0 ||
         put(dict, "left_out", of_each(job, left_out_of)) < 0))
        Py_CLEAR(dict);
    return dict;
}

/* ---- functions of the module ---- */

/* What each of them was given; the texts are owned. */
struct job_arguments {
    PyObject *name, *store;
    double wait_s;
    uint64_t trial;
};

static void arguments_clear(struct job_arguments *arguments)
{
    Py_CLEAR(arguments->name);
    Py_CLEAR(arguments->store);
}

/* The job's name; NULL with an exception. */
static const char *name_of(const struct job_arguments *arguments)
{
    if (arguments->name == NULL)
        PyErr_SetString(PyExc_TypeError, "expected the name of a job");
    return argument_bytes(arguments->name);
}

/* Opens the logs without the GIL. NULL with an exception. */
static struct fly_jobs *open_jobs(const struct job_arguments *arguments)
{
    const char *store = argument_bytes(arguments->store);
    struct fly_jobs *jobs = NULL;
    struct fly_error error;
    int code;

    Py_BEGIN_ALLOW_THREADS
    code = fly_jobs_open(store, arguments->wait_s, &jobs, &error);
    Py_END_ALLOW_THREADS
    if (code < 0)
        error_raise(code, &error);
    return jobs;
}

static void close_jobs(struct fly_jobs *jobs)
{
    Py_BEGIN_ALLOW_THREADS
    fly_jobs_close(jobs);
    Py_END_ALLOW_THREADS
}

static PyObject *list_of(struct fly_jobs *jobs)
{
    struct fly_job_summary summary = {.size = sizeof summary};
    PyObject *columns = NULL;
    struct fly_error error;
    size_t count = 0;
    int code;

    Py_BEGIN_ALLOW_THREADS
    code = fly_jobs_list(jobs, &count, &error);
    Py_END_ALLOW_THREADS
    if (code < 0)
        return error_raise(code, &error);
    columns = columns_new(FIELDS(summary_fields));
    for (size_t i = 0; i < count && columns != NULL; i++) {
        fly_jobs_summary(jobs, i, &summary);
        if (columns_add(columns, FIELDS(summary_fields), &summary) < 0)
            Py_CLEAR(columns);
    }
    return columns;
}

static PyObject *job_list(PyObject *module, PyObject *tuple)
{
    struct job_arguments arguments = {.store = NULL};
    PyObject *columns = NULL;
    struct fly_jobs *jobs;

    (void)module;
    if (!PyArg_ParseTuple(tuple, "O&d", argument_path, &arguments.store, &arguments.wait_s))
        return NULL;
    jobs = open_jobs(&arguments);
    if (jobs != NULL) {
        columns = list_of(jobs);
        close_jobs(jobs);
    }
    arguments_clear(&arguments);
    return columns;
}

static PyObject *job_read(PyObject *module, PyObject *tuple)
{
    struct job_arguments arguments = {.store = NULL};
    struct fly_job *job = NULL;
    PyObject *dict = NULL;
    struct fly_error error;
    struct fly_jobs *jobs;
    const char *name;
    int code;

    (void)module;
    if (!PyArg_ParseTuple(tuple, "O&O&d", argument_text, &arguments.name, argument_path, &arguments.store,
                          &arguments.wait_s))
        return NULL;
    name = name_of(&arguments);
    jobs = name != NULL ? open_jobs(&arguments) : NULL;
    if (jobs != NULL) {
        Py_BEGIN_ALLOW_THREADS
        code = fly_job_read(jobs, name, &job, &error);
        fly_jobs_close(jobs);
        Py_END_ALLOW_THREADS
        dict = code < 0 ? error_raise(code, &error) : whole_of(job);
        fly_job_free(job);
    }
    arguments_clear(&arguments);
    return dict;
}

static PyObject *job_why(PyObject *module, PyObject *tuple)
{
    struct fly_job_why why = {.size = sizeof why};
    struct job_arguments arguments = {.store = NULL};
    PyObject *dict = NULL;
    struct fly_error error;
    struct fly_jobs *jobs;
    const char *name;
    int code;

    (void)module;
    if (!PyArg_ParseTuple(tuple, "O&O&dO&", argument_text, &arguments.name, argument_path, &arguments.store,
                          &arguments.wait_s, argument_u64, &arguments.trial))
        return NULL;
    name = name_of(&arguments);
    jobs = name != NULL ? open_jobs(&arguments) : NULL;
    if (jobs != NULL) {
        Py_BEGIN_ALLOW_THREADS
        code = fly_job_why(jobs, name, arguments.trial, &why, &error);
        Py_END_ALLOW_THREADS
        dict = code < 0 ? error_raise(code, &error) : dict_of(FIELDS(why_fields), &why);
        close_jobs(jobs);
    }
    arguments_clear(&arguments);
    return dict;
}

static PyMethodDef functions[] = {
    {"_job_list", job_list, METH_VARARGS, "(store, wait_s): the jobs of a store as columns."},
    {"_job_read", job_read, METH_VARARGS, "(name, store, wait_s): all that a job's log tells, as a dict."},
    {"_job_why", job_why, METH_VARARGS, "(name, store, wait_s, trial): why a trial was chosen, as a dict."},
    {NULL, NULL, 0, NULL},
};

int job_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
