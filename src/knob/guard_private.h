/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GUARD_PRIVATE_H
#define FLYBALL_KNOB_GUARD_PRIVATE_H

#include <flyball/error.h>

#include "knob/turn.h"

/*
 * The messages between a session and its guard, one at a time over a socket that keeps messages
 * whole. Both must be of one build: the first word on the guard's command line names the
 * protocol.
 */
#define GUARD_PROTOCOL "7"
enum { GUARD_SOCKET = 3 }; /* the guard's end */
enum { GUARD_PATH_MAX = 512 };

/* Finds flyball-guard: as given; else where GUARD_VARIABLE says, beside the program or the library, or
 * installed. */
void guard_program(const char *given, char path[GUARD_PATH_MAX]);

/*
 * Opens the GPU at a PCI address, or those of every driver through which something can be set if that is "";
 * a path of "" is the installed driver. Adds to the list.
 */
int guard_open_devices(const char *nvml_path, const char *amdsmi_path, const char *pci,
                       struct device_list *list, struct fly_error *out_error);

enum guard_word {
    GUARD_READY,  /* from the guard, with its pid, or with the error that keeps it from being ready */
    GUARD_HOLD,   /* a GPU, with a lock; the answer is GUARD_HELD */
    GUARD_HELD,   /* from the guard: 0 or an error */
    GUARD_TELL,   /* a turn; replaces what was told of that knob before */
    GUARD_FORGET, /* that knob is back as it should be */
};

struct guard_message {
    enum guard_word word;
    pid_t pid;
    char uuid[DEVICE_TEXT_MAX], pci[DEVICE_PCI_MAX];
    struct turn turn;
    struct fly_error error;
};

#endif
