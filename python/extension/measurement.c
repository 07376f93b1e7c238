/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements and their devices as Python sees them. One table says which figures a device has. */
#include "measurement.h"

#include <math.h>
#include <stdbool.h>

#include "table.h"

struct measurement {
    PyObject_HEAD PyObject *identities;
    PyObject *devices; /* NULL until somebody asks */
    struct fly_device_energy *energies;
    struct fly_measurement measured;
};

static PyObject *none_or_real(double value)
{
    return isnan(value) ? none() : PyFloat_FromDouble(value);
}

static const char *source_word(int source)
{
    return fly_energy_source_name((enum fly_energy_source)source);
}

/* The figures of a device, after the first one, which is its identity. */
static const struct table_field figures[] = {
#define FIGURE(name, kind, doc) TABLE_FIELD(struct fly_device_energy, name, kind, doc)
    TABLE_FIELD_WORD(struct fly_device_energy, source, source_word,
                     "'counter', 'integrated', 'estimated' or 'unavailable'"),
    FIGURE(energy_j, TABLE_REAL, "J; None: unavailable, and note says why"),
    FIGURE(uncertainty_j, TABLE_REAL,
           "J: the true energy is within this of energy_j in 95 of 100 windows, gain_error not included"),
    FIGURE(gain_error, TABLE_REAL, "of the board's sensor, as a fraction of the energy"),
    FIGURE(time_s, TABLE_REAL, "s between the stamps of this device"),
    FIGURE(mean_power_w, TABLE_REAL, "W"),
    FIGURE(integral_j, TABLE_REAL, "J: the sampled power integrated, to check a counter by"),
    FIGURE(counter_j, TABLE_REAL, "J: the plain difference of the counter's readings"),
    FIGURE(idle_share, TABLE_REAL, "share of the sampled time without work on the device"),
    FIGURE(idle_energy_share, TABLE_REAL, "share of the energy in that time"),
    FIGURE(capped_share, TABLE_REAL, "share of the time held down by the power limit"),
    FIGURE(heat_share, TABLE_REAL, "share of the time held down by heat"),
    FIGURE(brake_share, TABLE_REAL, "share of the time held down from outside the board"),
    FIGURE(held_share, TABLE_REAL, "share of the time held down by a clock setting"),
    FIGURE(clock_mhz, TABLE_REAL, "mean GPU clock, MHz"),
    FIGURE(temperature_max_c, TABLE_REAL, "highest temperature, degrees Celsius"),
    FIGURE(limit_w, TABLE_REAL, "W: the power limit at the end"),
    FIGURE(least_energy_j, TABLE_REAL,
           "J: what a device had used that stopped answering, whose energy_j is therefore None"),
    FIGURE(least_time_s, TABLE_REAL, "s until then"),
    FIGURE(disagree, TABLE_FLAG, "whether counter and sampled power differ by more than both may be off"),
    FIGURE(samples, TABLE_COUNT, "samples behind the shares"),
    FIGURE(note, TABLE_TEXT, "why there is no figure, or what to know of it; '' for nothing"),
#undef FIGURE
};
/* Unpacked, a device gives device, source, energy_j and uncertainty_j; the rest are attributes alone. */
enum { FIGURES = sizeof figures / sizeof figures[0], UNPACKED = 4 };

static PyObject *device_energy(PyObject *identity, const struct fly_device_energy *energy)
{
    PyObject *made = PyStructSequence_New(extension_types.device_energy);

    if (made == NULL)
        return NULL;
    Py_INCREF(identity);
    PyStructSequence_SetItem(made, 0, identity);
    if (table_fill(made, 1, figures, FIGURES, energy) < 0)
        Py_CLEAR(made);
    return made;
}

static PyObject *identity_of(const struct fly_meter *meter, size_t device)
{
    PyObject *made = PyStructSequence_New(extension_types.device);
    PyObject *values[] = {
        table_text(fly_meter_device_kind(meter, device)),
        PyLong_FromLong(fly_meter_device_index(meter, device)),
        table_text(fly_meter_device_name(meter, device)),
        table_text(fly_meter_device_uuid(meter, device)),
    };
    bool whole = made != NULL;

    for (Py_ssize_t i = 0; i < 4; i++) {
        whole = whole && values[i] != NULL;
        if (made != NULL)
            PyStructSequence_SetItem(made, i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    if (!whole)
        Py_CLEAR(made);
    return made;
}

/* Fills a tuple from `make(data, place)`. */
static PyObject *tuple_of(size_t count, PyObject *(*make)(const void *data, size_t place), const void *data)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);

    for (size_t i = 0; i < count && tuple != NULL; i++) {
        PyObject *item = make(data, i);

        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
    }
    return tuple;
}

static PyObject *make_identity(const void *meter, size_t device)
{
    return identity_of(meter, device);
}

