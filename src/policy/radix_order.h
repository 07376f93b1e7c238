/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_RADIX_ORDER_H
#define FLYBALL_POLICY_RADIX_ORDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the numbers of `count` sizes, finite and from 0 on, in the ascending order of
 * what they count, equal ones as they come. `memory` holds 2 * count. In time linear
 * in count as a rule, which is what a year of five-minute periods needs. Pure.
 */
void radix_order(const double *sizes, size_t count, uint32_t *out_order, uint64_t *memory);

#endif
