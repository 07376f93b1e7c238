/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_PYTHON_EXTENSION_SESSION_H
#define FLYBALL_PYTHON_EXTENSION_SESSION_H

#include "all_reduce.h"
#include "extension.h"
#include "monitor.h"

#include <stdbool.h>
#include <sys/types.h>

#include <flyball/session.h>

/*
 * What flyball.Session is made of: a session that any thread may call, one at a time. Calls that may wait run
 * without the GIL; a thread that comes meanwhile waits for them. Once it is closed, calls do nothing, and
 * what it knew at its end can still be read. Reporting raises nothing but what the all_reduce raises for the
 * program.
 */
struct session {
    PyObject_HEAD struct fly_session *session; /* NULL: closed, or not opened */
    struct all_reduce all_reduce;
    struct monitor *monitor; /* that it was given, or NULL */
    bool holds_monitor;
    PyThread_type_lock lock; /* held by the thread inside a call without the GIL, */
    unsigned long owner;     /* which is this one, */
    bool busy;               /* while this is set */
    unsigned waiting;        /* threads that want to be next */
    bool closing;            /* nobody else comes in */
    bool opened;
    pid_t process;               /* that opened it */
    uint32_t default_batch_size; /* of the job */
    uint32_t replicas;
    /* When it was closed. */
    struct fly_session_status last;
    struct fly_carbon_report carbon; /* size 0: the grid is not followed */
    int exit_status;
    bool over;
};

/*
 * Whether the session may be called now, after a call of another thread; not when it is closed. All of these
 * need the GIL.
 */
bool session_ready(struct session *self);

/* Around a call without the GIL, once the session is ready. */
void session_enter(struct session *self);
void session_leave(struct session *self);

/* Waits for the call that another thread is in. */
void session_wait(struct session *self);

/* Whether a call of this thread must not wait: its all_reduce calls, or the fork has left a call behind. */
bool session_is_inside(const struct session *self);

/* Keeps what may be asked of it when it is closed. */
void session_remember(struct session *self);

/* The type's attributes. */
extern PyGetSetDef session_attributes[];

#endif
