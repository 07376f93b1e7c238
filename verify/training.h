/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_VERIFY_TRAINING_H
#define FLYBALL_VERIFY_TRAINING_H

#include <stdint.h>

#include "device/nvidia/cuda_context.h"

/*
 * A training on one GPU, small to describe and heavy to compute: weights W are fitted to X W = T by gradient
 * descent with momentum. T is X times weights that are known, so the loss falls. A step is
 *
 *     rounds  times  E = X W - T,  G = X' E     matrix products, bound by arithmetic
 *     updates times  W and its momentum          over all parameters, bound by memory
 *
 * and a wait until the GPU is done. All steps of one training do the same work: how often, and how large the
 * matrices are, is found once, so that a step takes about step_s. The kernels are text that the
 * driver compiles; no toolkit is needed.
 *
 *     code = training_open(&options, &training, out_error);
 *     while (code == 0 && goes_on())
 *         code = training_step(&training, out_error);
 *     training_close(&training);
 */
struct training_options {
    const char *library_path; /* of libcuda; NULL: searched for */
    const char *pci;          /* of the GPU */
    double step_s;
};

enum training_kernel { KERNEL_MULTIPLY, KERNEL_UPDATE, KERNEL_LOSS, KERNEL_FILL, KERNELS };
enum training_memory {
    MEMORY_X,
    MEMORY_XT,
    MEMORY_T,
    MEMORY_E,
    MEMORY_G,
    MEMORY_W,
    MEMORY_V,
    MEMORY_LOSS,
    MEMORIES
};

struct training {
    struct cuda_context cuda;
    void *module, *kernels[KERNELS];
    cuda_address memory[MEMORIES];
    unsigned n;                  /* rows and columns of a matrix */
    unsigned parameters;         /* the first n * n of them are W */
    unsigned rounds, updates;    /* of a step */
    unsigned variant;            /* of the kernels' text that the driver compiled, from 0 */
    double multiply_s, update_s; /* one kernel, when the training was fitted to the GPU */
};

/* The errors of cuda_context_open, and FLY_EUNSUPPORTED if the driver compiles no variant of the kernels or
 * there is no memory. Close it in any case. */
int training_open(const struct training_options *options, struct training *out_training,
                  struct fly_error *out_error);

/* Does one step, and returns when the GPU is done with it. */
int training_step(struct training *training, struct fly_error *out_error);

/* Gives the mean square of the errors of the newest step. */
int training_loss(struct training *training, double *out_loss, struct fly_error *out_error);

/* The work of a step. */
double training_step_flop(const struct training *training);
double training_step_bytes(const struct training *training);

/* The language version and target of a variant of the kernels: "6.0 sm_50". */
const char *training_variant_name(unsigned variant);

void training_close(struct training *training);

#endif
