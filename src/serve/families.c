/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/families.h"

/* One family a line, so that merges stay simple. */
/* clang-format off */
static const struct serve_routes *const own[] = {
    &serve_v1,
    NULL,
};
static const struct serve_routes *const with_zeus[] = {
    &serve_v1,
    &serve_zeus,
    NULL,
};
/* clang-format on */

const struct serve_routes *const *serve_families(bool compat_zeus)
{
    return compat_zeus ? with_zeus : own;
}
