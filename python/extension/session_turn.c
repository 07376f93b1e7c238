/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a session at a time, whichever thread it comes from. */
#include "session.h"

#include <time.h>
#include <unistd.h>

void session_wait(struct session *self)
{
    int held;

    self->waiting++;
    Py_BEGIN_ALLOW_THREADS
    held = PyThread_acquire_lock(self->lock, WAIT_LOCK);
    if (held)
        PyThread_release_lock(self->lock);
    Py_END_ALLOW_THREADS
    self->waiting--;
}

bool session_is_inside(const struct session *self)
{
    return self->busy && (self->owner == PyThread_get_thread_ident() || self->process != getpid());
}

bool session_ready(struct session *self)
{
    while (self->busy && !self->closing && !session_is_inside(self))
        session_wait(self);
    return self->session != NULL && !self->busy && !self->closing;
}

void session_enter(struct session *self)
{
    self->busy = true;
    self->owner = PyThread_get_thread_ident();
    (void)PyThread_acquire_lock(self->lock, WAIT_LOCK);
}

void session_remember(struct session *self)
{
    self->last.size = sizeof self->last;
    (void)fly_session_status(self->session, &self->last);
    self->carbon.size = sizeof self->carbon;
    if (fly_session_carbon(self->session, &self->carbon) < 0)
        self->carbon.size = 0;
    self->exit_status = fly_session_exit_status(self->session);
    self->over = fly_session_is_over(self->session);
}

/* Those who wait go first, or a thread that only calls this session would keep them out. */
void session_leave(struct session *self)
{
    static const struct timespec moment = {.tv_nsec = 100000};

    if (self->session != NULL)
        session_remember(self);
    self->busy = false;
    PyThread_release_lock(self->lock);
    if (self->waiting == 0 || self->closing)
        return;
    Py_BEGIN_ALLOW_THREADS
    nanosleep(&moment, NULL);
    Py_END_ALLOW_THREADS
}
