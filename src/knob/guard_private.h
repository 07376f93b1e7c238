/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GUARD_PRIVATE_H
#define FLYBALL_KNOB_GUARD_PRIVATE_H

#include <flyball/error.h>

#include "knob/turn.h"

/*
 * What a session and its guard say to each other, one message at a time over a socket
 * that keeps messages whole. Both are of one build: the first word on the guard's command
 * line says of which protocol.
 */
#define GUARD_PROTOCOL "3"
enum { GUARD_SOCKET = 3 }; /* the guard's end */
enum { GUARD_PATH_MAX = 512 };

/* Where flyball-guard is: as given; else where GUARD_VARIABLE says, beside the program, or installed. */
void guard_program(const char *given, char path[GUARD_PATH_MAX]);

/* Opens every driver through which something can be set; "": where it is installed. */
int guard_open_devices(const char *nvml_path, struct device_list *out_list, struct fly_error *out_error);

enum guard_word {
    GUARD_READY,  /* of the guard, with its pid, or the error that keeps it from being so */
    GUARD_HOLD,   /* with a lock; answered by GUARD_HELD */
    GUARD_HELD,   /* of the guard: 0 or an error */
    GUARD_TELL,   /* a turn, in place of what was told of that knob before */
    GUARD_FORGET, /* that knob stands as it should */
};

struct guard_message {
    enum guard_word word;
    pid_t pid;
    char uuid[DEVICE_TEXT_MAX];
    struct turn turn;
    struct fly_error error;
};

#endif
