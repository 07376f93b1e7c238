/* SPDX-License-Identifier: Apache-2.0 */
/* What devices say at one moment, and the samples that a monitor keeps of them. */
#include "monitor.h"

#include <math.h>
#include <stddef.h>

static PyTypeObject *sample_type;

static const struct sample_figure {
    const char *name, *doc;
    size_t offset;
} figures[] = {
    {"unix_s", "when: seconds since 1970", offsetof(struct fly_sample, unix_s)},
    {"power_w", "W over the sensor's own short window", offsetof(struct fly_sample, power_w)},
    {"power_average_w", "W over about a second", offsetof(struct fly_sample, power_average_w)},
    {"energy_j", "J: the device's own counter, since some moment; it may wrap",
     offsetof(struct fly_sample, energy_j)},
    {"temperature_c", "degrees Celsius", offsetof(struct fly_sample, temperature_c)},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static PyObject *known(double value)
{
    return isnan(value) ? none() : PyFloat_FromDouble(value);
}

static PyObject *make_sample(const struct fly_sample *sample)
{
    PyObject *made = PyStructSequence_New(sample_type);

    for (int i = 0; i < FIGURES && made != NULL; i++) {
        const void *at = (const char *)sample + figures[i].offset;
        double value = *(const double *)at;
        PyObject *figure = known(value);

        if (figure == NULL)
            Py_CLEAR(made);
        else
            PyStructSequence_SetItem(made, i, figure);
    }
    return made;
}

PyObject *samples_read(PyObject *object, PyObject *place)
{
    struct monitor *self = (struct monitor *)object;
    size_t device = PyLong_AsSize_t(place);
    struct fly_sample sample;
    struct fly_error error;
    int code;

    if ((device == (size_t)-1 && PyErr_Occurred() != NULL) || monitor_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = fly_meter_read(self->meter, device, &sample, &error);
    Py_END_ALLOW_THREADS
    monitor_leave(self);
    return code == 0 ? make_sample(&sample) : error_raise(code, &error);
}

PyObject *samples_max_power_w(PyObject *object, PyObject *place)
{
    struct monitor *self = (struct monitor *)object;
    size_t device = PyLong_AsSize_t(place);
    double highest_w;

    if ((device == (size_t)-1 && PyErr_Occurred() != NULL) || monitor_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    highest_w = fly_meter_device_max_power_w(self->meter, device);
    Py_END_ALLOW_THREADS
    monitor_leave(self);
    return known(highest_w);
}

PyObject *samples_power_limits(PyObject *object, PyObject *place)
{
    struct monitor *self = (struct monitor *)object;
    size_t device = PyLong_AsSize_t(place);
    struct fly_power_limits limits;
    struct fly_error error;
    int code;

    if ((device == (size_t)-1 && PyErr_Occurred() != NULL) || monitor_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    code = fly_meter_power_limits(self->meter, device, &limits, &error);
    Py_END_ALLOW_THREADS
    monitor_leave(self);
    if (code < 0)
        return error_raise(code, &error);
    return Py_BuildValue("NNNN", known(limits.limit_w), known(limits.lowest_w), known(limits.highest_w),
                         known(limits.default_w));
}

PyObject *samples_clocks(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    enum { CLOCKS_MAX = 512 };
    static char *names[] = {"", "memory", NULL};
    struct monitor *self = (struct monitor *)object;
    uint32_t clocks_mhz[CLOCKS_MAX];
    PyObject *list = PyList_New(0);
    size_t count = 0;
    Py_ssize_t place;
    int memory = 0;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "n|$p:clocks_mhz", names, &place, &memory) ||
        monitor_enter(self) < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    if (place >= 0)
        count = fly_meter_clocks(self->meter, (size_t)place, memory ? FLY_CLOCK_MEMORY : FLY_CLOCK_GPU,
                                 clocks_mhz, CLOCKS_MAX);
    Py_END_ALLOW_THREADS
    monitor_leave(self);
    for (size_t i = 0; i < count && i < CLOCKS_MAX && list != NULL; i++) {
        PyObject *clock = PyLong_FromUnsignedLong(clocks_mhz[i]);

        if (clock == NULL || PyList_Append(list, clock) < 0)
            Py_CLEAR(list);
        Py_XDECREF(clock);
    }
    return list;
}

PyObject *samples_keep(PyObject *object, PyObject *samples_max)
{
    struct monitor *self = (struct monitor *)object;
    size_t count = PyLong_AsSize_t(samples_max);
    struct fly_error error;
    int code;

    if ((count == (size_t)-1 && PyErr_Occurred() != NULL) || monitor_enter(self) < 0)
        return NULL;
    code = fly_meter_keep(self->meter, count, &error);
    monitor_leave(self);
    return code == 0 ? none() : error_raise(code, &error);
}

static PyObject *list_of(const struct fly_sample *samples, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; i < count && list != NULL; i++) {
        PyObject *sample = make_sample(&samples[i]);

        if (sample == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, sample);
    }
    return list;
}

/* More samples may come between asking how many there are and taking them: those are left for the next time.
 */
PyObject *samples_list(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "since_unix_s", NULL};
    struct monitor *self = (struct monitor *)object;
    double since_unix_s = -INFINITY;
    struct fly_sample *samples;
    PyObject *list = NULL;
    Py_ssize_t place;
    size_t room, count;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "n|d:samples", names, &place, &since_unix_s) ||
        monitor_enter(self) < 0)
        return NULL;
    room = place >= 0 ? fly_meter_samples(self->meter, (size_t)place, since_unix_s, NULL, 0) : 0;
    samples = PyMem_Calloc(room + 1, sizeof *samples);
    if (samples != NULL) {
        count = room > 0 ? fly_meter_samples(self->meter, (size_t)place, since_unix_s, samples, room) : 0;
        list = list_of(samples, count < room ? count : room);
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(samples);
    monitor_leave(self);
    return list;
}

int samples_add(PyObject *module)
{
    static PyStructSequence_Field fields[FIGURES + 1];
    static PyStructSequence_Desc desc = {
        "flyball.Sample", "What a device says at one moment. A figure that is not known is None.", fields,
        FIGURES};

    for (int i = 0; i < FIGURES; i++)
        fields[i] = (PyStructSequence_Field){figures[i].name, figures[i].doc};
    sample_type = PyStructSequence_NewType(&desc);
    return sample_type != NULL ? PyObject_SetAttrString(module, "Sample", (PyObject *)sample_type) : -1;
}
