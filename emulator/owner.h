/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_OWNER_H
#define FLYBALL_EMULATOR_OWNER_H

#include <sys/types.h>

#include "emulator/state.h"

/*
 * A state that goes with one process, even when that is killed.
 *
 *     emulator_create_owned(path, &settings, &emulator, &error);
 *     owner_watch(emulator, &watcher);
 *     ... work ...
 *     emulator_remove(emulator->path, NULL);
 *     owner_unwatch(&watcher);
 *     emulator_close(emulator);
 *
 * The owner holds a lock on the file, which ends with it. A second process, the watcher, waits for the
 * owner's end and removes the file. Whoever makes a state removes those whose owner and watcher were both
 * killed.
 */
struct owner_watcher {
    pid_t pid; /* 0: there is none */
    int fd;    /* a socket that the owner's end closes */
};

/* Starts the watcher. Where no process can be started, only the next state's maker removes the file. */
void owner_watch(const struct emulator *emulator, struct owner_watcher *out_watcher);

/* Ends the watcher; a file that is still there is removed. */
void owner_unwatch(struct owner_watcher *watcher);

/* Lets the state outlive this process; call it before owner_unwatch. */
void owner_leave(struct emulator *emulator);

/* Removes the state at that path and those beside the default path, where their owners have ended. */
void owner_sweep(const char *path);

#endif
