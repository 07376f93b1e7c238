/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_TUNER_BENCH_H
#define FLYBALL_TESTS_LIB_TUNER_BENCH_H

#include "emulator/control.h"
#include "meter/meter.h"
#include "train/tuner/tuner.h"

/*
 * A training on emulated GPUs in virtual time: a profile, with noise, says how long steps take under each
 * limit, and what power the GPUs want.
 */
enum { TUNER_LIMITS_MAX = 16, TUNER_GPUS_MAX = 4, TUNER_PROFILE_STEPS = 40 };

struct tuner_profile {
    size_t count, gpus;
    double limit_w[TUNER_LIMITS_MAX]; /* highest first */
    double step_s[TUNER_LIMITS_MAX];
    double power_w[TUNER_LIMITS_MAX][TUNER_GPUS_MAX];
};

/* The recorded profiles; skips the test when they are missing. */
extern const char *const tuner_profile_names[];
enum { TUNER_PROFILES = 6 };
void tuner_profile_read(const char *name, struct tuner_profile *out_profile);

/* Makes up a profile that bends as GPUs' do, for that many GPUs. */
void tuner_profile_made(struct tuner_profile *out_profile, size_t gpus);

/* Mean power of all GPUs, which stays below every limit, and step time, without noise. */
struct fly_power_point tuner_profile_truth(const struct tuner_profile *profile, size_t place);
/* The index of the limit. */
size_t tuner_profile_find(const struct tuner_profile *profile, double limit_w);
/* What one would choose after measuring every limit. */
double tuner_profile_best_w(const struct tuner_profile *profile, const struct fly_objective *objective);
/* The score of a point, in the objective's unit, as in power_selector.h. */
double tuner_score(const struct tuner_profile *profile, const struct fly_objective *objective, size_t place);
double tuner_max_power_w(const struct tuner_profile *profile);

/* The emulated machine, and its knob as the tuner sees it. */
struct tuner_bench {
    struct emulator *emulator;
    struct clock clock;
    struct device_list list;
    struct fly_meter *meter;
    char path[64];
    const struct tuner_profile *profile;
    size_t gpus;
    double slower;      /* all steps take this many times as long; 1 */
    double step_noise;  /* spread of each step's time and power */
    double visit_noise; /* spread of what stays the same until the limit changes */
    uint64_t random;
    double visit_time, visit_power, visited_w;
    /* Faults of the knob. */
    int sets_until_failing; /* < 0: never */
    bool fails_once;
    bool unreadable;
    double clamp_w;    /* > 0: no limit above this is accepted */
    double enforced_w; /* > 0: no limit above this is enforced; set by tuner_bench_enforce */
    double lowest_w;   /* > 0: lowest limit of the range, in place of the profile's */
    unsigned sets;
};

extern const struct fly_turner tuner_bench_turner;

/* The sensor is one of the emulator's words: "board", "exact". */
void tuner_bench_start(struct tuner_bench *bench, const struct tuner_profile *profile, const char *sensor);
void tuner_bench_stop(struct tuner_bench *bench);
/* Makes the bench ready for another tuner: highest limit, no faults, no noise. */
void tuner_bench_reset(struct tuner_bench *bench, uint64_t seed);

/* Lets the boards enforce no more than this, one of the profile's limits, whatever is asked for; 0: anything.
 */
void tuner_bench_enforce(struct tuner_bench *bench, double enforced_w);

struct fly_tuner_options tuner_bench_options(struct tuner_bench *bench, struct fly_objective objective);
struct fly_tuner *tuner_bench_tuner(struct tuner_bench *bench, const struct fly_tuner_options *options);

/* Makes the step on the machine; calls the tuner's hook and makes such a step. */
void tuner_bench_work(struct tuner_bench *bench);
void tuner_bench_step(struct tuner_bench *bench, struct fly_tuner *tuner);
void tuner_bench_pass(struct tuner_bench *bench, double duration_s);
/*
 * Makes steps until the tuner is settled or has stopped, in epochs of so many steps, or 0 for one long epoch.
 */
struct fly_tuner_report tuner_bench_settle(struct tuner_bench *bench, struct fly_tuner *tuner,
                                           unsigned epoch_steps);
struct fly_tuner_report tuner_bench_report(const struct fly_tuner *tuner);
double tuner_bench_limit_w(struct tuner_bench *bench);

#endif
