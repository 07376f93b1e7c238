/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_DOCTOR_H
#define FLYBALL_CLI_MACHINE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "device/recording/facts.h"
#include "knob/way/site.h"

/*
 * What prevents figures from being read, and how to change that.
 *
 * Facts are gathered first, from files, permissions and the devices' answers; nothing is set or
 * tried out. Then a table of ailments, each a question about the facts, gives what is wrong and
 * the command that fixes it.
 */
enum { DOCTOR_WHY_MAX = 512 };

struct doctor_daemon {
    const char *place; /* where one would be; borrowed from the site; "" for nowhere */
    size_t lets, refuses,
        unasked;  /* GPUs, of which it was asked, or cannot be asked, whether it would turn them */
    bool sought;  /* it was looked for; a recorded machine cannot be asked */
    bool answers; /* somebody is there */
    char why[DOCTOR_WHY_MAX]; /* of the first GPU that it refuses, or why it cannot be asked */
};

struct doctor_facts {
    struct facts_machine machine;
    bool nvidia_works;    /* the library answers */
    bool nvidia_mismatch; /* and reports another version than the kernel's driver */
    bool amd_works;
    size_t gpus;
    size_t gpus_silent;     /* of those: neither energy nor power can be read */
    size_t without_counter; /* only power can be read */
    size_t without_persistence, with_mig;
    size_t processes_denied; /* the processes on them cannot be seen */
    size_t others_unseen;    /* somebody uses them, or may, who cannot be seen in this container */
    bool emulated;           /* some device is */
    bool cpu_measured, cpu_estimated, dram_measured;
    bool anything;               /* some energy or power can be read */
    struct doctor_daemon daemon; /* of users whom the driver refuses */
};

/* Asks the devices of `list`; `machine` is the one that has them. */
void doctor_look(const struct device_list *list, const struct facts_machine *machine,
                 struct doctor_facts *out_facts);

/* Looks whether the GPUs have users outside of this container (knob/unseen.h); where they have, that takes a
 * second for each. */
void doctor_look_outside(const struct device_list *list, struct doctor_facts *facts);

enum severity { SEVERITY_PROBLEM, SEVERITY_NOTE };

struct ailment {
    const char *topic; /* one of doctor_topics */
    enum severity severity;
    bool (*holds)(const struct doctor_facts *facts);
    const char *finding; /* a clause */
    const char *remedy;  /* a command, or what else to do; NULL: nothing needs fixing */
};

extern const struct ailment doctor_ailments[]; /* ends with topic NULL */

/* "nvidia", "amd", "rapl", ..., ends with NULL. */
extern const char *const doctor_topics[];

/* Returns the topic of a device. */
const char *doctor_topic_of(const struct device *device);

/*
 * Asks the site's daemon whether it would turn the GPUs, if the driver lets this user turn none. The texts of
 * `site` are borrowed.
 */
void doctor_ask_daemon(const struct device_list *list, const struct site *site, struct doctor_facts *facts);

/*
 * Writes, as a clause, whether this user may set the GPUs' power limit, and returns what would let him: a
 * command, or NULL.
 */
enum { DOCTOR_SETTABLE_MAX = 1024 };

/* Writes the answer in short: "Can measure: yes. Can set limits: yes, through flyballd." */
void doctor_first(const struct doctor_facts *facts, char text[DOCTOR_SETTABLE_MAX]);

const char *doctor_settable(const struct doctor_facts *facts, char text[DOCTOR_SETTABLE_MAX]);

#endif
