/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_GENERATOR_H
#define FLYBALL_BASE_MATH_GENERATOR_H

/* Where random numbers come from: the product's own, or the published code's. */
enum generator {
    GENERATOR_PHILOX, /* philox.h: keyed by what happens, nothing to remember */
    GENERATOR_NUMPY,  /* numpy_random.h: one sequence, spent in order */
};

#endif
