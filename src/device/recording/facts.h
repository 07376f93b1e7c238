/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_RECORDING_FACTS_H
#define FLYBALL_DEVICE_RECORDING_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/arena.h"
#include "device/device.h"

/*
 * What a machine says of itself, as a file: its devices with what each answers, its
 * drivers, what this user may do. A recording holds how readings go on; facts hold one
 * moment, and what lies around it. A user sends such a file of a machine on which
 * something went wrong, and a test plays it.
 *
 * One JSON document, whose members are those of the structs below (facts_shapes.c).
 * Unknown texts and numbers are null. Nothing in it names a person or a machine: devices
 * have pseudonyms (pseudonyms.h), and there is no host, no user, no process and no path
 * of a home.
 *
 *     code = facts_parse("a100.facts", text, length, &facts, out_error);
 *     ... facts->machine.container, facts->devices[0].name ...
 *     facts_free(facts);
 *
 * device_list_open opens such a file as it opens a recording, where the options allow it:
 * its devices answer what they answered then, whenever they are asked, and the reports of
 * back ends are those of that machine. facts_played finds the rest.
 */
#define FACTS_SCHEMA "flyball.facts/1"

enum { FACTS_BYTES_MAX = 1 << 22, FACTS_DOMAINS_MAX = 256, FACTS_WAYS_MAX = 8, FACTS_LOOKS_MAX = 3 };

/* What a device answered to the question for a quantity. */
struct facts_answer {
    enum quantity quantity;
    enum reading_state state;
    double value;  /* in the quantity's unit; NAN without one */
    uint32_t code; /* of the driver; 0: none */
};

/* How a figure moved while it was watched for a moment. What was not seen is NAN. */
struct facts_look {
    enum quantity quantity;
    uint32_t polls, changes;
    double watched_s;      /* from the first poll to the last */
    double period_s;       /* between two changes, the median */
    double least_period_s; /* the shortest of those */
    bool at_most;          /* it may well change more often than it was polled */
    double least_step;     /* the smallest change, in the quantity's unit */
    double common_divisor; /* of all changes */
};

/* The sensor facts that Flyball assumed (struct sensor_facts). What is not known is NAN. */
struct facts_sensor {
    double counter_period_s, power_period_s, power_window_s, gain_error;
    bool counter_from_power;
    const char *source;
};

/* Whether the processes on a device can be seen; which they are is not told. */
enum facts_processes { PROCESSES_NOT_OFFERED, PROCESSES_SEEN, PROCESSES_DENIED, PROCESSES_FAILED };

/* Whether a power limit may be set, as far as one knows without doing it. */
enum facts_may { MAY_NOT, MAY_UNLIKELY, MAY_LIKELY, MAY, MAY_COUNT };
extern const char *const facts_may_words[MAY_COUNT];

struct facts_device {
    enum device_kind kind;
    const char *backend;   /* the name of one of the back ends below */
    const char *pseudonym; /* in place of its UUID: "GPU-0" */
    const char *bus;       /* its place in the order of the PCI bus: "bus-0" */
    const char *name, *driver, *note;
    bool has_minor;
    uint32_t minor; /* of /dev/nvidiaN */
    bool emulated, estimated, module_power, mig, denied;
    uint64_t memory_bytes, energy_modulus_uj; /* 0: not known; does not wrap */
    struct facts_sensor sensor;
    enum facts_processes processes;
    enum facts_may may_be_set; /* its power limit */
    const char *why_not;       /* "": nothing speaks against it */
    size_t answer_count, clock_count, look_count;
    struct facts_answer *answers; /* at most one for each quantity */
    uint32_t *clocks_mhz;         /* that it can be held to, highest first */
    struct facts_look *looks;
};

/* What became of a back end: a report of a device list. */
enum facts_state { FACTS_WORKS, FACTS_ABSENT, FACTS_DENIED, FACTS_BROKEN };
struct facts_backend {
    const char *name, *title;
    enum device_kind kind;
    enum facts_state state;
    const char *error; /* why it offers nothing, or not all; "": it does */
};

