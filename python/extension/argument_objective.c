/* SPDX-License-Identifier: Apache-2.0 */
/* What the user wants, and what follows the grid. */
#include "arguments.h"

#include <math.h>

static int read_kind(PyObject *text, struct fly_objective *out_objective)
{
    PyObject *bytes = NULL;
    struct fly_error error;
    int code;

    if (!argument_text(text, &bytes))
        return -1;
    code = fly_objective_parse(bytes != NULL ? PyBytes_AsString(bytes) : "energy", out_objective, &error);
    Py_XDECREF(bytes);
    if (code < 0)
        error_raise(code, &error);
    return code < 0 ? -1 : 0;
}

static int read_eta(PyObject *objective, PyObject *eta, struct fly_objective *out_objective)
{
    PyObject *cost = objective != Py_None ? PyUnicode_FromString("cost") : NULL;
    int other = cost != NULL ? PyObject_RichCompareBool(objective, cost, Py_NE) : 0;

    Py_XDECREF(cost);
    if (PyErr_Occurred() != NULL)
        return -1;
    out_objective->kind = FLY_OBJECTIVE_COST;
    out_objective->eta = PyFloat_AsDouble(eta);
    if (PyErr_Occurred() != NULL)
        return -1;
    if (!other && out_objective->eta >= 0.0 && out_objective->eta <= 1.0)
        return 0;
    error_raise_text(FLY_EUSAGE, other ? "eta belongs to the objective 'cost' alone"
                                       : "eta is a number from 0, for time, to 1, for energy");
    return -1;
}

/* "3 %" is "3%" to people. */
static int read_bound_text(PyObject *text, double *out_factor)
{
    PyObject *bytes = NULL;
    struct fly_error error;
    char *at, *end, written[64];
    size_t length = 0;
    int code;

    if (!argument_text(text, &bytes))
        return -1;
    at = PyBytes_AsString(bytes);
    if (strcmp(at, "auto") == 0) {
        *out_factor = 0.0; /* the library's own */
        Py_DECREF(bytes);
        return 0;
    }
    end = at + PyBytes_Size(bytes);
    if (end > at && end[-1] != ' ' && end - at < (Py_ssize_t)sizeof written) {
        char *digits = end - 1;

        while (digits > at && digits[-1] == ' ')
            digits--;
        memcpy(written, at, (size_t)(digits - at));
        length = (size_t)(digits - at);
        written[length++] = end[-1];
        written[length] = '\0';
        at = written;
    }
    code = fly_slowdown_parse(at, out_factor, &error);
    Py_DECREF(bytes);
    if (code < 0)
        error_raise(code, &error);
    return code < 0 ? -1 : 0;
}

static int read_bound(PyObject *bound, double *out_factor)
{
    double fraction;

    if (bound == NULL || bound == Py_None) {
        *out_factor = bound == NULL ? 0.0 : INFINITY;
        return 0;
    }
    if (PyUnicode_Check(bound))
        return read_bound_text(bound, out_factor);
    fraction = PyFloat_AsDouble(bound);
    if (PyErr_Occurred() != NULL)
        return -1;
    if (fraction >= 0.0 && fraction < 1.0) {
        *out_factor = 1.0 + fraction;
        return 0;
    }
    error_raise_text(FLY_EUSAGE, "max_slowdown as a number is a fraction from 0 and below 1: 0.03 is 3 %; "
                                 "write '3%', '1.03x' or 'none'");
    return -1;
}

int argument_objective(PyObject *objective, PyObject *eta, PyObject *max_slowdown,
                       struct fly_objective *out_objective)
{
    struct fly_objective read = {.eta = 0.5};

    if (eta == Py_None && objective == Py_None)
        read.eta = NAN; /* energy, and nobody named it: src/job/core/job.h */
    else if (eta != Py_None ? read_eta(objective, eta, &read) < 0 : read_kind(objective, &read) < 0)
        return -1;
    if (read_bound(max_slowdown, &read.max_slowdown) < 0)
        return -1;
    *out_objective = read;
    return 0;
}

enum carbon_kind { CARBON_TEXT, CARBON_PATH, CARBON_REAL, CARBON_COUNT };

static const struct carbon_key {
    const char *name;
    enum carbon_kind kind;
    size_t offset;
} keys[] = {
#define KEY(name, kind)                                        \
    {                                                          \
#name, kind, offsetof(struct fly_carbon_options, name) \
    }
    KEY(source, CARBON_TEXT),  KEY(price, CARBON_TEXT),
    KEY(per_g, CARBON_REAL),   KEY(per_money, CARBON_REAL),
    KEY(per_kwh, CARBON_REAL), KEY(host_w, CARBON_REAL),
    KEY(pue, CARBON_REAL),     KEY(finish_by_unix_s, CARBON_COUNT),
    KEY(steps, CARBON_COUNT),  KEY(directory, CARBON_PATH),
#undef KEY
};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* Keeps the bytes in the list, which is their owner. */
static int read_carbon_text(PyObject *value, int (*convert)(PyObject *value, void *address), PyObject *texts,
                            const char **out_text)
{
    PyObject *bytes = NULL;

    if (!convert(value, &bytes) || bytes == NULL)
        return PyErr_Occurred() != NULL ? -1 : 0;
    *out_text = PyBytes_AsString(bytes);
    if (PyList_Append(texts, bytes) < 0)
        *out_text = NULL;
    Py_DECREF(bytes);
    return *out_text != NULL ? 0 : -1;
}

static int read_carbon_value(const struct carbon_key *key, PyObject *value,
                             struct fly_carbon_options *options, PyObject *texts)
{
    void *place = (char *)options + key->offset;

    if (value == Py_None)
        return 0;
    switch (key->kind) {
    case CARBON_TEXT:
        return read_carbon_text(value, argument_text, texts, place);
    case CARBON_PATH:
        return read_carbon_text(value, argument_path, texts, place);
    case CARBON_REAL:
        *(double *)place = PyFloat_AsDouble(value);
        return PyErr_Occurred() != NULL ? -1 : 0;
    case CARBON_COUNT: /* a moment's int64_t takes no more than this either */
        return argument_u64(value, place) ? 0 : -1;
    }
    Py_UNREACHABLE();
}

static const struct carbon_key *find_key(PyObject *name)
{
    for (int i = 0; i < KEYS && PyUnicode_Check(name); i++) {
        if (PyUnicode_CompareWithASCIIString(name, keys[i].name) == 0)
            return &keys[i];
    }
    PyErr_Format(PyExc_TypeError, "carbon has no key %R; help(flyball.Tuner) lists them", name);
    return NULL;
}

int argument_carbon(PyObject *dict, struct fly_carbon_options *out_options, PyObject **out_texts)
{
    PyObject *name, *value, *texts;
    Py_ssize_t place = 0;

    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "carbon is a dict such as {'source': 'gb:national'}");
        return -1;
    }
    texts = PyList_New(0);
    *out_options = (struct fly_carbon_options){.size = sizeof *out_options};
    while (texts != NULL && PyDict_Next(dict, &place, &name, &value)) {
        const struct carbon_key *key = find_key(name);

        if (key == NULL || read_carbon_value(key, value, out_options, texts) < 0)
            Py_CLEAR(texts);
    }
    *out_texts = texts;
    return texts != NULL ? 0 : -1;
}
