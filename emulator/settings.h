/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_SETTINGS_H
#define FLYBALL_EMULATOR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

/*
 * The settings of an emulated machine. One table has all of them; the options of `flyball-emulator start` and
 * the variable FLYBALL_EMULATOR ("gpus=8,model=h100,time=virtual") are made from it.
 */
enum {
    EMULATOR_GPUS_MAX = 16,
    EMULATOR_INSTANCES_MAX = 7,
    EMULATOR_PATH_MAX = 1024,
    EMULATOR_WORKLOAD_MAX = 256
};

enum emulator_sensor_kind {
    EMULATOR_SENSOR_BOARD,     /* the board's own */
    EMULATOR_SENSOR_PART_TIME, /* every 100 ms the mean of the last 25 ms */
    EMULATOR_SENSOR_SECOND,    /* every 100 ms the mean of the last second */
    EMULATOR_SENSOR_EXACT,     /* the power at the moment of asking; energy without an update period */
};

/* What the driver's time stamp beside a field's value says. */
enum emulator_stamps {
    EMULATOR_STAMPS_READ, /* when it was asked for */
    EMULATOR_STAMPS_MADE, /* when the value was made */
    EMULATOR_STAMPS_LATE, /* when the value was made, and up to 50 ms more: the same for all of a GPU's */
};

/* Which samples of use nvmlDeviceGetProcessUtilization tells. */
enum emulator_process_samples {
    EMULATOR_SAMPLES_ALL,    /* all that are asked for */
    EMULATOR_SAMPLES_NEWEST, /* the newest of each process alone */
    EMULATOR_SAMPLES_NONE,   /* it is not supported */
};

/* Whose the use of MPS clients is. */
enum emulator_mps_samples {
    EMULATOR_MPS_SERVER,  /* their server's, which runs the kernels of all */
    EMULATOR_MPS_CLIENTS, /* their own */
    EMULATOR_MPS_NOBODY,
};

struct emulator_settings {
    unsigned gpus;
    unsigned board;     /* in emulated_boards */
    bool board_given;   /* otherwise a profile's board, if it names one, comes before it */
    unsigned instances; /* of MIG, on every GPU from first_divided on; 0: MIG is off */
    unsigned first_divided;
    bool virtual_time;
    enum emulator_sensor_kind sensor;
    double counter_period_s;     /* NAN: the board's; 0: always fresh */
    bool counter_from_power;     /* the counter sums power readings instead of the truth */
    bool counter_missing;        /* energy is not supported */
    double counter_drift_ppm;    /* each GPU's counter clock is off by up to so much, by the seed */
    double counter_slew_ppm;     /* by how much that changes, and */
    double counter_slew_s;       /* how long it takes to change and change back; see counter_clock.h */
    bool counter_slew_steps;     /* it changes at once */
    double counter_jitter_s;     /* updates come up to so much late, each by itself */
    double counter_skip;         /* share of the updates that do not come */
    bool counter_on_read;        /* the counter is updated when it is read */
    unsigned counter_step_mj;    /* the counter shows multiples of this */
    enum emulator_stamps stamps; /* of field values */
    enum emulator_process_samples process_samples;
    enum emulator_mps_samples mps_samples;
    double suspend_every_s;          /* the machine sleeps again and again; 0: never */
    double suspend_s;                /* for so long */
    double gain;                     /* of power and energy readings: 1.05 reads 5 % too much */
    double noise_w;                  /* standard deviation of a power reading's noise; NAN: the board's */
    double settle_s;                 /* NAN: the board's */
    double limit_settle_s;           /* of the regulator that holds the limit; NAN: the board's */
    double set_s;                    /* duration of a call that sets something; NAN: the board's */
    double enforced_w;               /* highest limit that the board enforces; 0: what is asked for */
    bool ideal;                      /* NAN means 0 in noise_w, limit_settle_s and set_s */
    double latency_s;                /* duration of every call */
    bool latency_busy;               /* spent on the processor instead of asleep */
    uint32_t seed;                   /* for the phases of all sensors, and for noise */
    bool any_user;                   /* every user may turn limits and clocks; otherwise only root */
    bool shared;                     /* other users may use the machine */
    char faults[EMULATOR_PATH_MAX];  /* path of a fault script; "" for none */
    char profile[EMULATOR_PATH_MAX]; /* path of a recorded profile (measured.h) that the boards follow */
    char workload[EMULATOR_WORKLOAD_MAX]; /* which of it; "" for the only one */
};

/* Into how many MIG instances that GPU is divided; 0: MIG is off. */
unsigned emulator_instances(const struct emulator_settings *settings, unsigned gpu);

/* What holds of these settings for a figure of the board's own. */
double emulator_setting_or(const struct emulator_settings *settings, double given, double board);

struct emulator_setting {
    const char *key;         /* "counter-period-ms" */
    const char *placeholder; /* "MS" */
    const char *expected;    /* what a value must be: "a number from 0 to 60000" */
    const char *help;        /* one sentence */
    bool (*set)(struct emulator_settings *settings, const char *value);
};

/* All of them, ended by a NULL key. */
extern const struct emulator_setting emulator_settings_table[];

/* The settings that hold unless others are given. */
extern const struct emulator_settings emulator_default_settings;

/* Sets one by its key; FLY_EUSAGE names what is wrong and what was expected. */
int emulator_settings_set(struct emulator_settings *settings, const char *key, const char *value,
                          struct fly_error *out_error);

/* Sets all of "key=value,key=value"; a key whose value is "yes" may stand without it. */
int emulator_settings_parse(struct emulator_settings *settings, const char *text,
                            struct fly_error *out_error);

#endif