/* An energy counter of the CPU that the kernel shows, used by Flyball or not. */
enum facts_through { THROUGH_POWERCAP, THROUGH_PERF };
struct facts_domain {
    enum facts_through through;
    const char *name;  /* "package-0", "psys"; "energy-pkg" */
    uint64_t range_uj; /* of its counter; 0: not told */
    bool readable;
};

/* A way to turn knobs (knob/way/site.h). */
struct facts_way {
    const char *name;    /* "driver" */
    bool found;          /* it is there to be tried for some GPU */
    bool named;          /* by the user, not found where such things lie */
    const char *why_not; /* what speaks against it; "": nothing */
};

enum facts_cgroups { CGROUPS_NONE, CGROUPS_1, CGROUPS_2, CGROUPS_BOTH };
enum facts_directory { DIRECTORY_NONE, DIRECTORY_RUN, DIRECTORY_TMP, DIRECTORY_NAMED };

/* What there is beside devices, and what this user may do. */
struct facts_machine {
    const char *kernel, *architecture; /* "6.8.0-45-generic", "x86_64" */
    enum facts_cgroups cgroups;
    bool root;            /* the user is */
    bool reads_all_files; /* CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE */
    bool reads_perf;      /* CAP_PERFMON or CAP_SYS_ADMIN */
    double perf_paranoid; /* kernel.perf_event_paranoid; NAN: not known */
    bool container, wsl, virtual_machine;
    bool utility_left_out;            /* NVIDIA_DRIVER_CAPABILITIES is set, without utility */
    bool nvidia_on_bus;               /* a GPU of the vendor, on PCI */
    bool nvidia_module;               /* the kernel's driver is loaded */
    bool nvidia_file_denied;          /* /dev/nvidiactl is there, and may not be opened */
    const char *nvidia_kernel_driver; /* the version in the kernel, "550.54.14"; NULL: not known */
    bool amd_on_bus, amd_module, amd_file_denied;
    bool powercap, powercap_denied;  /* energy counters of the CPU are there; some may not be read */
    bool perf_power;                 /* the kernel has the perf events of energy */
    bool cuda_visible_devices;       /* the variables that choose GPUs are set: CUDA_VISIBLE_DEVICES */
    bool hip_visible_devices;        /* HIP_VISIBLE_DEVICES */
    bool rocr_visible_devices;       /* ROCR_VISIBLE_DEVICES */
    bool operators_lock;             /* a file keeps knobs from being turned */
    enum facts_directory knob_files; /* where the locks and the journal of knobs lie */
    bool knob_files_writable;
};

struct facts {
    unsigned schema;     /* 0: FACTS_SCHEMA, the only one */
    const char *flyball; /* the version that wrote it */
    const char *date;    /* "2026-11-22" */
    struct facts_machine machine;
    size_t way_count, domain_count, backend_count, device_count;
    struct facts_way *ways;
    struct facts_domain *domains;
    struct facts_backend *backends;
    struct facts_device *devices;
    struct arena arena; /* owned: all texts and lists */
};

/* Empty facts; NULL without memory. */
struct facts *facts_new(void);

/* Accepts NULL. */
void facts_free(struct facts *facts);

/*
 * Reads the rest of a file of which the head was read already; `name` stands for its path.
 * FLY_EDATA with file, line, member and what was expected for what holds no facts; FLY_ELIMIT
 * beyond the sizes above; FLY_EREAD, FLY_ENOMEM. The caller closes the stream.
 */
int facts_load_stream(const char *name, const char *head, size_t head_length, FILE *stream,
                      struct facts **out_facts, struct fly_error *out_error);

/* The same from a text. */
int facts_parse(const char *name, const char *text, size_t length, struct facts **out_facts,
                struct fly_error *out_error);

/* The document; a new reference. FLY_EDATA and FLY_ELIMIT for what could not be read again. */
int facts_document(const struct facts *facts, json_t **out_document, struct fly_error *out_error);

/* Whether a text that begins so is that of a file of facts. */
bool facts_begin(const char *text, size_t length);

/*
 * Fills an empty list with the devices of the facts, and its reports. Takes them: the list
 * frees them when it is closed, also after a failure of this.
 */
int facts_play(struct facts *facts, struct device_list *list, struct fly_error *out_error);

/* The facts that the list plays; NULL for this machine's devices, and for a recording. */
const struct facts *facts_played(const struct device_list *list);

#endif
