/* SPDX-License-Identifier: Apache-2.0 */
/* What a tuner is asked for: the arguments of Tuner(). */

#include "arguments.h"
#include "tuner.h"

/* Arguments that need more than a converter; borrowed. */
struct raw {
    PyObject *objective, *eta, *max_slowdown, *carbon, *rank;
    PyObject *knob; /* owned */
};

/* The words of knobs are the library's own. */
static int read_knob(const struct raw *raw, enum fly_tuner_knob *out_knob)
{
    const char *word = argument_bytes(raw->knob);

    for (int knob = FLY_TUNER_POWER_LIMIT; knob <= FLY_TUNER_PROFILE && word != NULL; knob++) {
        if (strcmp(word, fly_tuner_knob_name((enum fly_tuner_knob)knob)) == 0) {
            *out_knob = (enum fly_tuner_knob)knob;
            return 0;
        }
    }
    if (word == NULL)
        return 0;
    error_raise_text(FLY_EUSAGE, "the knob is 'power', 'clock', 'both', 'auto' or 'profile'");
    return -1;
}

static int read_rank(struct tuner_wish *wish, PyObject *rank)
{
    if (rank == Py_None)
        return 0;
    if (!argument_u32(rank, &wish->options.rank))
        return -1;
    Py_INCREF(rank);
    wish->rank = rank;
    return 0;
}

static int read_raw(struct tuner_wish *wish, const struct raw *raw)
{
    struct fly_tuner_options *options = &wish->options;

    if (argument_objective(raw->objective, raw->eta, raw->max_slowdown, &options->objective) < 0 ||
        read_knob(raw, &options->knob) < 0 || read_rank(wish, raw->rank) < 0)
        return -1;
    if (raw->carbon != Py_None) {
        if (argument_carbon(raw->carbon, &wish->carbon, &wish->carbon_texts) < 0)
            return -1;
        options->carbon = &wish->carbon;
    }
    return 0;
}

/* Points the options into the objects. */
static void point_options(struct tuner_wish *wish)
{
    struct fly_tuner_options *options = &wish->options;

    options->size = sizeof *options;
    options->limits_w = (const double *)(const void *)argument_bytes(wish->limits);
    options->limit_count = argument_count(wish->limits, sizeof(double));
    options->ceilings_mhz = (const double *)(const void *)argument_bytes(wish->ceilings);
    options->ceiling_count = argument_count(wish->ceilings, sizeof(double));
    options->profile_directory = argument_bytes(wish->profile_directory);
    options->profile_file = argument_bytes(wish->profile_file);
    options->gpu_model = argument_bytes(wish->gpu_model);
    options->driver = argument_bytes(wish->driver);
    options->job_name = argument_bytes(wish->job_name);
}

int tuner_wish_read(struct tuner_wish *wish, struct tuner_given *given, PyObject *arguments,
                    PyObject *keywords)
{
    static char *names[] = {"monitor",
                            "objective",
                            "eta",
                            "max_slowdown",
                            "knob",
                            "limits_w",
                            "ceilings_mhz",
                            "gpus",
                            "synchronize",
                            "job_name",
                            "batch_size",
                            "profile_directory",
                            "profile_file",
                            "gpu_model",
                            "driver",
                            "max_power_w",
                            "energy_tolerance",
                            "window_max_s",
                            "wait_steps",
                            "warmup_steps",
                            "profile_steps",
                            "check_every_steps",
                            "remeasure_distance_steps",
                            "carbon",
                            "rank",
                            "all_reduce",
                            "turner",
                            "clock_turner",
                            "give_back_s",
                            NULL};
    struct fly_tuner_options *options = &wish->options;
    struct raw raw = {Py_None, Py_None, NULL, Py_None, Py_None, NULL};
    int code = -1;

    *given = (struct tuner_given){Py_None, Py_None, Py_None, Py_None, Py_None, Py_None};
    if (PyArg_ParseTupleAndKeywords(
            arguments, keywords, "|O$OOOO&O&O&OOO&O&O&O&O&O&dddO&O&O&O&O&OOOOOO&:Tuner", names,
            &given->monitor, &raw.objective, &raw.eta, &raw.max_slowdown, argument_text, &raw.knob,
            argument_reals, &wish->limits, argument_reals, &wish->ceilings, &given->gpus, &given->synchronize,
            argument_text, &wish->job_name, argument_u64, &options->batch_size, argument_path,
            &wish->profile_directory, argument_path, &wish->profile_file, argument_text, &wish->gpu_model,
            argument_text, &wish->driver, &options->max_power_w, &options->energy_tolerance,
            &options->window_max_s, argument_u32, &options->wait_steps, argument_u32, &options->warmup_steps,
            argument_u32, &options->profile_steps, argument_u32, &options->check_every_steps, argument_u32,
            &options->remeasure_distance_steps, &raw.carbon, &raw.rank, &given->all_reduce, &given->turner,
            &given->clock_turner, argument_patience, &options->give_back_s))
        code = read_raw(wish, &raw);
    Py_XDECREF(raw.knob);
    point_options(wish);
    return code;
}

void tuner_wish_free(struct tuner_wish *wish)
{
    Py_CLEAR(wish->limits);
    Py_CLEAR(wish->ceilings);
    Py_CLEAR(wish->profile_directory);
    Py_CLEAR(wish->profile_file);
    Py_CLEAR(wish->gpu_model);
    Py_CLEAR(wish->driver);
    Py_CLEAR(wish->job_name);
    Py_CLEAR(wish->carbon_texts);
    Py_CLEAR(wish->rank);
}

static PyObject *make_monitor(const struct tuner_given *given)
{
    PyObject *keywords = Py_BuildValue("{sOsO}", "gpus", given->gpus, "synchronize", given->synchronize);
    PyObject *nothing = PyTuple_New(0), *monitor = NULL;

    if (keywords != NULL && nothing != NULL)
        monitor = PyObject_Call((PyObject *)extension_types.monitor, nothing, keywords);
    Py_XDECREF(keywords);
    Py_XDECREF(nothing);
    return monitor;
}

struct monitor *tuner_given_monitor(const struct tuner_given *given)
{
    PyObject *monitor = given->monitor;

    if (monitor == Py_None)
        return (struct monitor *)make_monitor(given);
    if ((PyObject *)Py_TYPE(monitor) != (PyObject *)extension_types.monitor) {
        PyErr_SetString(PyExc_TypeError, "monitor is a flyball.Monitor");
        return NULL;
    }
    if (given->gpus != Py_None || given->synchronize != Py_None) {
        error_raise_text(FLY_EUSAGE,
                         "gpus and synchronize belong to the monitor; give them to one of the two");
        return NULL;
    }
    Py_INCREF(monitor);
    return (struct monitor *)monitor;
}
