/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a session as Python sees it: one table says which figures there are. */
#include "session_status.h"

#include "table.h"

static const char *answer_word(int answer)
{
    return fly_answer_name((enum fly_answer)answer);
}

static const struct table_field figures[] = {
#define FIGURE(name, kind, doc) TABLE_FIELD(struct fly_session_status, name, TABLE_##kind, doc)
    FIGURE(connected, FLAG, "whether the job's log answered when it was asked last"),
    FIGURE(disabled, FLAG, "by FLYBALL_DISABLE=1"),
    FIGURE(trial, NUMBERED, "number in the job's log; None: not known there"),
    FIGURE(attempt, COUNT_32, "at that trial; more than 1 after a requeue"),
    FIGURE(recurrence, COUNT, "from 0"),
    FIGURE(try_number, COUNT_32, "from 0"),
    FIGURE(last_try, FLAG, "whether no other try may follow"),
    FIGURE(batch_size, COUNT_32, "of all ranks together"),
    FIGURE(local_batch_size, COUNT_32, "of this rank"),
    FIGURE(epoch, COUNT_32, "the last that ended"),
    FIGURE(epochs_done, COUNT_32, "by earlier attempts"),
    FIGURE(epochs_max, COUNT_32, "this training may run, as far as is known"),
    TABLE_FIELD_WORD(struct fly_session_status, answer, answer_word, "'go on', 'reached' or 'stop'"),
    FIGURE(limit_w, REAL, "W: the power limit that was set; None: none was"),
    FIGURE(energy_j, REAL, "J of this training, all attempts and GPUs, at the last report"),
    FIGURE(time_s, REAL, "s, likewise"),
    FIGURE(kept, COUNT, "reports on the disk that are not delivered yet"),
    FIGURE(why, TEXT, "this choice, in a sentence"),
    FIGURE(text, TEXT, "why the job's log is not used; '' if it is"),
    FIGURE(limit_text, TEXT, "why the limit is not set; '' if it is, or none is to be"),
#undef FIGURE
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static PyTypeObject *status_type;

PyObject *session_status_new(const struct fly_session_status *status)
{
    return table_make(status_type, figures, FIGURES, status);
}

int session_status_add(PyObject *module)
{
    status_type =
        table_add(module, "flyball.SessionStatus",
                  "How a Session stands. A figure that is not known is None.", figures, FIGURES, FIGURES);
    return status_type != NULL ? 0 : -1;
}
