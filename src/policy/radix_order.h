/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_RADIX_ORDER_H
#define FLYBALL_POLICY_RADIX_ORDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes to out_order the indices of `count` sizes in ascending order of size; equal ones keep
 * their order. Sizes must be finite and not negative. `memory` must hold 2 * count. It usually
 * takes time linear in count, which a year of five-minute periods needs. Pure.
 */
void radix_order(const double *sizes, size_t count, uint32_t *out_order, uint64_t *memory);

#endif
