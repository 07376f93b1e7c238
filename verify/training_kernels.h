/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_VERIFY_TRAINING_KERNELS_H
#define FLYBALL_VERIFY_TRAINING_KERNELS_H

/* training_kernels.ptx as text. */
extern const char training_kernels[];

#endif
