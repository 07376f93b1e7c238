/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_GUARD_PRIVATE_H
#define FLYBALL_KNOB_GUARD_PRIVATE_H

#include <flyball/error.h>

#include "knob/journal.h"
#include "knob/turn.h"

/*
 * The messages between a session and its guard, one at a time over a socket that keeps messages
 * whole. Both must be of one build: the first word on the guard's command line names the
 * protocol.
 */
#define GUARD_PROTOCOL "8"
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

/* ---- inside the guard ---- */

enum { GUARD_TURNS_MAX = DEVICES_MAX * TURNS_MAX };

struct told {
    char uuid[DEVICE_TEXT_MAX];
    struct turn turn;
    bool denied; /* the driver refused this user */
    int looks;   /* how many more times to check whether the knob stays where it was put back */
};

/* Large; there is only one. */
struct guarding {
    struct device_list list;
    const char *nvml_path, *amdsmi_path;
    struct site site;
    const char *directory;
    pid_t session;
    int session_fd; /* readable when the session has ended; -1: unavailable */
    int locks[DEVICES_MAX];
    size_t lock_count;
    struct held {
        char uuid[DEVICE_TEXT_MAX], pci[DEVICE_PCI_MAX];
    } held[DEVICES_MAX];               /* the GPUs of the locks */
    struct told told[GUARD_TURNS_MAX]; /* in the order in which the knobs were first turned */
    size_t told_count;
};

/* Begins by the words of the command line, detached from the session. FLY_EUSAGE. */
int guarding_begin(int argc, char **argv, struct guarding *out_guarding);

/* Attends the session until it ends, puts back, makes debts of what it cannot, and releases the locks. */
void guarding_attend(struct guarding *guarding);

/* Returns the GPU, or NULL if it is not open. */
const struct device *guarding_device(const struct guarding *guarding, const char *uuid);

/* Returns whether a turn is left that is in that file of the GPU. */
bool guarding_is_told_of(const struct guarding *guarding, const char *uuid, enum journal_kind kind);

/*
 * Puts back what was turned last first, on one GPU or on all (NULL), under the lock. Tries again what fails.
 * A command that the session was waiting for when it ended may still be running: its knob is checked again.
 */
void guarding_put_back(struct guarding *guarding, const char *only_uuid);

#endif
