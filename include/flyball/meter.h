/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_H
#define FLYBALL_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The energy of a stretch of a program: a window over the devices of this node.
 *
 *     struct fly_meter_options options = {.size = sizeof options};
 *     struct fly_meter *meter;
 *     struct fly_device_energy devices[16];
 *     struct fly_measurement measured = {.size = sizeof measured, .devices = devices, .device_capacity = 16};
 *     fly_window window;
 *
 *     if (fly_meter_open(&options, &meter, &error) < 0)
 *         ...
 *     fly_meter_begin(meter, "epoch", &window, &error);
 *     train();
 *     fly_meter_end(meter, window, &measured, &error);
 *     fly_meter_close(meter);
 *
 * Windows may nest and overlap, and may begin and end on different threads: all
 * functions but open and close are thread-safe. Time is monotonic, and each
 * device has its own stamp. A thread of the meter, with all signals blocked,
 * samples power, temperature, utilisation and throttling in the background. It
 * and the windows allocate nothing after open. Nothing is ever set on a device.
 * A fault of a device never fails a window: its energy is unavailable, and the
 * note says why.
 *
 * After fork the child's copy is inert: its functions return FLY_ESTATE, and
 * closing it only frees memory. With FLYBALL_DISABLE=1 in the environment open
 * returns a meter without devices.
 */
struct fly_meter;
typedef uint64_t fly_window;

enum fly_energy_source {
    FLY_ENERGY_UNAVAILABLE, /* no figure; the note says why */
    FLY_ENERGY_COUNTER,     /* the device's own energy counter */
    FLY_ENERGY_INTEGRATED,  /* the sampled power readings, by the trapezoidal rule */
    FLY_ENERGY_ESTIMATED,   /* computed from use and a stated power; nothing was measured */
};

/* "counter"; "unavailable". Static storage. */
FLY_API const char *fly_energy_source_name(enum fly_energy_source source);

#define FLY_METER_TEXT_MAX 160

/* What one device did in a window. An unknown figure is NAN, never 0. */
struct fly_device_energy {
    enum fly_energy_source source;
    double energy_j;
    double uncertainty_j; /* half width of an interval that holds the true energy in 95 of 100 windows: from
                             the counter's period, the sensor's duty and the window's length; board gain not
                             included */
    double gain_error;    /* of the board's sensor besides, as a fraction of the energy */
    double time_s;        /* between the stamps of this device */
    double mean_power_w;
    double integral_j;        /* the sampled power integrated, to check a counter by */
    double idle_share;        /* of the sampled time: without work on the device, */
    double idle_energy_share; /* and of the energy */
    double capped_share;      /* held down by the power limit */
    double heat_share;        /* held down by heat */
    double brake_share;       /* held down from outside the board */
    double held_share;        /* held down by a clock setting, as far as the driver tells */
    double clock_mhz;         /* mean GPU clock, of a reading a second or so */
    double temperature_max_c;
    double limit_w;                /* the power limit at the end */
    uint64_t samples;              /* behind these shares */
    char note[FLY_METER_TEXT_MAX]; /* a clause: why there is no figure, or what to know of it; "" for nothing
                                    */
    double counter_j; /* the plain difference of the counter's readings at begin and end, to check energy_j
                         by; NAN without one */
    double least_energy_j; /* of a device that stopped answering within the window, whose energy_j is
                              therefore unknown: what was measured until then. The energy is at least that.
                              NAN otherwise */
    double least_time_s;   /* how long that was */
    bool disagree; /* counter and sampled power differ by more than both may be off: energy_j is the better
                      founded one, and its interval holds the other too */
};

struct fly_measurement {
    size_t size;                       /* set by the caller: sizeof(struct fly_measurement) */
    struct fly_device_energy *devices; /* the caller's, may be NULL */
    size_t device_capacity;            /* of that array; more devices than that are left out */
    size_t device_count;               /* of the meter */
    double start_unix_s;               /* date of the begin */
    double time_s;                     /* from begin to end by the monotonic clock */
    char name[64];                     /* of the window; longer names are cut */
};

struct fly_meter_options {
    size_t size;           /* sizeof(struct fly_meter_options) */
    const char *gpus;      /* as CUDA_VISIBLE_DEVICES is written; NULL: what the environment makes visible */
    const char *nvml_path; /* of the driver library; NULL: searched for */
    const char *amdsmi_path;
    const char *replay_path; /* a recording in place of hardware */
    double cpu_tdp_w;     /* > 0: without a sensor, estimate the CPU's energy from its use and this power */
    double sample_hz;     /* 0: 10, or the sensor's own rate where that is lower; at most 1000 */
    uint32_t windows_max; /* open at a time; 0: 256; at most 65536 */
    /* Waits until the device has finished what was asked of it; called before every stamp. May be NULL. */
    void (*synchronize)(void *data);
    void *synchronize_data;
};

/*
 * Opens the devices and starts sampling. Without any device it succeeds, with a
 * device count of 0. FLY_EUSAGE for options out of range or a list of GPUs that
 * cannot be read, FLY_ENOTFOUND for a GPU that does not exist, FLY_ENOMEM,
 * FLY_EDATA for a recording that cannot be read.
 */
FLY_API int fly_meter_open(const struct fly_meter_options *options, struct fly_meter **out_meter,
                           struct fly_error *out_error);

/*
 * A meter over one GPU that the program computes, in virtual time: for a training without hardware, which
 * takes as long as its arithmetic does and measures the same each time. Sessions and tuners over it take
 * their time from it and start no thread; give them a turner of your own (tuner.h). Time passes only in
 * fly_meter_pass. Dates are the real ones.
 *
 *     fly_meter_open_virtual("Pretended V100", 40.0, &meter, &error);
 *     ...
 *     fly_meter_pass(meter, &(struct fly_virtual_work){.time_s = 0.2, .power_w = 180.0, .busy = true},
 * &error);
 *
 * It draws `idle_w` until then. `name` is copied. Not thread-safe. FLY_EUSAGE for a power out of range,
 * FLY_ENOMEM.
 */
