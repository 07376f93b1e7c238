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
 * What a machine reports about itself, as a file: its devices and what each answers, its drivers,
 * what this user may do. A recording shows how readings change; facts show one moment, and the
 * conditions around it. A user can send such a file from a machine on which something went wrong,
 * and a test can play it.
 *
 * One JSON document, whose members are those of the structs below (facts_shapes.c). Unknown texts
 * and numbers are null. Nothing in it names a person or a machine: devices have pseudonyms
 * (pseudonyms.h), and there is no host, no user, no process and no path of a home.
 *
 *     code = facts_parse("a100.facts", text, length, &facts, out_error);
 *     ... facts->machine.container, facts->devices[0].name ...
 *     facts_free(facts);
 *
 * device_list_open opens such a file like a recording, if the options allow it: its devices
 * always answer what they answered then, and the reports of back ends are those of that machine.
 * facts_played gives the rest.
 */
#define FACTS_SCHEMA "flyball.facts/1"

enum { FACTS_BYTES_MAX = 1 << 22, FACTS_DOMAINS_MAX = 256, FACTS_WAYS_MAX = 8, FACTS_LOOKS_MAX = 3 };

/* A device's answer for one quantity. */
struct facts_answer {
    enum quantity quantity;
    enum reading_state state;
    double value;  /* in the quantity's unit; NAN without one */
    uint32_t code; /* of the driver; 0: none */
};

/* How a figure changed while it was watched for a moment. NAN: not observed. */
struct facts_look {
    enum quantity quantity;
    uint32_t polls, changes;
    double watched_s;      /* from the first poll to the last */
    double period_s;       /* between two changes, the median */
    double least_period_s; /* the shortest of those */
    bool at_most;          /* it may change more often than it was polled */
    double least_step;     /* the smallest change, in the quantity's unit */
    double common_divisor; /* of all changes */
};

/* The sensor facts that Flyball assumed (struct sensor_facts). Unknown ones are NAN. */
struct facts_sensor {
    double counter_period_s, power_period_s, power_window_s, gain_error;
    bool counter_from_power;
    const char *source;
};

/* Whether the processes on a device can be seen; not which they are. */
enum facts_processes { PROCESSES_NOT_OFFERED, PROCESSES_SEEN, PROCESSES_DENIED, PROCESSES_FAILED };

/* Whether a power limit may be set, as far as this can be known without setting one. */
enum facts_may { MAY_NOT, MAY_UNLIKELY, MAY_LIKELY, MAY, MAY_COUNT };
extern const char *const facts_may_words[MAY_COUNT];

struct facts_device {
    enum device_kind kind;
    const char *backend;   /* the name of one of the back ends below */
    const char *pseudonym; /* replaces its UUID: "GPU-0" */
    const char *bus;       /* its position in the order of the PCI bus: "bus-0" */
    const char *name, *driver, *note;
    bool has_minor;
    uint32_t minor; /* of /dev/nvidiaN */
    bool emulated, estimated, module_power, mig, denied;
    uint64_t memory_bytes, energy_modulus_uj; /* 0: unknown; 0: does not wrap */
    struct facts_sensor sensor;
    enum facts_processes processes;
    enum facts_may may_be_set; /* its power limit */
    const char *why_not;       /* "": no obstacle is known */
    size_t answer_count, clock_count, look_count;
    struct facts_answer *answers; /* at most one for each quantity */
    uint32_t *clocks_mhz;         /* to which it can be held, highest first */
    struct facts_look *looks;
};

/* The result of a back end, as in a report of a device list. */
enum facts_state { FACTS_WORKS, FACTS_ABSENT, FACTS_DENIED, FACTS_BROKEN };
struct facts_backend {
    const char *name, *title;
    enum device_kind kind;
    enum facts_state state;
    const char *error; /* why it offers nothing, or not everything; "" if it offers all */
};

