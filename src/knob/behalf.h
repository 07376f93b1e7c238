/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_BEHALF_H
#define FLYBALL_KNOB_BEHALF_H

#include <sys/types.h>

#include <flyball/error.h>

#include "knob/journal.h"

/*
 * Turns knobs with the rights of another user, and with no others: for root, whom an entry of
 * that user's tells what is to be put back.
 *
 *     struct behalf behalf = {.uid = owner, .nvml_path = nvml_path};
 *
 *     code = behalf_run(&behalf, BEHALF_PUT_BACK, &entry, out_error);
 *
 * Who may write to the journal's directory may write anything there. Root believes none of it:
 * a process that has become the user does what the entry says, by the ways that it names. So a
 * forged entry turns nothing that its forger could not turn himself.
 *
 * The process is flyball-guard in another role. It has the user's groups, none of root's files,
 * environment, keys and terminal, and is killed after ten seconds, after one once somebody has let this
 * process wait that long. Thread-safe.
 */
struct behalf {
    uid_t uid;              /* not root */
    const char *guard_path; /* of flyball-guard; NULL: as guard_start finds it */
    const char *nvml_path;  /* or NULL */
};

enum behalf_task {
    BEHALF_PUT_BACK, /* the entry's turns, each to its `previous` */
    BEHALF_ASK       /* whether the user may turn: the limit is set to what stands */
};

/*
 * 0 when it is done. FLY_EPERM where the user may not, the errors of site_set else; FLY_EUNSUPPORTED
 * where nobody could be asked, or no answer came. The text is one line of plain characters.
 */
int behalf_run(const struct behalf *behalf, enum behalf_task task, const struct journal_entry *entry,
               struct fly_error *out_error);

/* What flyball-guard runs when its first argument is this; the exit status. */
#define BEHALF_ROLE "behalf"
int behalf_main(int argc, char **argv);

#endif