FLY_API int fly_meter_open_virtual(const char *name, double idle_w, struct fly_meter **out_meter,
                                   struct fly_error *out_error);

/* How the GPU spends a stretch of time. A value type: its layout never changes. */
struct fly_virtual_work {
    double time_s;  /* 0 to 1e9 */
    double power_w; /* that it draws meanwhile, 0 to 1e6 */
    bool busy;      /* it works */
    bool capped;    /* its power limit holds it down */
};

/*
 * Lets this time pass, and takes the samples that fall into it. FLY_ESTATE for a meter that was opened
 * otherwise, FLY_EUSAGE out of range.
 */
FLY_API int fly_meter_pass(struct fly_meter *meter, const struct fly_virtual_work *work,
                           struct fly_error *out_error);

/* Stops sampling and frees all; open windows are forgotten. Accepts NULL. */
FLY_API void fly_meter_close(struct fly_meter *meter);

/* How many devices; the kind ("GPU"), index on the node, name and identity of one; NULL, -1 beyond the last.
 */
FLY_API size_t fly_meter_device_count(const struct fly_meter *meter);
FLY_API const char *fly_meter_device_kind(const struct fly_meter *meter, size_t device);
FLY_API int fly_meter_device_index(const struct fly_meter *meter, size_t device);
FLY_API const char *fly_meter_device_name(const struct fly_meter *meter, size_t device);
FLY_API const char *fly_meter_device_uuid(const struct fly_meter *meter, size_t device);

/*
 * "" if this meter counts the device for its job, else who does: "process 4711 on
 * node n17, rank 0". Among the ranks of a job on a node, and among meters and
 * `flyball run` inside each other, the first to open counts the device until it is
 * closed. The others measure it all the same. A sum over ranks and nodes adds up
 * what is counted. NULL beyond the last device.
 */
FLY_API const char *fly_meter_device_counted_by(const struct fly_meter *meter, size_t device);

/* Begins a window. Copies the name. FLY_ELIMIT when windows_max are open, FLY_ESTATE after fork. */
FLY_API int fly_meter_begin(struct fly_meter *meter, const char *name, fly_window *out_window,
                            struct fly_error *out_error);

/*
 * What a window holds so far; the window goes on. Answer and errors are those of the
 * end, which also gives FLY_ESTATE while another thread is in this function.
 */
FLY_API int fly_meter_peek(struct fly_meter *meter, fly_window window,
                           struct fly_measurement *out_measurement, struct fly_error *out_error);

/*
 * Ends a window. `out_measurement` has size, devices and device_capacity set.
 * A window too short to mean anything has no energy, and the note says so.
 * FLY_ESTATE for a window that is not open, or after fork; FLY_EUSAGE without a size.
 */
FLY_API int fly_meter_end(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                          struct fly_error *out_error);

/* What a device says at one moment; NAN: not known. A value type: its layout never changes. */
struct fly_sample {
    double unix_s;          /* when: seconds since 1970 */
    double power_w;         /* over the sensor's own short window */
    double power_average_w; /* over about a second */
    double energy_j;        /* the device's own counter, since some moment; it may wrap */
    double temperature_c;
};

/*
 * Reads a device now. FLY_EUSAGE beyond the last device, FLY_ESTATE after fork; a fault of the device gives
 * NAN.
 */
FLY_API int fly_meter_read(struct fly_meter *meter, size_t device, struct fly_sample *out_sample,
                           struct fly_error *out_error);

/*
 * The highest power limit that a device takes, in W; NAN if it does not say, beyond the last device, and
 * after fork.
 */
FLY_API double fly_meter_device_max_power_w(struct fly_meter *meter, size_t device);

/* Power limits of a device, in W; NAN: it does not say. A value type: its layout never changes. */
struct fly_power_limits {
    double limit_w;             /* as it was set */
    double lowest_w, highest_w; /* that it takes */
    double default_w;           /* of its driver */
};

/* Reads them now. FLY_EUSAGE beyond the last device, FLY_ESTATE after fork. */
FLY_API int fly_meter_power_limits(struct fly_meter *meter, size_t device,
                                   struct fly_power_limits *out_limits, struct fly_error *out_error);

enum fly_clock { FLY_CLOCK_GPU, FLY_CLOCK_MEMORY };

/*
 * Copies up to `capacity` of the clocks to which a device can be held, in MHz, highest first, each once, and
 * returns how many there are. 0 if it does not say, beyond the last device, and after fork.
 */
FLY_API size_t fly_meter_clocks(struct fly_meter *meter, size_t device, enum fly_clock clock,
                                uint32_t *out_clocks_mhz, size_t capacity);

/*
 * From now on keeps the newest `samples_max` samples of each device, until the meter is closed: sample_hz of
 * them a second, 40 bytes each. FLY_EUSAGE for none or more than FLY_METER_SAMPLES_MAX, FLY_ESTATE when
 * samples are kept already or after fork, FLY_ENOMEM.
 */
enum { FLY_METER_SAMPLES_MAX = 1 << 24 };
FLY_API int fly_meter_keep(struct fly_meter *meter, size_t samples_max, struct fly_error *out_error);

/*
 * Copies up to `capacity` of a device's kept samples that were taken at that date or later, oldest first, and
 * returns how many such samples there are. 0 if none are kept, beyond the last device, and after fork.
 */
FLY_API size_t fly_meter_samples(struct fly_meter *meter, size_t device, double since_unix_s,
                                 struct fly_sample *out_samples, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
