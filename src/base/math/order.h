/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_MATH_ORDER_H
#define FLYBALL_BASE_MATH_ORDER_H

/* Ascending orders for qsort and bsearch. Doubles must not be NaN. */
int order_u32(const void *left, const void *right);
int order_i64(const void *left, const void *right);
int order_doubles(const void *left, const void *right);

#endif
