/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_SESSION_STATUS_H
#define FLYBALL_PYTHON_EXTENSION_SESSION_STATUS_H

#include "extension.h"

#include <flyball/session.h>

/* flyball.SessionStatus: a named tuple of a session's status. NULL with an exception. */
PyObject *session_status_new(const struct fly_session_status *status);
int session_status_add(PyObject *module);

#endif
