/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_METER_WINDOW_JUDGE_H
#define FLYBALL_TESTS_METER_WINDOW_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "window_loads.h"

/*
 * Judges the energy of short windows against the emulator's truth: of many windows of some lengths, over
 * sixteen emulated GPUs of one model that each have a load of one kind, in virtual time.
 */
enum { JUDGE_SPANS = 4 };

/* Windows are as often in one half of a span as in the other, by the logarithm of their length. */
struct judge_span {
    const char *name; /* "20-100 ms" */
    double from_s, to_s;
};
extern const struct judge_span judge_spans[JUDGE_SPANS];

/* What to measure. */
struct judge_case {
    const char *model, *settings; /* of the emulator; settings "" for none */
    double noise_w;
    enum window_load_kind load;
    unsigned windows[JUDGE_SPANS]; /* how many at least */
    uint64_t seed;
};

struct judged_window {
    bool figure;   /* the meter gave one */
    bool disputed; /* it says that counter and sampled power disagree */
    double length_s, truth_j, energy_j, half_j;
    /* The bare difference of the counter, or the sampled power summed up, and what is stated for that. */
    bool plain_figure; /* its interval is no wider than the figure itself */
    double plain_j, plain_half_j;
};

struct judged_windows {
    struct judged_window *windows;
    size_t count, capacity;
};

/* Adds what was measured to the windows of each span. */
void judge_measure(const struct judge_case *of, struct judged_windows spans[JUDGE_SPANS]);
void judge_free(struct judged_windows spans[JUDGE_SPANS]);

/* Figures of one kind among windows; errors and half widths are shares of the true energy. */
struct judge_figures {
    size_t count, covered;
    double error_median, error_p95, half_median; /* NAN without figures */
};

/* What came of the windows of one span. */
struct judge_finding {
    size_t windows, disputed;
    struct judge_figures meter, plain;
};
struct judge_finding judge_find(const struct judged_windows *of);

/* The chance of `hits` or fewer among `trials` that each hit with the chance `share`. */
double judge_chance(size_t hits, size_t trials, double share);

#endif
