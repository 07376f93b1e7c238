/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_SIM_H
#define FLYBALL_PYTHON_EXTENSION_SIM_H

#include "extension.h"

#include <flyball/sim.h>

/* A simulation that Python asked for; flyball/sim.py describes the arguments and the results. */
struct sim_run {
    struct fly_sim_options options;
    struct fly_sim_comparison comparison;
    const char *groups; /* path; NULL: none */
    bool keeps_tries;
    struct fly_objective objective;
    PyObject *owners;   /* list of the bytes that options point to */
    PyObject *progress; /* borrowed; NULL: none */
    PyObject *note;     /* borrowed; NULL: none */
    PyObject *kept;     /* the exception that ended it; NULL: none */
    /* Memory of this struct's own. */
    struct fly_sim_policy *policies;
    struct sim_own *own; /* those of the policies that are Python's */
    struct fly_sim_job *described;
    const char **jobs, **gpus, **synthetic, **scenarios;
};

/* A policy of Python's: `create` makes an object for each history (flyball.sim._Running). */
struct sim_own {
    struct fly_batch_policy table;
    PyObject *create; /* borrowed */
    struct sim_run *run;
};

/* Keeps the exception that is set, if it is the first. Needs the GIL. */
void sim_keep(struct sim_run *run);

/* Fills in the table of such a policy, whose name and create stay as long as the run. */
void sim_own_init(struct sim_own *own, struct sim_run *run, const char *name, uint32_t version,
                  PyObject *create);

/* Reads the dict's keys: 0, or -1 with an exception. sim_options_free in every case. */
int sim_options_read(struct sim_run *run, PyObject *dict);
void sim_options_free(struct sim_run *run);

/* The table as a list of columns: (key, unit, help, values, reasons or None). NULL with an exception. */
PyObject *sim_columns(const struct fly_sim_table *table);

#endif
