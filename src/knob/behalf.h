/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_BEHALF_H
#define FLYBALL_KNOB_BEHALF_H

#include <sys/types.h>

#include <flyball/error.h>

#include "knob/journal.h"

/*
 * Turns knobs with the rights of another user, and no others. Root uses it when an entry of that
 * user says what to put back.
 *
 *     struct behalf behalf = {.uid = owner, .nvml_path = nvml_path};
 *
 *     code = behalf_run(&behalf, BEHALF_PUT_BACK, &entry, out_error);
 *
 * Anyone who may write to the journal's directory may write anything there, so root believes none
 * of it. Instead, a process that has become the user does what the entry says, by the ways that
 * it names. So a forged entry can do nothing that its forger could not do himself.
 *
 * The process is flyball-guard in another role. It has the user's groups, and none of root's
 * files, environment, keys and terminal. It is killed after ten seconds, or after one second if
 * an earlier one has made this process wait that long. Thread-safe.
 */
struct behalf {
    uid_t uid;               /* not root */
    const char *guard_path;  /* of flyball-guard; NULL: searched as by guard_start */
    const char *nvml_path;   /* or NULL */
    const char *amdsmi_path; /* or NULL */
    const char *pci;         /* of the GPU, which alone is opened; NULL: all are */
};

enum behalf_task {
    BEHALF_PUT_BACK, /* puts each of the entry's turns back to its `previous` */
    BEHALF_ASK       /* tests whether the user may turn: sets the limit that is in force */
};

/*
 * Runs the task; returns 0 on success. FLY_EPERM if the user may not, FLY_EUNSUPPORTED if the
 * process could not be started or gave no answer, else the errors of site_set. The text is one
 * line of plain characters.
 */
int behalf_run(const struct behalf *behalf, enum behalf_task task, const struct journal_entry *entry,
               struct fly_error *out_error);

/* Runs flyball-guard when its first argument is this; returns the exit status. */
#define BEHALF_ROLE "behalf"
int behalf_main(int argc, char **argv);

#endif
