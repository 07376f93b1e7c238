/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_WORKLOAD_PROFILES_H
#define FLYBALL_EMULATOR_WORKLOAD_PROFILES_H

#include "emulator/gpu.h"

/*
 * Workload power profiles of emulated boards that have them.
 *
 * A profile lowers the dynamic power of work and slows it a little. All figures are assumed, and made
 * so that everything together stays within what NVIDIA claims for a B200: at most 3 % of throughput
 * for up to 15 % of energy. Which profiles a board has, their priorities and their conflicts are
 * assumed too: of a mode (MAX_P, MAX_Q), a bottleneck (COMPUTE, MEMORY_BOUND) and a kind of work
 * (LLM_TRAINING, HPC, TRAINING) one each is enforced, that of the lowest priority number.
 */
struct workload_profile {
    unsigned id, priority; /* lower wins */
    unsigned group;        /* those of one group conflict */
    double power, speed;   /* factors on the dynamic power and on the speed of work */
};

/* All profiles, in the order of their priority. */
extern const struct workload_profile workload_profiles[];
extern const unsigned workload_profile_count;

struct workload_effect {
    double power, speed;
};

/* The profiles of the GPU's board; none on a board without them. */
struct workload_set workloads_supported(const struct emulated_gpu *gpu);

/* The profiles with which that one conflicts. */
struct workload_set workloads_conflicting(const struct workload_profile *workload);

/* Those of the requested ones that hold. */
struct workload_set workloads_enforced(const struct emulated_gpu *gpu);

/* What they do together; factors of 1 without any. */
struct workload_effect workload_effect_of(const struct emulated_gpu *gpu);

#endif
