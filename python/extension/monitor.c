/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor: a meter over the devices of this node. */
#include "monitor.h"

#include "arguments.h"
#include "kept.h"
#include "measurement.h"
#include "table.h"
#include "window.h"

/* What Monitor() was given, as the library takes it; the objects own the texts. */
struct monitor_arguments {
    PyObject *gpus, *nvml_path, *amdsmi_path, *replay_path;
    PyObject *synchronize; /* borrowed */
    double cpu_tdp_w, sample_hz;
    Py_ssize_t windows_max;
};

/* Whether this thread makes a window of the program's, which has synchronized already. */
static _Thread_local bool makes_window;

int monitor_hold(struct monitor *monitor)
{
    if (monitor->meter == NULL || monitor->closing) {
        error_raise_text(FLY_ESTATE, "the monitor is closed; make another one");
        return -1;
    }
    monitor->calls++;
    return 0;
}

int monitor_enter(struct monitor *monitor)
{
    int code = monitor_hold(monitor);

    makes_window = code == 0;
    return code;
}

static void close_meter(struct monitor *monitor)
{
    struct fly_meter *meter = monitor->meter;

    monitor->meter = NULL;
    Py_BEGIN_ALLOW_THREADS
    fly_meter_close(meter);
    Py_END_ALLOW_THREADS
}

void monitor_release(struct monitor *monitor)
{
    monitor->calls--;
    if (monitor->closing && monitor->calls == 0 && monitor->meter != NULL)
        close_meter(monitor);
}

void monitor_leave(struct monitor *monitor)
{
    makes_window = false;
    monitor_release(monitor);
}

int monitor_synchronize(struct monitor *monitor)
{
    PyObject *result;

    if (monitor->synchronize == NULL)
        return 0;
    result = PyObject_CallFunctionObjArgs(monitor->synchronize, NULL);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

/* At the edges of windows that the library makes for itself; with the GIL and without. */
static void synchronize_in_library(void *data)
{
    struct monitor *monitor = data;
    PyGILState_STATE state;
    PyObject *type, *value, *trace;

    if (makes_window)
        return;
    state = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &trace);
    if (monitor_synchronize(monitor) < 0)
        kept_take(&monitor->raised);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(state);
}

/* "0,2" of a sequence of numbers or identities. */
static PyObject *joined(PyObject *sequence)
{
    PyObject *items = PySequence_List(sequence), *comma = PyUnicode_FromString(","), *text = NULL;

    for (Py_ssize_t i = 0; items != NULL && i < PyList_Size(items); i++) {
        PyObject *word = PyObject_Str(PyList_GetItem(items, i));

        if (word == NULL || PyList_SetItem(items, i, word) < 0)
            Py_CLEAR(items);
    }
    if (items != NULL && comma != NULL)
        text = PyUnicode_Join(comma, items);
    Py_XDECREF(items);
    Py_XDECREF(comma);
    return text;
}

/* Converter for PyArg: the GPUs as the library reads them; None leaves NULL. */
static int optional_gpus(PyObject *value, void *address)
{
    PyObject *text, **bytes = address;

    if (value == NULL) { /* another argument was wrong */
        Py_CLEAR(*bytes);
        return 1;
    }
    if (value == Py_None)
        return 1;
    text = PyUnicode_Check(value) ? PyObject_Str(value) : joined(value);
    *bytes = text != NULL ? PyUnicode_AsUTF8String(text) : NULL;
    Py_XDECREF(text);
    return *bytes != NULL ? Py_CLEANUP_SUPPORTED : 0;
}

static int read_arguments(struct monitor_arguments *read, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"gpus",      "nvml_path",   "amdsmi_path", "replay_path", "cpu_tdp_w",
                            "sample_hz", "windows_max", "synchronize", NULL};

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O&$O&O&O&ddnO:Monitor", names, optional_gpus,
                                     &read->gpus, argument_path, &read->nvml_path, argument_path,
                                     &read->amdsmi_path, argument_path, &read->replay_path, &read->cpu_tdp_w,
                                     &read->sample_hz, &read->windows_max, &read->synchronize))
        return -1;
    if (read->synchronize == Py_None || PyCallable_Check(read->synchronize))
        return 0;
    PyErr_SetString(PyExc_TypeError,
                    "synchronize is a function without arguments, as torch.cuda.synchronize");
    return -1;
}

static void free_arguments(struct monitor_arguments *read)
{
    Py_CLEAR(read->gpus);
    Py_CLEAR(read->nvml_path);
    Py_CLEAR(read->amdsmi_path);
    Py_CLEAR(read->replay_path);
}