PyObject *measurement_identities(const struct fly_meter *meter)
{
    return tuple_of(fly_meter_device_count(meter), make_identity, meter);
}

static PyObject *make_device(const void *measurement, size_t device)
{
    const struct measurement *self = measurement;

    return device_energy(PyTuple_GetItem(self->identities, (Py_ssize_t)device), &self->energies[device]);
}

PyObject *measurement_new(PyObject *identities)
{
    size_t count = (size_t)PyTuple_Size(identities);
    struct measurement *self = (struct measurement *)type_make(extension_types.measurement);

    if (self == NULL)
        return NULL;
    Py_INCREF(identities);
    self->identities = identities;
    self->energies = PyMem_Calloc(count + 1, sizeof *self->energies);
    if (self->energies == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->measured = (struct fly_measurement){
        .size = sizeof self->measured, .devices = self->energies, .device_capacity = count};
    return (PyObject *)self;
}

struct fly_measurement *measurement_room(PyObject *measurement)
{
    return &((struct measurement *)measurement)->measured;
}

static void measurement_dealloc(PyObject *object)
{
    struct measurement *self = (struct measurement *)object;

    Py_CLEAR(self->identities);
    Py_CLEAR(self->devices);
    PyMem_Free(self->energies);
    type_free(object);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return table_text(measurement_room(self)->name);
}

static PyObject *get_start(PyObject *self, void *unused)
{
    (void)unused;
    return none_or_real(measurement_room(self)->start_unix_s);
}

static PyObject *get_time(PyObject *self, void *unused)
{
    (void)unused;
    return none_or_real(measurement_room(self)->time_s);
}

static PyObject *get_devices(PyObject *object, void *unused)
{
    struct measurement *self = (struct measurement *)object;

    (void)unused;
    if (self->devices == NULL)
        self->devices = tuple_of((size_t)PyTuple_Size(self->identities), make_device, self);
    Py_XINCREF(self->devices);
    return self->devices;
}

static PyObject *represent(PyObject *self)
{
    PyObject *name = get_name(self, NULL), *time = get_time(self, NULL), *devices = get_devices(self, NULL),
             *text = NULL;

    if (name != NULL && time != NULL && devices != NULL)
        text = PyUnicode_FromFormat("<flyball.Measurement %R time_s=%R devices=%R>", name, time, devices);
    Py_XDECREF(name);
    Py_XDECREF(time);
    Py_XDECREF(devices);
    return text;
}

static PyObject *measurement_html(PyObject *self, PyObject *unused)
{
    (void)unused;
    return type_html(self, "measurement");
}

static PyMethodDef methods[] = {
    {"_repr_html_", measurement_html, METH_NOARGS, "A table, for notebooks."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "Name of the window; names of more than 63 bytes are cut.", NULL},
    {"start_unix_s", get_start, NULL, "When the window began: seconds since 1970.", NULL},
    {"time_s", get_time, NULL, "How long it was, in s, by the monotonic clock.", NULL},
    {"devices", get_devices, NULL, "A DeviceEnergy for each device of the monitor.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char doc[] =
    "What a window held: its time, and the energy of each device with source and uncertainty.\n\n"
    "A figure that is not known is None, never 0.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_new, type_not_made_by_hand},
    {Py_tp_dealloc, measurement_dealloc},
    {Py_tp_repr, represent},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "flyball.Measurement",
    .basicsize = sizeof(struct measurement),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static PyStructSequence_Field device_fields[] = {
    {"kind", "'GPU', 'CPU', ..."},
    {"index", "on the node"},
    {"name", "of the model"},
    {"uuid", "of the device itself; '' where there is none"},
    {NULL, NULL},
};

static PyStructSequence_Desc device_desc = {"flyball.Device", "A device that a monitor measures.",
                                            device_fields, 4};

/* Makes a named tuple and adds it to the module. */
static PyTypeObject *add_tuple(PyObject *module, PyStructSequence_Desc *desc)
{
    PyTypeObject *type = PyStructSequence_NewType(desc);

    if (type != NULL && PyObject_SetAttrString(module, strrchr(desc->name, '.') + 1, (PyObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

int measurement_add(PyObject *module)
{
    static PyStructSequence_Field fields[FIGURES + 2] = {{"device", "which device: a Device"}};
    static PyStructSequence_Desc desc = {
        "flyball.DeviceEnergy", "What one device did in a window. A figure that is not known is None.",
        fields, UNPACKED};

    for (int i = 0; i < FIGURES; i++)
        fields[i + 1] = (PyStructSequence_Field){figures[i].name, figures[i].doc};
    extension_types.device = add_tuple(module, &device_desc);
    extension_types.device_energy = add_tuple(module, &desc);
    extension_types.measurement = type_add(module, &spec);
    return extension_types.device != NULL && extension_types.device_energy != NULL &&
                   extension_types.measurement != NULL
               ? 0
               : -1;
}
