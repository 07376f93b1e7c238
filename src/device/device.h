/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_DEVICE_H
#define FLYBALL_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/clock.h"
#include "device/device_processes.h"
#include "device/quantity.h"
#include "device/workloads.h"

/*
 * Devices whose energy can be measured: GPUs, CPU packages, memory.
 *
 * A back end (NVML, AMD SMI, RAPL, ...) is one constant table of functions; the array of
 * open/backends.c has all of them. Opening a list opens every device that it finds, and reports
 * for each back end what it found or why not:
 *
 *     struct device_options options = {0};
 *     struct device_list list;
 *
 *     device_list_open(&options, &list, out_error);
 *     for (size_t i = 0; i < list.count; i++) {
 *         struct device_reading reading;
 *
 *         device_read(&list.devices[i], &clock_real, QUANTITY_BIT(QUANTITY_ENERGY), &reading);
 *         if (reading.values[QUANTITY_ENERGY].state == READING_OK)
 *             ...
 *     }
 *     device_list_close(&list);
 *
 * Reading is thread-safe, also for several threads on one device; it allocates nothing and never
 * sets anything. Only device_set and device_request_workloads set something, and knob/ decides who
 * may call them. Opening and
 * closing are for one thread. After fork only the parent may use a list; `device_list_close` in
 * the child only frees memory, if the child calls it.
 */

enum device_kind { DEVICE_GPU, DEVICE_CPU, DEVICE_DRAM, DEVICE_KIND_COUNT };

/* Returns "GPU", "CPU" or "DRAM". */
const char *device_kind_name(enum device_kind kind);

/* Gives the kind of that name; false, with the out-parameter untouched, if there is none. */
bool device_kind_find(const char *name, enum device_kind *out_kind);

/* How a device makes its figures, which limits how certain an energy can be. 0: unknown. */
struct sensor_facts {
    double counter_period_s; /* between two updates of the energy counter */
    double power_period_s;   /* between two updates of the power reading */
    double power_window_s;   /* the part of each period that the power reading averages; may exceed the
                              * period */
    bool counter_from_power; /* the counter sums the power readings, so it sees only their windows */
    double gain_error;       /* of the board's sensor, as a fraction: 0.05; from literature, since no
                              * software can see it */
    const char *source;      /* of these figures: a paper, a manual, "assumed" */
};

enum { DEVICE_TEXT_MAX = 96, DEVICE_PCI_MAX = 32, DEVICE_CLOCKS_MAX = 512 };

/* Facts that do not change while a list is open. Unknown texts are empty. */
struct device_info {
    enum device_kind kind;
    unsigned index;               /* within its kind on this node, counting all: the 1 of "GPU 1" */
    char name[DEVICE_TEXT_MAX];   /* "NVIDIA A100-SXM4-80GB", "package-0" */
    char uuid[DEVICE_TEXT_MAX];   /* identifies the device on its node, never empty: "GPU-...", "cpu-0" */
    char pci[DEVICE_PCI_MAX];     /* "00000000:07:00.0" */
    char driver[DEVICE_TEXT_MAX]; /* of the driver, "550.54.14" */
    int minor;                    /* of /dev/nvidiaN; -1: unknown */
    bool emulated;                /* an emulator answers, not hardware */
    bool estimated;               /* ENERGY is computed from use and a stated power; nothing is measured */
    bool module_power; /* in files of 0.2 and before: its power and energy are those of its module, with the
                          CPU */
    bool mig;          /* shared: a MIG instance is measured as its whole GPU */
    bool denied;       /* it may not be opened, so programs neither see nor count it */
    bool silent; /* its driver did not answer in time while it was opened: its uuid is made up, and nothing of
                    it can be read */
    uint64_t memory_bytes;      /* of a GPU; 0: unknown, for example if MIG shares it */
    uint64_t energy_modulus_uj; /* where the counter wraps to 0; 0: it never wraps */
    struct sensor_facts sensor;
    char note[160]; /* a clause: what a user should know about this device's figures; often empty */
};

struct device_reading {
    struct mono_time before, after; /* of the reading, by the reader's clock */
    struct reading values[QUANTITY_COUNT];
};

