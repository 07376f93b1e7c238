/* SPDX-License-Identifier: Apache-2.0 */
/* What a tuner is asked for: the arguments of Tuner(). */

#include "arguments.h"
#include "tuner.h"

char tuner_doc[] =
    "Tuner(monitor=None, *, objective='energy', eta=None, max_slowdown='auto', knob='power', limits_w=None,\n"
    "ceilings_mhz=None, gpus=None, synchronize=None, job_name=None, batch_size=0, profile_directory=None,\n"
    "profile_file=None, gpu_model=None, driver=None, max_power_w=0, energy_tolerance=0, window_max_s=0,\n"
    "wait_steps=0, warmup_steps=0, profile_steps=0, check_every_steps=0, remeasure_distance_steps=0,\n"
    "carbon=None, rank=None, all_reduce=None, turner=None, clock_turner=None, give_back_s=None,\n"
    "quiet=False)\n--\n\n"
    "Finds the best power limit while training runs, and keeps it; puts the old one back at the end.\n\n"
    "    with flyball.Tuner(max_slowdown='3%') as tuner:\n"
    "        for epoch in range(epochs):\n"
    "            for batch in tuner.steps(loader):\n"
    "                train(batch)\n"
    "            evaluate()\n"
    "    print(tuner.summary)\n\n"
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
    "             None: 30, or 20 steps where these take longer\n"
    "quiet        no line on stderr at the end, which is the summary; FLYBALL_QUIET=1 does the same\n\n"
    "Where limits may not be set, nothing is, and the report says why. Raises UsageError, some of them at\n"
    "the first step. What all_reduce and synchronize raise goes to sys.unraisablehook, and ends tuning in\n"
    "the case of all_reduce; a KeyboardInterrupt comes out of the step. One thread calls the hooks; any may\n"
    "read. In a process that was forked from this one the hooks do nothing. It cannot be pickled.";

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

static bool is_quiet_by_user(void)
{
    const char *value = getenv("FLYBALL_QUIET");

    return value != NULL && strcmp(value, "1") == 0;
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
                            "quiet",
                            NULL};
    struct fly_tuner_options *options = &wish->options;
    struct raw raw = {Py_None, Py_None, NULL, Py_None, Py_None, NULL};
    int code = -1, quiet = 0;

    *given = (struct tuner_given){Py_None, Py_None, Py_None, Py_None, Py_None, Py_None};
    if (PyArg_ParseTupleAndKeywords(
            arguments, keywords, "|O$OOOO&O&O&OOO&O&O&O&O&O&dddO&O&O&O&O&OOOOOO&p:Tuner", names,
            &given->monitor, &raw.objective, &raw.eta, &raw.max_slowdown, argument_text, &raw.knob,
            argument_reals, &wish->limits, argument_reals, &wish->ceilings, &given->gpus, &given->synchronize,
            argument_text, &wish->job_name, argument_u64, &options->batch_size, argument_path,
            &wish->profile_directory, argument_path, &wish->profile_file, argument_text, &wish->gpu_model,
            argument_text, &wish->driver, &options->max_power_w, &options->energy_tolerance,
            &options->window_max_s, argument_u32, &options->wait_steps, argument_u32, &options->warmup_steps,
            argument_u32, &options->profile_steps, argument_u32, &options->check_every_steps, argument_u32,
            &options->remeasure_distance_steps, &raw.carbon, &raw.rank, &given->all_reduce, &given->turner,
            &given->clock_turner, argument_patience, &options->give_back_s, &quiet))
        code = read_raw(wish, &raw);
    Py_XDECREF(raw.knob);
    wish->quiet = quiet || is_quiet_by_user();
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
