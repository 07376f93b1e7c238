/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_SESSION_OPTIONS_H
#define FLYBALL_PYTHON_EXTENSION_SESSION_OPTIONS_H

#include "extension.h"

#include <flyball/session.h>

/*
 * The options of a session, from a dict by the names of the struct's members; None is not set. These have a
 * form of their own: `target`, a text that the library reads, or a number; `tries`, also "always"; and
 * `objective`, `eta`, `max_slowdown` and `carbon`, as in arguments.h.
 */
struct session_options {
    struct fly_session_options session;
    struct fly_carbon_options carbon;
    PyObject *held, *carbon_texts; /* what the pointers lead to */
};

/* 0, or -1 with an exception. Free it either way. */
int session_options_read(struct session_options *options, PyObject *dict);
void session_options_free(struct session_options *options);

#endif