struct device_backend;

struct device {
    const struct device_backend *backend;
    struct device_info info;
    void *state; /* of the back end, one for each device or shared by all */
};

/* What to open. All texts are borrowed while the list is open; NULL means the default. */
struct device_options {
    const char *nvml_path;     /* of libnvidia-ml; NULL: searched by its names */
    const char *amdsmi_path;   /* of libamd_smi */
    const char *sysfs_root;    /* the directory that contains /sys, /proc and /dev; NULL: "/" */
    const char *replay_path;   /* a recording to play in place of all hardware */
    bool facts;                /* replay_path may also be a file of facts, which never change */
    double cpu_tdp_w;          /* > 0: without a CPU sensor, estimate from CPU time and this power */
    const struct clock *clock; /* NULL: clock_real */
    double patience_s; /* > 0: a GPU of NVIDIA's that does not answer for so long is `silent`, and holds up no
                          other; a thread of the process stays with it. 0: all are waited for */
    const char *only_pci; /* "00000000:07:00.0": GPU back ends open no other GPU than this one, and none if it
                             is not theirs; NULL: all */
};

enum { DEVICES_MAX = 128, BACKENDS_MAX = 8 };

/* The result of opening a back end: code 0, or why it offers nothing and what to do. */
struct backend_report {
    const struct device_backend *backend;
    struct fly_error error; /* code 0: it works, even if it found no device */
    size_t found;           /* its devices in the list; with FLY_EPERM some cannot be read */
};

struct device_list {
    size_t count;
    struct device devices[DEVICES_MAX]; /* GPUs first, then CPUs, then memory */
    size_t report_count;
    struct backend_report reports[BACKENDS_MAX];
    void *played; /* owned; what is played in place of all hardware; NULL if devices share nothing */
    void (*free_played)(void *played);
};

/*
 * A back end. `open` appends its devices to the list with `device_list_add`. It returns 0, or a
 * negative code with a text that names what is missing and the next step: FLY_EUNSUPPORTED if
 * hardware or driver are missing, FLY_EPERM, FLY_EREAD if the driver is broken. A device that
 * exists but may not be read is added all the same: its readings are READING_DENIED, and the text
 * of FLY_EPERM has the exact command that would open it. So a device without permission does not
 * look absent. `close` frees what `open` made for one device and is called once per added device;
 * shared parts count their users.
 */
struct device_backend {
    const char *name;  /* "nvml" */
    const char *title; /* "NVIDIA GPUs, through NVML" */
    bool fallback;     /* opened only if no device of its kind answers; it replaces those that do not */
    enum device_kind kind;
    int (*open)(const struct device_options *options, struct device_list *list, struct fly_error *out_error);
    void (*close)(struct device *device);
    /* Fills in what is wanted, each value with a state; leaves the rest as it is. */
    void (*read)(const struct device *device, quantity_set wanted, struct reading *values);
    /* As device_processes, device_use and device_division; NULL: not supported. */
    int (*processes)(const struct device *device, unsigned kinds, struct device_process *processes,
                     size_t maximum, size_t *out_count);
    enum reading_state (*use)(const struct device *device, int64_t since_us,
                              struct device_use_sample *samples, size_t maximum, size_t *out_count);
    /* As device_memory_used; NULL: not supported. */
    enum reading_state (*memory_used)(const struct device *device, uint64_t *out_bytes);
    enum reading_state (*division)(const struct device *device, struct device_division *out_division);
    /*
     * Returns whether the instance of that name, "MIG-...", is a part of the device; NULL: its
     * devices have no parts.
     */
    bool (*has_instance)(const struct device *device, const char *uuid);
    /* Sets the quantity and reads it back; see device_set, which checks the value first. NULL: not supported.
     */
    int (*set)(const struct device *device, enum quantity quantity, int64_t value, struct reading *out_result,
               struct fly_error *out_error);
    /*
     * Holds a clock between a floor (0: its lowest) and a ceiling; see device_hold_clocks, which checks them
     * first. NULL: only `set` is there, and no floor, nor the memory's clock.
     */
    int (*hold)(const struct device *device, enum quantity quantity, int64_t floor_mhz, int64_t ceiling_mhz,
                struct fly_error *out_error);
    /* Gives the clocks of device_clocks_of; NULL: not supported. Returns a negative code on failure. */
    int (*clocks)(const struct device *device, enum quantity quantity, int64_t *clocks_mhz, size_t maximum,
                  size_t *out_count);
    /* Reads workload power profiles, and requests exactly the wanted ones; NULL: not supported. */
    enum reading_state (*workloads)(const struct device *device, struct workloads *out_workloads);
    /* Reads the performance level, which `set` sets; NULL: not supported. */
    enum reading_state (*level)(const struct device *device, int64_t *out_level);
    int (*request_workloads)(const struct device *device, const struct workload_set *wanted,
                             struct fly_error *out_error);
};

