/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_RUN_RESULT_H
#define FLYBALL_CLI_MEASURE_RUN_RESULT_H

#include <stdint.h>

#include <flyball/meter.h>

#include "cli/frame/call.h"
#include "device/device.h"
#include "device/open/selection.h"
#include "meter/claim.h"
#include "meter/meter.h"

/*
 * The idle boost of NVIDIA's GPUs: while a program has a CUDA context, the driver holds the clocks up
 * although nothing runs. Since driver 580.105 the variable CUDA_DISABLE_PERF_BOOST=1 in the program's
 * environment ends that. Reported for a context that idles (arXiv 2605.23918): 26.3 W more with the
 * boost on an A100, 49.9 W on an H100, 66.4 W on an L40S. Work itself is as fast without it.
 *
 *     idle_boost_disable();                        before the program is started
 *     idle_boost_judge(&list, &boost);             once the devices are open
 *     run_result.idle_boost = &boost;
 */
#define IDLE_BOOST_VARIABLE "CUDA_DISABLE_PERF_BOOST"
#define IDLE_BOOST_SOURCE "arXiv 2605.23918"

/* Whether the driver knows the variable. */
enum idle_boost_driver {
    IDLE_BOOST_NO_GPU, /* there is no NVIDIA GPU, so nothing is changed */
    IDLE_BOOST_UNKNOWN,
    IDLE_BOOST_EMULATED, /* an emulator answers, which does not model the boost */
    IDLE_BOOST_TOO_OLD,
    IDLE_BOOST_KNOWN,
    IDLE_BOOST_DRIVER_COUNT
};

struct idle_boost {
    enum idle_boost_driver driver;
    char version[DEVICE_TEXT_MAX]; /* of the driver; "" if unknown */
};

/* Lets the programs that this process starts run without the boost. */
void idle_boost_disable(void);

/* Finds out what the driver of the list's NVIDIA GPUs makes of it. */
void idle_boost_judge(const struct device_list *list, struct idle_boost *out_boost);

/* What a driver of that version makes of it: "580.126.09"; pure. */
enum idle_boost_driver idle_boost_of_version(const char *version);

/* A clause about it. Static storage. */
const char *idle_boost_text(enum idle_boost_driver driver);

/*
 * The devices that a program would see, and a meter for them, for commands that measure a
 * program. Large: keep it in static storage.
 *
 *     static struct metered_devices devices;
 *
 *     if (metered_devices_open(call, &devices, out_error) < 0)
 *         ...
 *     if (devices.meter == NULL)
 *         say devices.fault.text
 *     metered_devices_close(&devices);
 */
struct metered_devices {
    struct device_list list;
    struct fly_meter *meter; /* NULL: nothing is measured, and `fault` says why */
    struct fly_error fault;
    char selection[SELECTION_NOTE_MAX]; /* what hides GPUs; "" for nothing */
    bool opened;                        /* the list is open */
};

/*
 * Opens them by the options of cli/options/open_devices.h. A fault is stored. An error is
 * returned only for a list of GPUs that is malformed or names one that does not exist.
 */
int metered_devices_open(const struct cli_call *call, struct metered_devices *out_devices,
                         struct fly_error *out_error);
void metered_devices_close(struct metered_devices *devices);

struct run_carbon;

struct run_job;

struct run_tune;

/*
 * All contents of the report on a program's run. Its forms, a text for people and the document
 * "flyball.run/2" for programs, are made elsewhere. Everything is borrowed.
 */
struct run_result {
    char *const *arguments; /* of the program; ends with NULL */
    int status;             /* as a shell reports it */
    int signal;             /* the one that ended it, or 0 */
    const struct device_list *list;
    const struct claims *claims;         /* of the list's devices */
    const struct identity *identity;     /* of this process */
    struct fly_measurement measured;     /* of the list's devices */
    const double *module_energies_j;     /* of the modules around the devices, in no sum; NAN: unknown */
    const char *fault;                   /* why nothing was measured, a clause; NULL if something was */
    double early_s;                      /* how long the program ran unmeasured at first; 0: not at all */
    const char *selection;               /* what hides GPUs; "" for nothing */
    double own_cpu_s;                    /* of this program's process */
    int64_t own_memory_bytes;            /* peak; -1: not known */
    const struct run_tune *tune;         /* NULL: not asked for */
    const struct run_job *job;           /* NULL: not asked for */
    const struct run_carbon *carbon;     /* NULL: not asked for */
    const struct idle_boost *idle_boost; /* NULL: left as it is */
    const char *output;                  /* the path to which the document is written, or NULL */
    const char *csv;                     /* the path of the file to which a line is added, or NULL */
};

/* Sums over the devices that this run counts. */
struct run_totals {
    double energy_j;
    double uncertainty_j;  /* of those with a bound: the bounds' sum, since their errors may have one cause */
    double least_energy_j; /* besides: the known parts of devices that stopped answering */
    size_t devices;        /* in the sum */
    size_t without_bound;  /* of those */
    size_t unavailable;    /* without a figure, though this run would count them */
    size_t emulated, estimated; /* among those in the sum: nothing was measured */
    size_t elsewhere;           /* counted by others */
    double idle_share;          /* shares of the GPUs' time: means over GPUs for which they are known */
    double idle_energy_share;
    double capped_share;
    double heat_share;
    double brake_share;
};

void run_totals(const struct run_result *result, struct run_totals *out_totals);

/* Gives texts for both forms about what is never part of the sum, or not of this one; returns how many. */
enum { NOT_INCLUDED_MAX = 8 };

size_t run_not_included(const struct run_result *result, const char *texts[NOT_INCLUDED_MAX]);

#endif
