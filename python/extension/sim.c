/* SPDX-License-Identifier: Apache-2.0 */
/* Simulations: what flyball/sim.py calls. */
#include "sim.h"

#include "kept.h"

static PyObject *value_of(const struct fly_sim_column *column, size_t row)
{
    if (column->unknown != NULL && column->unknown[row] != NULL)
        return none();
    switch (column->type) {
    case FLY_SIM_TEXT:
        return PyUnicode_DecodeUTF8(column->texts[row], (Py_ssize_t)strlen(column->texts[row]),
                                    "backslashreplace");
    case FLY_SIM_WHOLE:
        return PyLong_FromLongLong(column->wholes[row]);
    case FLY_SIM_REAL:
        return PyFloat_FromDouble(column->reals[row]);
    }
    Py_UNREACHABLE();
}

static PyObject *reason_of(const struct fly_sim_column *column, size_t row)
{
    return column->unknown[row] != NULL ? PyUnicode_FromString(column->unknown[row]) : none();
}

static PyObject *list_of(const struct fly_sim_column *column, size_t rows,
                         PyObject *(*make)(const struct fly_sim_column *column, size_t row))
{
    PyObject *list = PyList_New((Py_ssize_t)rows);

    for (size_t row = 0; row < rows && list != NULL; row++) {
        PyObject *value = make(column, row);

        if (value == NULL || PyList_SetItem(list, (Py_ssize_t)row, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *sim_columns(const struct fly_sim_table *table)
{
    struct fly_sim_column column = {.size = sizeof column};
    size_t rows = fly_sim_table_rows(table);
    PyObject *columns = PyList_New(0);

    for (size_t i = 0; columns != NULL && fly_sim_table_column(table, i, &column) == 0; i++) {
        PyObject *one =
            Py_BuildValue("(szsNN)", column.key, column.unit, column.help, list_of(&column, rows, value_of),
                          column.unknown != NULL ? list_of(&column, rows, reason_of) : none());

        if (one == NULL || PyList_Append(columns, one) < 0)
            Py_CLEAR(columns);
        Py_XDECREF(one);
    }
    return columns;
}

/* Raises what was kept, or else the library's error; returns whether either is there. */
static bool failed(struct sim_run *run, int code, const struct fly_error *error)
{
    if (run->kept != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(run->kept), run->kept);
    else if (code < 0)
        error_raise(code, error);
    return run->kept != NULL || code < 0;
}

/* A simulation of the library's. Without the GIL; one that has no tries leaves their table NULL. */
typedef int simulation(const struct sim_run *run, struct fly_sim_table **out_rows,
                       struct fly_sim_table **out_tries, struct fly_error *out_error);

static int run_jobs(const struct sim_run *run, struct fly_sim_table **out_rows,
                    struct fly_sim_table **out_tries, struct fly_error *out_error)
{
    return fly_sim_run_jobs(&run->options, out_rows, run->keeps_tries ? out_tries : NULL, out_error);
}

static int run_pareto(const struct sim_run *run, struct fly_sim_table **out_rows,
                      struct fly_sim_table **out_tries, struct fly_error *out_error)
{
    (void)out_tries;
    return fly_sim_pareto(&run->options, out_rows, out_error);
}

static int run_groups(const struct sim_run *run, struct fly_sim_table **out_rows,
                      struct fly_sim_table **out_tries, struct fly_error *out_error)
{
    return fly_sim_run_groups(&run->options, run->groups, out_rows, run->keeps_tries ? out_tries : NULL,
                              out_error);
}

static int run_compare(const struct sim_run *run, struct fly_sim_table **out_rows,
                       struct fly_sim_table **out_tries, struct fly_error *out_error)
{
    (void)out_tries;
    return fly_sim_compare(&run->options, &run->comparison, out_rows, out_error);
}

/* A pair of the rows and the tries, which are None where they are not kept. */
static PyObject *tables_of(struct sim_run *run, simulation *simulate)
{
    struct fly_sim_table *rows = NULL, *tries = NULL;
    PyObject *tables = NULL;
    struct fly_error error;
    int code;

    Py_BEGIN_ALLOW_THREADS
    code = simulate(run, &rows, &tries, &error);
    Py_END_ALLOW_THREADS
    if (!failed(run, code, &error))
        tables = Py_BuildValue("(NN)", sim_columns(rows), tries != NULL ? sim_columns(tries) : none());
    fly_sim_table_free(rows);
    fly_sim_table_free(tries);
    return tables;
}

static PyObject *with_options(PyObject *dict, simulation *simulate)
{
    struct sim_run run;
    PyObject *tables = NULL;

    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "expected a dict of options");
        return NULL;
    }
    if (sim_options_read(&run, dict) == 0)
        tables = tables_of(&run, simulate);
    sim_options_free(&run);
    return tables; /* cppcheck-suppress returnDanglingLifetime; it does not point to the run */
}

static PyObject *sim_jobs(PyObject *module, PyObject *dict)
{
    (void)module;
    return with_options(dict, run_jobs);
}

static PyObject *sim_pareto(PyObject *module, PyObject *dict)
{
    (void)module;
    return with_options(dict, run_pareto);
}

static PyObject *sim_groups(PyObject *module, PyObject *dict)
{
    (void)module;
    return with_options(dict, run_groups);
}

static PyObject *sim_compare(PyObject *module, PyObject *dict)
{
    (void)module;
    return with_options(dict, run_compare);
}

static PyMethodDef functions[] = {
    {"_sim_jobs", sim_jobs, METH_O, "_sim_jobs($module, options, /)\n--\n\nAs flyball.sim.job."},
    {"_sim_pareto", sim_pareto, METH_O, "_sim_pareto($module, options, /)\n--\n\nAs flyball.sim.pareto."},
    {"_sim_groups", sim_groups, METH_O, "_sim_groups($module, options, /)\n--\n\nAs flyball.sim.group."},
    {"_sim_compare", sim_compare, METH_O, "_sim_compare($module, options, /)\n--\n\nAs flyball.sim.compare."},
    {NULL, NULL, 0, NULL},
};

int sim_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