/* An energy counter of the CPU that the kernel shows, whether Flyball uses it or not. */
enum facts_through { THROUGH_POWERCAP, THROUGH_PERF };
struct facts_domain {
    enum facts_through through;
    const char *name;  /* "package-0", "psys"; "energy-pkg" */
    uint64_t range_uj; /* of its counter; 0: not stated */
    bool readable;
};

/* A way to turn knobs (knob/way/site.h). */
struct facts_way {
    const char *name;    /* "driver" */
    bool found;          /* it can be tried for some GPU */
    bool named;          /* by the user, as opposed to found at its usual place */
    const char *why_not; /* what speaks against it; "": nothing */
};

enum facts_cgroups { CGROUPS_NONE, CGROUPS_1, CGROUPS_2, CGROUPS_BOTH };
enum facts_directory { DIRECTORY_NONE, DIRECTORY_RUN, DIRECTORY_TMP, DIRECTORY_NAMED };

/* Facts about the machine besides its devices, and what this user may do. */
struct facts_machine {
    const char *kernel, *architecture; /* "6.8.0-45-generic", "x86_64" */
    enum facts_cgroups cgroups;
    bool root;            /* the user is root */
    bool reads_all_files; /* CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE */
    bool reads_perf;      /* CAP_PERFMON or CAP_SYS_ADMIN */
    double perf_paranoid; /* kernel.perf_event_paranoid; NAN: unknown */
    bool container, wsl, virtual_machine;
    bool utility_left_out;            /* NVIDIA_DRIVER_CAPABILITIES is set, without utility */
    bool nvidia_on_bus;               /* a GPU of the vendor, on PCI */
    bool nvidia_module;               /* the kernel's driver is loaded */
    bool nvidia_file_denied;          /* /dev/nvidiactl exists, and may not be opened */
    const char *nvidia_kernel_driver; /* the version in the kernel, "550.54.14"; NULL: unknown */
    bool amd_on_bus, amd_module, amd_file_denied;
    bool powercap, powercap_denied;  /* energy counters of the CPU exist; some may not be read */
    bool perf_power;                 /* the kernel has the perf events of energy */
    bool cuda_visible_devices;       /* CUDA_VISIBLE_DEVICES, which chooses GPUs, is set */
    bool hip_visible_devices;        /* HIP_VISIBLE_DEVICES is set */
    bool rocr_visible_devices;       /* ROCR_VISIBLE_DEVICES is set */
    bool operators_lock;             /* a file forbids turning knobs */
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

/* Returns empty facts; NULL without memory. */
struct facts *facts_new(void);

/* Accepts NULL. */
void facts_free(struct facts *facts);

/*
 * Reads the rest of a file whose head was already read; `name` is used for its path. FLY_EDATA
 * with file, line, member and what was expected if it holds no facts; FLY_ELIMIT beyond the sizes
 * above; FLY_EREAD, FLY_ENOMEM. The caller closes the stream.
 */
int facts_load_stream(const char *name, const char *head, size_t head_length, FILE *stream,
                      struct facts **out_facts, struct fly_error *out_error);

/* Does the same from a text. */
int facts_parse(const char *name, const char *text, size_t length, struct facts **out_facts,
                struct fly_error *out_error);

/* Gives the document as a new reference. FLY_EDATA and FLY_ELIMIT for facts that could not be read again. */
int facts_document(const struct facts *facts, json_t **out_document, struct fly_error *out_error);

/* Returns whether a text with this beginning is a file of facts. */
bool facts_begin(const char *text, size_t length);

/*
 * Fills an empty list with the devices of the facts, and its reports. Takes the facts: the list
 * frees them when it is closed, even if this call failed.
 */
int facts_play(struct facts *facts, struct device_list *list, struct fly_error *out_error);

/* Returns the facts that the list plays; NULL for this machine's devices, and for a recording. */
const struct facts *facts_played(const struct device_list *list);

#endif
