/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session by name. One table says what each one is. */
#include "session_options.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "arguments.h"

enum kind { TEXT, PLACE, FLAG, REAL, REALS, COUNT, COUNTS, LONG_COUNT, SECONDS, TRIES, TARGET, APART };

static const struct option {
    const char *name;
    enum kind kind;
    size_t offset;
    size_t count_offset; /* of lists */
} rows[] = {
#define OPTION(name, kind)                                         \
    {                                                              \
#name, kind, offsetof(struct fly_session_options, name), 0 \
    }
#define LIST(name, kind, count)                                                                              \
    {                                                                                                        \
#name, kind, offsetof(struct fly_session_options, name), offsetof(struct fly_session_options, count) \
    }
    OPTION(job_name, TEXT),
    {"objective", APART, 0, 0},
    {"eta", APART, 0, 0},
    {"max_slowdown", APART, 0, 0},
    OPTION(target, TARGET),
#define FLY_LIST(name, count, ...) LIST(name, COUNTS, count),
#define FLY_TEXT(name, ...) OPTION(name, TEXT),
#define FLY_WHOLE(name, ...) OPTION(name, COUNT),
#define FLY_REAL(name, ...) OPTION(name, REAL),
#define FLY_FLAG(name, ...) OPTION(name, FLAG),
#include <flyball/job_definition.def>
    OPTION(store, PLACE),
    OPTION(wait_s, REAL),
    OPTION(run, TEXT),
    OPTION(tries, TRIES),
    OPTION(finish_by_unix_s, SECONDS),
    OPTION(samples_per_epoch, LONG_COUNT),
    OPTION(gpus, TEXT),
    OPTION(leave_limits, FLAG),
    LIST(limits_w, REALS, limit_count),
    OPTION(warmup_steps, COUNT),
    OPTION(profile_steps, COUNT),
    OPTION(energy_tolerance, REAL),
    OPTION(world_size, COUNT),
    OPTION(rank, COUNT),
    {"carbon", APART, 0, 0},
    OPTION(recurrences_left, COUNT),
    OPTION(tries_directory, PLACE),
    OPTION(replicas, COUNT),
    OPTION(give_back_s, REAL),
#undef LIST
#undef OPTION
};

/* Keeps bytes for as long as the options; takes the reference. NULL with an exception. */
static const char *hold(struct session_options *options, PyObject *bytes)
{
    bool kept = bytes != NULL && PyList_Append(options->held, bytes) == 0;
    const char *held = kept ? PyBytes_AsString(bytes) : NULL;

    Py_XDECREF(bytes);
    return held;
}

static int take_bytes(const struct option *row, struct session_options *options, PyObject *value)
{
    static int (*const converters[])(PyObject *, void *) = {[TEXT] = argument_text,
                                                            [PLACE] = argument_path,
                                                            [REALS] = argument_reals,
                                                            [COUNTS] = argument_counts};
    char *place = (char *)&options->session;
    size_t item = row->kind == REALS ? sizeof(double) : sizeof(uint32_t);
    PyObject *bytes = NULL;
    size_t count;
    const char *held;

    if (!converters[row->kind](value, &bytes))
        return -1;
    count = argument_count(bytes, item);
    held = hold(options, bytes);
    if (held == NULL)
        return -1;
    memcpy(place + row->offset, &held, sizeof held);
    if (row->count_offset > 0)
        memcpy(place + row->count_offset, &count, sizeof count);
    return 0;
}

static int take_target(struct session_options *options, PyObject *value)
{
    PyObject *text = PyObject_Str(value), *bytes = NULL;
    struct fly_error error;
    int code = FLY_EUSAGE;

    if (text != NULL && argument_text(text, &bytes)) {
        code = fly_target_parse(PyBytes_AsString(bytes), &options->session.target,
                                &options->session.target_metric, &error);
        if (code < 0)
            error_raise(code, &error);
    }
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return code;
}

static int take_seconds(PyObject *value, int64_t *out_seconds)
{
    uint64_t seconds = 0;

    if (!argument_u64(value, &seconds))
        return -1;
    *out_seconds = (int64_t)seconds;
    return 0;
}

static int take(const struct option *row, struct session_options *options, PyObject *value)
{
    void *place = (char *)&options->session + row->offset;
    int truth;

    switch (row->kind) {
    case FLAG:
        truth = PyObject_IsTrue(value);
        *(bool *)place = truth > 0;
        return truth < 0 ? -1 : 0;
    case REAL:
        *(double *)place = PyFloat_AsDouble(value);
        return PyErr_Occurred() != NULL ? -1 : 0;
    case TRIES:
        if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "always") == 0) {
            *(uint32_t *)place = FLY_SESSION_ALWAYS;
            return 0;
        }
        return argument_u32(value, place) ? 0 : -1;
    case COUNT:
        return argument_u32(value, place) ? 0 : -1;
    case LONG_COUNT:
        return argument_u64(value, place) ? 0 : -1;
    case SECONDS:
        return take_seconds(value, place);
    case TARGET:
        return take_target(options, value);
    case APART:
        return 0;
    default:
        return take_bytes(row, options, value);
    }
}

/* Says which option was out of its range. */
static void name_option(const char *name)
{
    PyObject *type, *value, *trace, *text, *bytes = NULL;

    if (!PyErr_ExceptionMatches(PyExc_ValueError))
        return;
    PyErr_Fetch(&type, &value, &trace);
    text = PyUnicode_FromFormat("session: %s: %S", name, value);
    if (text != NULL)
        bytes = PyUnicode_AsUTF8String(text);
    if (bytes != NULL)
        error_raise_text(FLY_EUSAGE, PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static const struct option *find(PyObject *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (PyUnicode_CompareWithASCIIString(name, rows[i].name) == 0)
            return &rows[i];
    }
    PyErr_Format(PyExc_TypeError, "a session has no option %R", name);
    return NULL;
}

static PyObject *given(PyObject *dict, const char *name)
{
    PyObject *value = PyDict_GetItemString(dict, name);

    return value != NULL ? value : Py_None;
}

/* What several options together say. */
static int take_apart(struct session_options *options, PyObject *dict)
{
    PyObject *carbon = given(dict, "carbon");

    if (argument_objective(given(dict, "objective"), given(dict, "eta"),
                           PyDict_GetItemString(dict, "max_slowdown"), &options->session.objective) < 0)
        return -1;
    if (carbon == Py_None)
        return 0;
    options->session.carbon = &options->carbon;
    return argument_carbon(carbon, &options->carbon, &options->carbon_texts);
}

int session_options_read(struct session_options *options, PyObject *dict)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;

    *options = (struct session_options){.session = {.size = sizeof options->session}, .held = PyList_New(0)};
    if (options->held == NULL)
        return -1;
    while (PyDict_Next(dict, &at, &name, &value)) {
        const struct option *row = find(name);

        if (row == NULL)
            return -1;
        if (value != Py_None && take(row, options, value) < 0) {
            name_option(row->name);
            return -1;
        }
    }
    return take_apart(options, dict);
}

void session_options_free(struct session_options *options)
{
    Py_CLEAR(options->held);
    Py_CLEAR(options->carbon_texts);
}
