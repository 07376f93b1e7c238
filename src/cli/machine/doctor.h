/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_DOCTOR_H
#define FLYBALL_CLI_MACHINE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "device/recording/facts.h"

/*
 * What keeps figures from being read, and what would change it.
 *
 * Facts are gathered first, by looking at files, at permissions and at what the
 * devices answer; nothing is set or tried out. A table of ailments, each a
 * question to the facts, then says what is wrong and the command that mends it.
 */
struct doctor_facts {
    struct facts_machine machine;
    bool nvidia_works;    /* the library answers */
    bool nvidia_mismatch; /* and says that it is of another version than the kernel's driver */
    bool amd_works;
    size_t gpus;
    size_t gpus_silent;     /* of those: neither energy nor power can be read */
    size_t without_counter; /* power alone */
    size_t without_persistence, with_mig;
    size_t processes_denied; /* the processes on them may not be seen */
    bool emulated;           /* some device is */
    bool cpu_measured, cpu_estimated, dram_measured;
    bool anything; /* some energy or power can be read */
};

/* Asks the devices of `list`; `machine` is that on which they are. */
void doctor_look(const struct device_list *list, const struct facts_machine *machine,
                 struct doctor_facts *out_facts);

enum severity { SEVERITY_PROBLEM, SEVERITY_NOTE };

struct ailment {
    const char *topic; /* of doctor_topics */
    enum severity severity;
    bool (*holds)(const struct doctor_facts *facts);
    const char *finding; /* a clause */
    const char *remedy;  /* a command, or what else to do; NULL: nothing to mend */
};

extern const struct ailment doctor_ailments[]; /* ends with topic NULL */

/* "nvidia", "amd", "rapl", ..., ends with NULL. */
extern const char *const doctor_topics[];

/* The topic to which a device belongs. */
const char *doctor_topic_of(const struct device *device);

/* Whether somebody may turn the power limit of GPUs: a clause. */
const char *doctor_settable(const struct doctor_facts *facts);

#endif
