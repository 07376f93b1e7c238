/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_GENERATOR_H
#define FLYBALL_BASE_MATH_GENERATOR_H

/* Which generator random numbers come from: Flyball's own, or that of the published code. */
enum generator {
    GENERATOR_PHILOX, /* philox.h: keyed by what happens; no state */
    GENERATOR_NUMPY,  /* numpy_random.h: one sequence, used up in order */
};

#endif
