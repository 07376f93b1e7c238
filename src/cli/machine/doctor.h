/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_DOCTOR_H
#define FLYBALL_CLI_MACHINE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"

/*
 * What keeps figures from being read, and what would change it.
 *
 * Facts are gathered first, by looking at files, at permissions and at what the
 * devices answer; nothing is set or tried out. A table of ailments, each a
 * question to the facts, then says what is wrong and the command that mends it.
 */
struct doctor_facts {
    bool root;            /* the user is */
    bool reads_all_files; /* CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE */
    bool reads_perf;      /* CAP_PERFMON or CAP_SYS_ADMIN */
    int perf_paranoid;    /* kernel.perf_event_paranoid; PARANOID_UNKNOWN */
    bool container, wsl, virtual_machine;
    bool utility_left_out;   /* NVIDIA_DRIVER_CAPABILITIES is set, without utility */
    bool nvidia_on_bus;      /* a GPU of the vendor, on PCI */
    bool nvidia_module;      /* the kernel's driver is loaded */
    bool nvidia_works;       /* the library answers */
    bool nvidia_mismatch;    /* and says that it is of another version than the kernel's driver */
    bool nvidia_file_denied; /* /dev/nvidiactl is there, and may not be opened */
    bool amd_on_bus, amd_module, amd_works, amd_file_denied;
    bool powercap, powercap_denied; /* energy counters of the CPU are there; some may not be read */
    bool perf_power;                /* the kernel has the perf events of energy */
    size_t gpus;
    size_t gpus_silent;     /* of those: neither energy nor power can be read */
    size_t without_counter; /* power alone */
    size_t without_persistence, with_mig;
    size_t processes_denied; /* the processes on them may not be seen */
    bool visible_set;        /* a variable chooses GPUs */
    bool emulated;           /* some device is */
    bool cpu_measured, cpu_estimated, dram_measured;
    bool anything;                       /* some energy or power can be read */
    char kernel_driver[DEVICE_TEXT_MAX]; /* NVIDIA's in the kernel, "550.54.14"; "" not known */
};

enum { PARANOID_UNKNOWN = 99 };

/* Looks at this machine; `list` is open, `root` is where its sys, proc and dev are. */
void doctor_look(const struct device_list *list, const char *root, struct doctor_facts *out_facts);

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