static int open_meter(struct monitor *self, const struct monitor_arguments *read)
{
    const struct fly_meter_options options = {
        .size = sizeof options,
        .gpus = argument_bytes(read->gpus),
        .nvml_path = argument_bytes(read->nvml_path),
        .amdsmi_path = argument_bytes(read->amdsmi_path),
        .replay_path = argument_bytes(read->replay_path),
        .cpu_tdp_w = read->cpu_tdp_w,
        .sample_hz = read->sample_hz,
        /* The library refuses what is too many, in its own words. */
        .windows_max = read->windows_max >= 0 && read->windows_max < UINT32_MAX ? (uint32_t)read->windows_max
                                                                                : UINT32_MAX,
        .synchronize = self->synchronize != NULL ? synchronize_in_library : NULL,
        .synchronize_data = self,
    };
    struct fly_error error;
    int code;

    Py_BEGIN_ALLOW_THREADS
    code = fly_meter_open(&options, &self->meter, &error);
    Py_END_ALLOW_THREADS
    if (code < 0) {
        error_raise(code, &error);
        return -1;
    }
    self->identities = measurement_identities(self->meter);
    return self->identities != NULL ? 0 : -1;
}

static PyObject *monitor_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    struct monitor_arguments read = {.synchronize = Py_None};
    struct monitor *self = NULL;

    if (read_arguments(&read, arguments, keywords) == 0)
        self = (struct monitor *)type_make(type);
    if (self != NULL && read.synchronize != Py_None) {
        Py_INCREF(read.synchronize);
        self->synchronize = read.synchronize;
    }
    if (self != NULL && open_meter(self, &read) < 0)
        Py_CLEAR(self);
    free_arguments(&read);
    return (PyObject *)self;
}

void monitor_end(struct monitor *monitor)
{
    monitor->closing = true;
    if (monitor->calls == 0 && monitor->meter != NULL)
        close_meter(monitor);
}

static PyObject *monitor_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    monitor_end((struct monitor *)self);
    return none();
}

static PyObject *monitor_window(PyObject *self, PyObject *name)
{
    return window_new((struct monitor *)self, name);
}

static PyObject *monitor_begin(PyObject *self, PyObject *name)
{
    PyObject *window = window_new((struct monitor *)self, name);

    if (window != NULL && window_begin(window) < 0)
        Py_CLEAR(window);
    return window;
}

static PyObject *monitor_with(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *monitor_exit(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    return monitor_close(self, NULL);
}

static int monitor_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct monitor *self = (struct monitor *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->synchronize);
    Py_VISIT(self->raised);
    return 0;
}

static int monitor_clear(PyObject *object)
{
    struct monitor *self = (struct monitor *)object;

    Py_CLEAR(self->synchronize);
    Py_CLEAR(self->raised);
    return 0;
}

static void monitor_dealloc(PyObject *object)
{
    struct monitor *self = (struct monitor *)object;

    PyObject_GC_UnTrack(object);
    monitor_clear(object);
    if (self->meter != NULL)
        close_meter(self);
    Py_CLEAR(self->identities);
    type_free(object);
}

static PyObject *get_devices(PyObject *object, void *unused)
{
    struct monitor *self = (struct monitor *)object;

    (void)unused;
    Py_INCREF(self->identities);
    return self->identities;
}

static PyObject *get_closed(PyObject *object, void *unused)
{
    struct monitor *self = (struct monitor *)object;

    (void)unused;
    return PyBool_FromLong(self->meter == NULL || self->closing);
}

static PyObject *monitor_counted_by(PyObject *object, PyObject *place)
{
    struct monitor *self = (struct monitor *)object;
    const char *text = NULL;
    size_t device = PyLong_AsSize_t(place);
    PyObject *words;

    if (device == (size_t)-1 && PyErr_Occurred() != NULL)
        return NULL;
    if (monitor_enter(self) < 0)
        return NULL;
    text = fly_meter_device_counted_by(self->meter, device);
    words = text != NULL ? table_text(text) : NULL;
    monitor_leave(self);
    if (text == NULL)
        PyErr_SetString(PyExc_IndexError, "the monitor has no such device");
    return words;
}

