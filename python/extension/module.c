/* SPDX-License-Identifier: Apache-2.0 */
/* The module flyball._flyball. The package flyball shows what users need of it. */
#include "extension.h"
#include "steps.h"
#include "tuner.h"

#include <flyball/version.h>

/* Refuses a library of another version than these headers: its structs may differ. */
static int check_version(void)
{
    if (strcmp(fly_version(), FLY_VERSION) == 0)
        return 0;
    PyErr_Format(PyExc_ImportError,
                 "the package flyball " FLY_VERSION " found libflyball %s; install both from one version",
                 fly_version());
    return -1;
}

/* The types belong to the interpreter that came first. */
static int check_interpreter(void)
{
    static PyInterpreterState *first;

    if (first == NULL)
        first = PyInterpreterState_Get();
    if (first == PyInterpreterState_Get())
        return 0;
    PyErr_SetString(PyExc_ImportError,
                    "flyball works in one interpreter of a process; import it in the main one");
    return -1;
}

/* In the order of the types' needs. */
static int (*const adders[])(PyObject *module) = {
    errors_add, measurement_add, window_add, monitor_add, samples_add,    session_add,
    sim_add,    steps_add,       tuner_add,  job_add,     power_knob_add,
};

static int fill(PyObject *module)
{
    if (check_version() < 0 || check_interpreter() < 0)
        return -1;
    for (size_t i = 0; i < sizeof adders / sizeof adders[0]; i++) {
        if (adders[i](module) < 0)
            return -1;
    }
    return PyModule_AddStringConstant(module, "__version__", fly_version());
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "flyball._flyball",
    .m_doc = "Flyball's C library; use the package flyball.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__flyball(void);

PyMODINIT_FUNC PyInit__flyball(void)
{
    return PyModuleDef_Init(&definition);
}
