/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_BOARDS_H
#define FLYBALL_EMULATOR_BOARDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The boards that can be emulated: the facts about them that `model/gpu_model.h` does not have.
 *
 * Clocks, memory and links are from NVIDIA's data sheets. Sensors follow Yang, Adamek and Armour, "Accurate
 * and Convenient Energy Measurements for GPUs", SC '24 (arXiv 2312.02741), who measured more than 70 boards:
 * a V100 reads its power every 20 ms over 10 ms of them, an A100 every 100 ms over 25 ms, boards of the GA10x
 * kind every 100 ms over the last second, and an H100 offers that average beside a reading like an A100's.
 * Update periods of energy counters, settling times, the durations of calls, noise and all thermal figures
 * are assumed.
 *
 * GH200 is a module of a GPU and a CPU. That a driver names a limit of 900 W for its GPU and of 1000 W for
 * the module is from a published log; what CPU and memory draw, the same 100 W at all times, is assumed.
 */
struct emulated_board {
    const char *name;  /* in settings, and of its struct gpu_shape: "a100" */
    const char *title; /* part of the device's name: "A100-SXM4-80GB" */
    unsigned architecture, capability_major, capability_minor;
    unsigned highest_mhz, idle_mhz, memory_mhz; /* highest graphics clock, that without work; memory clock */
    bool has_mig, has_workloads;                /* MIG instances; workload power profiles */
    unsigned pcie_generation, pcie_width, pci_device_id, multiprocessors;
    uint64_t memory_bytes;
    double settle_s;       /* time constant with which the power approaches a new target */
    double limit_settle_s; /* time constant of the regulator that brings it to a limit */
    double set_s;          /* duration of a call that sets something */
    double thermal_s, ambient_c, heating_c_per_w;
    double counter_period_s;
    double power_period_s;
    double instant_window_s; /* part of each period over which the instant reading averages */
    double average_window_s; /* of the average reading; 0: there is none */
    bool usage_is_average;   /* which of the two nvmlDeviceGetPowerUsage returns */
    double noise_w;          /* standard deviation of a power reading */
    double module_rest_w;    /* what a CPU and memory on one module with the GPU draw; 0: there is none */
    double module_limit_w;   /* of all on the module */
};

/* All boards, ended by a NULL name. */
extern const struct emulated_board emulated_boards[];
extern const unsigned emulated_board_count;

/* The index of the board with that name, or -1. */
int emulated_board_find(const char *name);

#endif