static PyMethodDef methods[] = {
    {"window", monitor_window, METH_O,
     "window($self, name, /)\n--\n\nA Window that has not begun: begin it with 'with', or decorate a "
     "function with it."},
    {"begin", monitor_begin, METH_O,
     "begin($self, name, /)\n--\n\nBegins a window and returns it; its end() returns the measurement.\n\n"
     "Raises StateError when the monitor is closed or of another process, Error (FLY_ELIMIT) when "
     "windows_max are "
     "open."},
    {"counted_by", monitor_counted_by, METH_O,
     "counted_by($self, place, /)\n--\n\n'' if this monitor counts the device at that place of `devices` for "
     "its job, "
     "else who\ndoes. Add up only what is counted."},
    {"read", samples_read, METH_O,
     "read($self, place, /)\n--\n\nReads the device at that place of `devices` now: a Sample."},
    {"max_power_w", samples_max_power_w, METH_O,
     "max_power_w($self, place, /)\n--\n\nThe highest power limit that the device at that place of `devices` "
     "takes, in W;\nNone: it does not say."},
    {"power_limits_w", samples_power_limits, METH_O,
     "power_limits_w($self, place, /)\n--\n\nOf the device at that place of `devices`, in W: the power limit "
     "now, the lowest and the\nhighest that it takes, and the driver's default. None: it does not say."},
    {"clocks_mhz", (PyCFunction)(void (*)(void))samples_clocks, METH_VARARGS | METH_KEYWORDS,
     "clocks_mhz($self, place, /, *, memory=False)\n--\n\nThe clocks to which the device at that place of "
     "`devices` can be held, or its memory, in MHz,\nhighest first; [] if it does not say."},
    {"keep", samples_keep, METH_O,
     "keep($self, samples_max, /)\n--\n\nFrom now on keeps the newest `samples_max` samples of each "
     "device.\n\nRaises StateError when samples are kept already."},
    {"samples", (PyCFunction)(void (*)(void))samples_list, METH_VARARGS | METH_KEYWORDS,
     "samples($self, place, /, since_unix_s=-inf)\n--\n\nThe Samples kept of the device at that place of "
     "`devices`,\nfrom that date on, oldest first."},
    {"close", monitor_close, METH_NOARGS,
     "close($self, /)\n--\n\nStops sampling. Open windows are forgotten. May be called again."},
    {"__enter__", monitor_with, METH_NOARGS, "__enter__($self, /)\n--\n\n"},
    {"__exit__", monitor_exit, METH_VARARGS, "Closes the monitor."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"devices", get_devices, NULL, "The Devices that are measured.", NULL},
    {"closed", get_closed, NULL, "Whether it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char doc[] =
    "Monitor(gpus=None, *, nvml_path=None, amdsmi_path=None, replay_path=None, cpu_tdp_w=0, sample_hz=0,\n"
    "windows_max=0, synchronize=None)\n--\n\n"
    "Measures the energy of windows of the program, on each device of this node.\n\n"
    "    with flyball.Monitor() as monitor, monitor.window('epoch') as window:\n"
    "        train()\n"
    "    for device, source, energy_j, uncertainty_j in window.measurement.devices:\n"
    "        print(device.kind, device.index, energy_j, uncertainty_j, source)\n\n"
    "gpus         '0,2' or [0, 2], as CUDA_VISIBLE_DEVICES is written; None: what the environment shows\n"
    "nvml_path, amdsmi_path   of the driver library; None: searched for\n"
    "replay_path  a recording in place of hardware\n"
    "cpu_tdp_w    W; above 0: without a sensor, the CPU's energy is estimated from its use and this power\n"
    "sample_hz    0: 10, or the sensor's own rate where that is lower; at most 1000\n"
    "windows_max  open at a time; 0: 256; at most 65536\n"
    "synchronize  called before a window begins, ends or is looked into, so that work which the device was\n"
    "             given lies on the right side of the edge, as torch.cuda.synchronize; None: edges are "
    "those\n"
    "             of the host. What it raises, the call raises.\n\n"
    "A machine without devices is no error. With FLYBALL_DISABLE=1 there are none. Raises UsageError for\n"
    "arguments out of range, NotFoundError for a GPU that does not exist, Error (FLY_EDATA) for a recording\n"
    "that cannot be read. Any thread may use it. In a process that was forked from this one, its calls "
    "raise\n"
    "StateError. It cannot be pickled.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_new, monitor_new},
    {Py_tp_dealloc, monitor_dealloc},
    {Py_tp_traverse, monitor_traverse},
    {Py_tp_clear, monitor_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "flyball.Monitor",
    .basicsize = sizeof(struct monitor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int monitor_add(PyObject *module)
{
    extension_types.monitor = type_add(module, &spec);
    return extension_types.monitor != NULL ? 0 : -1;
}
