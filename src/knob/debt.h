/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_DEBT_H
#define FLYBALL_KNOB_DEBT_H

#include <stdbool.h>

#include <flyball/error.h>

#include "device/device.h"
#include "knob/journal.h"

/*
 * What is owed to a GPU: knobs that could not be put back to what stood before, or only in part. A debt is a
 * turn in the journal's file "UUID.owed": `previous` is what is owed, and `earlier` and `ours` say where the
 * knob stands meanwhile.
 *
 *     a range shrank, a driver refuses,   whoever puts back makes the debt (turn.h, repair.h)
 *     a GPU is lost
 *     it can be put back                  the guard that made it settles it, for an hour and
 *                                         ever more rarely; so do flyballd, and the next
 *                                         command that opens the GPU
 *     another program or a user sets it   the debt ends
 *     a session turns the knob            it takes the debt over: what it puts back at its end
 *                                         is what is owed, as near as can be set then
 *
 * A debt holds no lock: meanwhile everybody may turn the knob. Those of other users are not believed, and
 * left to them. The files are only written under the lock of their GPU. Versions without debts pass them
 * over.
 */

/*
 * Writes a debt down, in the place of an older one of that knob. `from` is the entry that the turn was in: it
 * says who turned the knob, and by which ways. Errors as journal_write.
 */
int debt_keep(const char *directory, const struct journal_entry *from, const struct turn *turn,
              struct fly_error *out_error);

/*
 * Makes debts of all turns of an entry that could not be put back, in place of the entry, so that it holds up
 * nobody; one that was made while that was tried stays, as it knows better where the knob stands. Errors as
 * journal_read and journal_write.
 */
int debt_keep_entry(const char *directory, const char *uuid, enum journal_kind kind,
                    struct fly_error *out_error);

/* Finds the debt of a knob, in this directory or in that of a daemon in it; false if there is none. */
bool debt_find(const char *directory, const char *uuid, enum quantity quantity, struct turn *out_debt);

/* Ends the debt of a knob in both, since somebody has set it. What cannot be removed stands no more. */
void debt_end(const char *directory, const char *uuid, enum quantity quantity);

/*
 * Says what is owed to a GPU and what ends that, as a sentence without a full stop; false and "" for nothing.
 */
enum { DEBT_TEXT_MAX = 400 };
bool debt_say(const char *directory, const struct device *device, char text[DEBT_TEXT_MAX]);

#endif
