/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_PYTHON_HOOK_H
#define FLYBALL_CLI_PROGRAM_PYTHON_HOOK_H

#include <stdbool.h>

#include <flyball/error.h>

#include "train/program/step_hook.h"

/*
 * The start-up hook for a program's Pythons (python/hook/). A Python finds it by PYTHONPATH, which is set for
 * every program, since Python may stand behind a shell or a launcher.
 *
 *     python_hook_put(&hook, out_error);
 *     ... fork the program ...
 *     python_hook_take_back(&hook);
 *
 * Its directory is named by FLYBALL_PYTHON_HOOK, or lies beside this program as in a build, or in the prefix
 * that this program lies in, or where Flyball was installed.
 */
#define PYTHON_HOOK_VARIABLE "FLYBALL_PYTHON_HOOK"
#define PYTHON_PATH_VARIABLE "PYTHONPATH"

enum { PYTHON_HOOK_PATH_MAX = 4096 };

struct python_hook {
    bool put;
    char *before; /* the value that PYTHONPATH had; owned; NULL: it was not set */
};

/* Puts the directory first on PYTHONPATH. FLY_ENOTFOUND, FLY_EUSAGE for a path with a colon, FLY_ENOMEM. */
int python_hook_put(struct python_hook *out_hook, struct fly_error *out_error);

/* Does the same for a program whose steps are read: `hook` says that it is offered, or why not. */
void python_hook_offer(struct python_hook *out_hook, struct step_hook *hook);

/* Puts the variable back; does nothing unless it was put. */
void python_hook_take_back(struct python_hook *hook);

/* Finds the directory; false when there is none. */
bool python_hook_find(char path[PYTHON_HOOK_PATH_MAX]);

#endif
