/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_FAMILIES_H
#define FLYBALL_SERVE_FAMILIES_H

#include <stdbool.h>

#include "serve/routes.h"

/*
 * Every family of routes that the service has, ended by NULL, in the order in which
 * they are asked; with `compat_zeus` that of the public batch-size server too, which
 * stands at the root. Static storage.
 */
const struct serve_routes *const *serve_families(bool compat_zeus);

#endif
