/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_CUDA_LOAD_H
#define FLYBALL_DEVICE_NVIDIA_CUDA_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <flyball/error.h>

/*
 * Runs a load on one GPU in a child process, so that a failure of the driver cannot harm the
 * caller.
 *
 *     struct cuda_load_options options = {.pci = "00000000:07:00.0", .duration_max_s = 60};
 *     struct cuda_load load;
 *
 *     if (cuda_load_start(&options, &load, out_error) < 0)
 *         ...
 *     sleep(10);
 *     cuda_load_stop(&load, out_error);
 *
 * Every wait is bounded. The child ends when the caller ends, however that happens, and at the
 * latest after duration_max_s. It takes no signals of the terminal, and its output is dropped. A
 * child that hangs in the kernel's driver, where nothing can kill it, is left behind and
 * reported.
 *
 * The process should have no other threads when it starts a load: the child is a fork that goes
 * on without exec.
 */
struct cuda_load_options {
    const char *library_path; /* of libcuda; NULL: searched */
    const char *pci;
    double duration_max_s; /* up to 3600 */
};

struct cuda_load_work;

struct cuda_load {
    pid_t child;  /* 0: none */
    int control;  /* closing it ends the child */
    int messages; /* messages from the child */
    struct cuda_load_work *work;
};

/*
 * Returns 0 once the kernel has run on the GPU, after at most 30 seconds. The errors of
 * device/nvidia/cuda_driver.h, and FLY_EREAD if the driver crashed or does not answer.
 */
int cuda_load_start(const struct cuda_load_options *options, struct cuda_load *out_load,
                    struct fly_error *out_error);

/*
 * Gives the work done so far, in steps of the kernel, updated after each launch, about every
 * 20 ms. False if it is not counted, or no load runs.
 */
bool cuda_load_steps(const struct cuda_load *load, uint64_t *out_steps);

/* Ends the load. Returns the error that ended it earlier, if any; 0 if it ran until now. */
int cuda_load_stop(struct cuda_load *load, struct fly_error *out_error);

#endif