/* Closes a list that was opened (device/open/backends.h) or filled by hand. */
void device_list_close(struct device_list *list);

/* For back ends: appends a device and counts its index; takes `state` on success. FLY_ELIMIT when full. */
int device_list_add(struct device_list *list, const struct device_backend *backend,
                    const struct device_info *info, void *state, struct fly_error *out_error);

/*
 * For back ends while they open: closes a device and removes it from the list. Those after it
 * move up, and the indices of its kind are counted again.
 */
void device_list_remove(struct device_list *list, size_t place);

/* Returns the place of the device of a kind with that uuid, or list->count. */
size_t device_list_find(const struct device_list *list, enum device_kind kind, const char *uuid);

/* Returns how many devices of a kind there are. */
size_t device_list_count(const struct device_list *list, enum device_kind kind);

/* Returns the clock of the options. */
const struct clock *device_clock(const struct device_options *options);

/*
 * Reads the wanted quantities from the device, stamped with `clock` right before and after.
 * Quantities that were not wanted are READING_NOT_READ. Thread-safe.
 */
void device_read(const struct device *device, const struct clock *clock, quantity_set wanted,
                 struct device_reading *out_reading);

/* What can be set. */
enum {
    QUANTITIES_SETTABLE = QUANTITY_BIT(QUANTITY_POWER_LIMIT) | QUANTITY_BIT(QUANTITY_PERSISTENCE) |
                          QUANTITY_BIT(QUANTITY_CLOCK_CEILING) | QUANTITY_BIT(QUANTITY_WORKLOADS) |
                          QUANTITY_BIT(QUANTITY_PERFORMANCE_LEVEL) |
                          QUANTITY_BIT(QUANTITY_MEMORY_CLOCK_CEILING)
};

/*
 * Sets a number: a power limit (in mW), the persistence mode (0 or 1) or a ceiling on a clock
 * (in MHz; 0: no ceiling, nor a floor). It holds for everybody who uses the device, until somebody sets it
 * again: call it through knob/, which puts it back. Before the driver is asked, a value outside the device's
 * limits is FLY_EUSAGE, and FLY_EREAD if the limits cannot be read. FLY_EUNSUPPORTED if the device does not
 * offer it, FLY_EPERM with how to get the permission, FLY_EREAD if the driver fails; then the caller has to
 * read the value in force. `out_result` is what the device reports afterwards. That may be rounded, and may
 * be not OK although the value was set; a ceiling is never OK, since no driver reports it. Untouched on
 * failure. Thread-safe.
 */
int device_set(const struct device *device, enum quantity quantity, int64_t value, struct reading *out_result,
               struct fly_error *out_error);

/*
 * Holds a clock (QUANTITY_CLOCK_CEILING or QUANTITY_MEMORY_CLOCK_CEILING) between a floor (in MHz; 0: its
 * lowest) and a ceiling; a ceiling of 0 frees it. The driver takes the clocks that it has nearest to both.
 * Errors as device_set. Thread-safe. device_check_clocks checks the values first, for the same errors: the
 * floor must not be above the ceiling or the highest clock, and the GPU's ceiling must be one of its clocks.
 */
int device_hold_clocks(const struct device *device, enum quantity quantity, int64_t floor_mhz,
                       int64_t ceiling_mhz, struct fly_error *out_error);
int device_check_clocks(const struct device *device, enum quantity quantity, int64_t floor_mhz,
                        int64_t ceiling_mhz, struct fly_error *out_error);

