/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_TUNER_H
#define FLYBALL_PYTHON_EXTENSION_TUNER_H

#include "all_reduce.h"
#include "extension.h"
#include "live.h"
#include "monitor.h"
#include "turner.h"

#include <stdbool.h>

#include <flyball/tuner.h>

/* What Tuner() was given, as the library takes it; the objects own what the options point to. */
struct tuner_wish {
    struct fly_tuner_options options;
    struct fly_carbon_options carbon;
    PyObject *limits, *ceilings, *profile_directory, *profile_file, *gpu_model, *driver, *job_name;
    PyObject *carbon_texts;
    PyObject *rank; /* NULL: as ranks.py finds it */
    bool quiet;
};

/* What it was given besides; borrowed. */
struct tuner_given {
    PyObject *monitor, *gpus, *synchronize, *all_reduce, *turner, *clock_turner;
};

/* Reads the arguments of Tuner(); None is NULL. 0, or -1 with an exception. What was read is freed by the
 * other. */
int tuner_wish_read(struct tuner_wish *wish, struct tuner_given *given, PyObject *arguments,
                    PyObject *keywords);
void tuner_wish_free(struct tuner_wish *wish);

/* What help() says of Tuner() and its arguments. */
extern char tuner_doc[];

/* The Monitor that was given, or a new one of the tuner's own where it was None. A new reference; NULL with
 * an exception. */
struct monitor *tuner_given_monitor(const struct tuner_given *given);

/*
 * flyball.Tuner. The library's tuner is made at the first step, when the program's ranks know each other.
 */
struct tuner {
    PyObject_HEAD struct fly_tuner *tuner; /* NULL before the first step, and once it is closed */
    struct monitor *monitor;
    struct live live;
    struct all_reduce all_reduce;
    struct turner turner, clock_turner;
    struct tuner_wish wish;                       /* until the first step */
    PyObject *report, *points, *carbon, *summary; /* as they stood at the end */
    bool owns_monitor, holds_monitor, closed;
};

/* As Python sees them. NULL with an exception; of carbon, None where the grid is not followed. */
PyObject *tuner_report(const struct fly_tuner *tuner);
PyObject *tuner_points(const struct fly_tuner *tuner);
PyObject *tuner_carbon(const struct fly_tuner *tuner);
PyObject *tuner_sentence(const struct fly_tuner *tuner);

/* Whether there is something to say at its end: it was not switched off, and `flyball run` does not say it.
 */
bool tuner_has_news(const struct fly_tuner *tuner);

/* "searching", "checking", "settled", "stopped". */
const char *tuner_state_word(int state);

/* The CarbonReport of a struct of the library's. NULL with an exception. */
PyObject *carbon_report(const struct fly_carbon_report *report);

int tuner_report_add(PyObject *module);
int tuner_add(PyObject *module);

#endif