/*
 * Gives the clocks to which the GPU can be held, in MHz, highest first, each once; at most
 * `maximum`, DEVICE_CLOCKS_MAX for all. FLY_EUNSUPPORTED if the device does not report them,
 * FLY_EPERM, FLY_EREAD. Thread-safe.
 */
int device_clocks(const struct device *device, int64_t *clocks_mhz, size_t maximum, size_t *out_count,
                  struct fly_error *out_error);

/* Gives those of the clock that a ceiling is on: the GPU's, or its memory's. Otherwise as device_clocks. */
int device_clocks_of(const struct device *device, enum quantity quantity, int64_t *clocks_mhz, size_t maximum,
                     size_t *out_count, struct fly_error *out_error);

/*
 * Reads the device's workload power profiles. READING_OK, READING_UNSUPPORTED for a device without,
 * or why they cannot be read; `out_workloads` is untouched then. Thread-safe.
 */
enum reading_state device_read_workloads(const struct device *device, struct workloads *out_workloads);

/*
 * Requests exactly the wanted profiles, none for an empty set, for everybody who uses the device;
 * call it through knob/, as device_set, whose errors it has. A driver that has only the older
 * functions needs two calls, and between them the requested set lies between the old and the new.
 * Thread-safe.
 */
int device_request_workloads(const struct device *device, const struct workload_set *wanted,
                             struct fly_error *out_error);

/* Checks a set first: FLY_EUSAGE for a profile that the device does not offer, FLY_EUNSUPPORTED, FLY_EREAD.
 */
int device_check_workloads(const struct device *device, const struct workload_set *wanted,
                           struct fly_error *out_error);

/*
 * Performance levels: how an AMD GPU chooses its clocks. The numbers are those of its driver.
 *
 *     X(name, number, word, can be set)
 *
 * A level that comes with clocks of its own (by hand, at the same clock at every run) cannot be set, as
 * it could not be put back either: the driver does not say which clocks.
 */
#define DEVICE_LEVELS(X)                           \
    X(AUTO, 0, "auto", true)                       \
    X(LOW, 1, "low", true)                         \
    X(HIGH, 2, "high", true)                       \
    X(MANUAL, 3, "manual", false)                  \
    X(STABLE_STANDARD, 4, "stable_std", true)      \
    X(STABLE_PEAK, 5, "stable_peak", true)         \
    X(STABLE_MEMORY, 6, "stable_min_mclk", true)   \
    X(STABLE_GRAPHICS, 7, "stable_min_sclk", true) \
    X(DETERMINISM, 8, "determinism", false)

#define DEVICE_LEVEL_ENUM(name, number, word, settable) DEVICE_LEVEL_##name = (number),
enum device_level { DEVICE_LEVELS(DEVICE_LEVEL_ENUM) DEVICE_LEVEL_COUNT };
#undef DEVICE_LEVEL_ENUM

/* Returns the level's word, "an unknown one" for a number without; the level of a word, or -1. */
const char *device_level_word(int64_t level);
int device_level_find(const char *word);

/* Returns whether a GPU may be brought to that level, and from it to another. */
bool device_level_is_settable(int64_t level);

/* Reads the performance level; READING_UNSUPPORTED for a device without. Thread-safe. */
enum reading_state device_read_level(const struct device *device, int64_t *out_level);

/* Returns whether the device's energy or power can be read now. */
bool device_answers(const struct device *device, const struct clock *clock);

/* Checks a value as device_set does first: FLY_EUSAGE, FLY_EREAD, FLY_EUNSUPPORTED. Thread-safe. */
int device_check_set(const struct device *device, enum quantity quantity, int64_t value,
                     struct fly_error *out_error);

/*
 * Gives the microjoules between two readings of a counter with `modulus_uj` as in device_info.
 * Exact over at most one wrap. Returns false, and leaves `out_uj` untouched, if a counter that
 * does not wrap went backwards: it was reset.
 */
bool counter_delta_uj(uint64_t modulus_uj, uint64_t before_uj, uint64_t after_uj, uint64_t *out_uj);

#endif
